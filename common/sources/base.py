"""The interface of all sources of records, and the checks that they share."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..arguments import argument
from ..display.representations import RedactedRepr
from ..errors import DataError, SchemaError
from ..schema import Schema
from .paths import AnyPath
from .prefetch import decoding_workers, in_order, read_ahead
from .remote import RemotePath

_PIECE_BYTES: Final = 1 << 24

Piece = TypeVar("Piece")


@dataclass(frozen=True, eq=False, repr=False)
class Batch(RedactedRepr):
    """Consecutive records.

    Attributes:
        records: uint8 (b, record size), values 0..levels of the schema.
        labels: int64 (b,), indices into the schema's classes.
    """

    records: NDArray[np.uint8]
    labels: NDArray[np.int64]


@runtime_checkable
class Source(Protocol):
    """A data set that is read from beginning to end in a fixed order."""

    @property
    def schema(self) -> Schema:
        """What is publicly known of the records."""
        ...

    def __len__(self) -> int:
        """The number of records, known without reading them."""
        ...

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Yield records start..stop-1 in order, `size` at a time (fewer in the last batch).

        Only what these records need is read. Threads read ahead of the caller; they end with the
        iterator, even if it is closed early.

        Args:
            size: records in a batch.
            start: number of the first record, from 0.
            stop: number after the last record; all that follow if None.

        Raises:
            DataError: a record cannot be read.
            SchemaError: a record does not fit the schema.
        """
        ...

    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal, of what identifies these data without reading them.

        It covers the files' names (below the data's folder), sizes and modification times, and the
        number of records: data that have changed have another fingerprint. For data in memory,
        which have no files, the records are read (`records_fingerprint`).

        Raises:
            DataError: a file is gone.
        """
        ...


def files_fingerprint(files: Iterable[AnyPath], *what: object) -> str:
    """SHA-256 of files' names, sizes and modification times in ns.

    For objects in storage, their version when they were listed, usually an ETag, replaces the time.

    Args:
        files: the files of one folder, whose own name does not count, in a fixed order.
        what: anything else that identifies the data, such as the number of records.

    Raises:
        DataError: a file is gone.
    """
    return named_fingerprint(((file.name, file) for file in files), *what)


def named_fingerprint(files: Iterable[tuple[str, AnyPath | str]], *what: object) -> str:
    """The same for files at any depth.

    Args:
        files: the name of each file below the common folder, and its path.
        what: see `files_fingerprint`.

    Raises:
        DataError: a file is gone.
    """
    collected = hashlib.sha256(repr(what).encode())
    for name, file in files:
        collected.update(f"{name!r} {_state(file)}\n".encode())
    return collected.hexdigest()


def _state(file: AnyPath | str) -> str:
    if isinstance(file, RemotePath):
        return file.state
    with reading(file):
        status = os.stat(file)
    return f"{status.st_size} {status.st_mtime_ns}"


def require_same_data(source: Source, fingerprint: str) -> None:
    """Check that data did not change while they were read; call this at the end of a pass.

    Guarantee:
        Unless clocks were reset, what was read is not a mixture of two versions, in which a person
        may count more than once.

    Args:
        source: the data.
        fingerprint: their fingerprint before the first record was read.

    Raises:
        DataError: the fingerprint has changed.
    """
    if source.fingerprint() != fingerprint:
        raise DataError(
            "the data changed while they were read, so what was read is a mixture: wait until "
            "nobody writes to them, and start again"
        )


def records_fingerprint(batches: Iterable[Batch], *what: object) -> str:
    """SHA-256 of records in memory, which have neither a file nor a modification time.

    Args:
        batches: all records, in order.
        what: anything else that identifies the data, such as the schema.
    """
    collected = hashlib.sha256(repr(what).encode())
    for batch in batches:
        collected.update(np.ascontiguousarray(batch.records).data)
        collected.update(np.ascontiguousarray(batch.labels).data)
    return collected.hexdigest()


@contextlib.contextmanager
def reading(where: AnyPath | str) -> Iterator[None]:
    """Turn the operating system's errors into one clear line.

    Raises:
        DataError: in place of any OSError.
    """
    try:
        yield
    except OSError as error:
        raise DataError(f"{error.filename or where}: {error.strerror or error}") from error


def decoded(
    decode: Callable[[Piece], Batch], pieces: Iterable[Piece], *, piece_size: int, size: int
) -> Iterator[Batch]:
    """Decode pieces in threads, a batch ahead of the caller, and join them in order.

    Args:
        decode: makes the records of one piece.
        pieces: descriptions of at most `piece_size` records each.
        piece_size: should be small, because pieces in progress are finished even if the caller
            stops early.
        size: records in a batch.
    """
    workers = decoding_workers()
    ahead = workers + math.ceil(size / piece_size)
    with contextlib.closing(in_order(decode, pieces, workers=workers, ahead=ahead)) as results:
        yield from regrouped(results, size)


def read_in_batches(pieces: Generator[Batch, None, None], size: int) -> Iterator[Batch]:
    """Read pieces in a thread, ahead of the caller, and join them into batches.

    Args:
        pieces: the pieces, in order; closed at the end.
        size: records in a batch.
    """
    with contextlib.closing(read_ahead(pieces)) as ahead:
        yield from regrouped(ahead, size)


def regrouped(pieces: Iterable[Batch], size: int) -> Iterator[Batch]:
    """Join and split pieces so that each batch but the last holds `size` records."""
    waiting: list[Batch] = []
    held = 0
    for piece in pieces:
        waiting.append(piece)
        held += len(piece.labels)
        while held >= size:
            joined = _joined(waiting)
            yield Batch(joined.records[:size], joined.labels[:size])
            held -= size
            waiting = [Batch(joined.records[size:], joined.labels[size:])] if held else []
    if held:
        yield _joined(waiting)


def _joined(pieces: list[Batch]) -> Batch:
    if len(pieces) == 1:
        return pieces[0]
    return Batch(
        np.concatenate([piece.records for piece in pieces]),
        np.concatenate([piece.labels for piece in pieces]),
    )


def records_at_a_time(size: int, record_bytes: int) -> int:
    """How many records of a batch of `size` to read at a time: at least one, at most 16 MiB."""
    return max(1, min(size, _PIECE_BYTES // record_bytes))


def require_labels(labels: NDArray[np.int64], classes: int, first: int, where: str) -> None:
    """Check that every label names a class.

    Args:
        labels: int64 (b,).
        classes: the number of classes.
        first: number of the record that `labels[0]` belongs to, from 0.
        where: the file, for the message.

    Raises:
        SchemaError: a label is negative or too large.
    """
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if wrong.size:
        index = int(wrong[0])
        raise SchemaError(
            f"{where}: record {first + index} has a label "
            + (
                "below 0, but labels are numbers from 0: correct it"
                if labels[index] < 0
                else f"that is too large, for the labels of {classes} classes are 0 to "
                f"{classes - 1}: correct it, declare more with {argument('classes')}, or name "
                f"labels that do not begin at 0, as in {argument('class_names', '1,2,3')}"
            ),
            str(labels[index]),
        )


def require_regular(path: AnyPath) -> None:
    """Refuse a pipe, which can be read only once, and a device, which may never end.

    Raises:
        DataError: it is not a regular file.
    """
    if not path.is_file():
        raise DataError(f"{path}: not a regular file: save the data in one")


def require_records(count: int, where: str) -> None:
    """Refuse an empty data set.

    Raises:
        DataError: there is nothing to read.
    """
    if count < 1:
        raise DataError(f"{where}: there are no records in it")
