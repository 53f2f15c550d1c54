"""Tar shards in WebDataset's form: images such as `KEY.png`, each with its label.

The label is in `KEY.cls` (a number in digits) or in `KEY.json` (`{"label": 3}`), beside the image.
Images without any label form one class. Shards are listed once, header by header; images are then
read in place. Nothing is ever extracted to the disk, and members of other kinds are ignored.

Source: the WebDataset convention, in which the key is a member's name up to the first dot of its
last part, and the members of one record follow one another.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import tarfile
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import IO, BinaryIO, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...display.console import progress
from ...display.representations import RedactedRepr
from ...errors import DataError
from ...schema.image import ImageSchema
from ..base import Batch, decoded, files_fingerprint
from ..options import SourceOptions
from ..paths import AnyPath, opened, size_of
from ..shards import pieces
from .decoding.decoder import ImageDecoder
from .decoding.encoded import SUFFIXES, require_size
from .labels import labelled_classes, one_class

_PIECE: Final = 64
_NAME: Final = re.compile(r"(?P<key>(?:.*/)?[^./][^./]*)\.(?P<kind>[^/]*)", re.DOTALL)
_LABEL_KINDS: Final = ("cls", "json")
_MOST_LABEL_BYTES: Final = 1 << 20
_BLOCK: Final = 512
_NAME_BYTES: Final = 100
_DIGITS: Final = re.compile(rb"[0-9]{1,18}")
_LARGEST: Final = 10**18 - 1
_COMPRESSED: Final = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"(\xb5/\xfd")


@dataclass(frozen=True, eq=False, repr=False)
class _Shard(RedactedRepr):
    """The places of a shard's images, 20 bytes for each.

    Attributes:
        path: the file.
        offsets: int64 (n,), the start of each image.
        sizes: int32 (n,), its size in bytes.
        labels: int64 (n,); -1 if there is none.
        unlabelled: the key of the first image without a label; empty if each has one.
    """

    path: AnyPath
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int32]
    labels: NDArray[np.int64]
    unlabelled: str = ""

    def __len__(self) -> int:
        return len(self.labels)

    def extent(self, start: int, stop: int) -> int:
        """The number of bytes that images start..stop-1 span, including the first one's header."""
        ends = self.offsets[stop - 1] + self.sizes[stop - 1]
        return int(ends - self.offsets[start]) + _BLOCK

    def read(self, file: IO[bytes], record: int) -> tuple[bytes, str]:
        """One encoded image, and its name in messages.

        Args:
            file: this shard, open.
            record: number of the image, from 0.
        """
        file.seek(int(self.offsets[record]) - _BLOCK)
        header = file.read(_BLOCK)
        name = header[:_NAME_BYTES].split(b"\0")[0].decode(errors="replace")
        where = f"{self.path}: record {record} ({name})"
        size = int(self.sizes[record])
        content = file.read(size)
        if len(content) < size:
            raise DataError(f"{where}: cut short since the shard was listed")
        return content, where


@dataclass(frozen=True)
class TarImageSource:
    """Images in tar shards, in the order of the shards and of their members."""

    shards: tuple[_Shard, ...]
    decoder: ImageDecoder
    schema: ImageSchema

    @classmethod
    def open(cls, files: tuple[AnyPath, ...], options: SourceOptions) -> TarImageSource:
        """List the shards, and read the first image for its size.

        Raises:
            DataError: a shard is damaged, or a record is not an image with a label.
            SchemaError: sizes or classes are not supported.
        """
        total = sum(size_of(file) for file in files)
        shards = []
        with progress("listing", total, "bytes") as advance:
            for file in files:
                shards.append(_list(file))
                advance(size_of(file), file.name)
        if not any(map(len, shards)):
            raise DataError(
                f"{files[0]}: there are no records in it: KEY.png, or another image, and beside it "
                "KEY.cls or KEY.json"
            )
        first = next(shard for shard in shards if len(shard))
        with opened(first.path, first.extent(0, 1)) as shard_file:
            content, where = first.read(shard_file, 0)
        decoder = ImageDecoder.of_first(content, where, options)
        if any((shard.labels >= 0).any() for shard in shards):
            _require_every_label(shards)
            labels = (shard.labels for shard in shards)
            classes = labelled_classes(options, labels, str(files[0].parent))
            shards = [
                replace(shard, labels=classes.indices(shard.labels, 0, str(shard.path)))
                for shard in shards
            ]
        else:
            classes = one_class(options, str(files[0].parent))
            shards = [replace(shard, labels=np.zeros_like(shard.labels)) for shard in shards]
        schema = decoder.form.schema(classes)
        return cls(tuple(shards), decoder, schema)

    def __len__(self) -> int:
        return sum(map(len, self.shards))

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Yield the images shard by shard."""
        yield from decoded(self._decode, self._pieces(start, stop), piece_size=_PIECE, size=size)

    def fingerprint(self) -> str:
        """Digest of the shards' names, sizes and times, and of the number of records in each."""
        counts = tuple(map(len, self.shards))
        return files_fingerprint((shard.path for shard in self.shards), "tar", counts)

    def _pieces(self, start: int, stop: int | None) -> Iterator[tuple[_Shard, int, int]]:
        counts = tuple(map(len, self.shards))
        for index, first, last in pieces(counts, start, stop, _PIECE):
            yield self.shards[index], first, last

    def _decode(self, piece: tuple[_Shard, int, int]) -> Batch:
        shard, start, stop = piece
        records = []
        with opened(shard.path, shard.extent(start, stop)) as file:
            for record in range(start, stop):
                records.append(self.decoder.decode(*shard.read(file, record)))
        return Batch(np.stack(records), shard.labels[start:stop])


def _list(path: AnyPath) -> _Shard:
    """Go through a shard's headers once.

    Raises:
        DataError: the shard is damaged, or does not hold images with labels.
    """
    offsets, sizes, labels, unlabelled = array("q"), array("i"), array("q"), ""
    with _opened(path) as file, tarfile.open(fileobj=file, mode="r:") as tar:
        for key, members in itertools.groupby(_members(tar, file, path), lambda each: each.key):
            image, label = _record(members, file, f"{path}: {key}", path)
            offsets.append(image.offset_data)
            sizes.append(image.size)
            labels.append(-1 if label is None else label)
            if label is None:
                unlabelled = unlabelled or key
    return _Shard(
        path,
        np.array(offsets, dtype=np.int64),
        np.array(sizes, dtype=np.int32),
        np.array(labels, dtype=np.int64),
        unlabelled,
    )


class _Member(NamedTuple):
    """An image or a label in a shard: the record that it is of, its kind, and its header."""

    key: str
    kind: str
    header: tarfile.TarInfo


def _members(tar: tarfile.TarFile, file: IO[bytes], path: AnyPath) -> Iterator[_Member]:
    """The images and labels of a shard, in order."""
    begin = -1
    while (member := tar.next()) is not None:
        if member.size < 0 or member.offset <= begin:
            raise DataError(f"{path}: damaged at byte {member.offset}")
        begin = member.offset
        # The archive would keep them all in memory.
        tar.members.clear()  # type: ignore[attr-defined]
        match = _NAME.fullmatch(member.name)
        kind = match["kind"].lower() if match else ""
        if match is None or not (f".{kind}" in SUFFIXES or kind in _LABEL_KINDS):
            continue
        if not member.isreg() or member.issparse():
            raise DataError(
                f"{path}: {member.name}: a link or a special file: store the file itself"
            )
        yield _Member(match["key"], kind, member)
    _require_end(file, tar.offset, path)


def _record(
    members: Iterable[_Member], file: IO[bytes], where: str, path: AnyPath
) -> tuple[tarfile.TarInfo, int | None]:
    """The header of a record's image, and its label, if any; the record is called `where`."""
    image: tarfile.TarInfo | None = None
    number: int | None = None
    document: bytes | None = None
    for _, kind, header in members:
        at = f"{path}: {header.name}"
        if kind not in _LABEL_KINDS:
            require_size(header.size, at)
            if image is not None:
                raise DataError(f"{at}: a second image of the same name: keep one of them")
            image = header
            continue
        if header.size > _MOST_LABEL_BYTES:
            raise DataError(f"{at}: {header.size} bytes are no label")
        file.seek(header.offset_data)
        content = file.read(header.size)
        if kind == "json":
            document = content
        else:
            number = _number(content, at)
    if number is None and document is not None:
        number = _number_in(document, f"{where}.json")
    if image is None:
        raise DataError(f"{where}: a label without an image beside it")
    return image, number


def _require_every_label(shards: Iterable[_Shard]) -> None:
    """Refuse images without a label among others that have one.

    Raises:
        DataError: there is such an image.
    """
    for shard in shards:
        if key := shard.unlabelled:
            raise DataError(
                f"{shard.path}: {key}: an image without a label: put {key}.cls beside it"
            )


def _require_end(file: IO[bytes], offset: int, path: AnyPath) -> None:
    """Refuse a shard whose members stop before its end, or that has no end mark.

    Raises:
        DataError: records would be silently lost.
    """
    file.seek(offset)
    mark = file.read(_BLOCK)
    if len(mark) < _BLOCK:
        raise DataError(f"{path}: cut short: it has no end mark; fetch the file again")
    if any(mark):
        raise DataError(f"{path}: damaged at byte {offset}: what is there begins no member")
    while rest := file.read(1 << 20):
        if rest.strip(b"\0"):
            raise DataError(f"{path}: goes on after its end mark: keep one archive a file")


def _number(content: bytes, where: str) -> int:
    text = content.strip()
    if not _DIGITS.fullmatch(text):
        raise DataError(
            f"{where}: it holds no label: write a number from 0, in digits",
            text.decode(errors="replace"),
        )
    return int(text)


def _number_in(document: bytes, where: str) -> int:
    try:
        label = json.loads(document)["label"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise DataError(f'{where}: no JSON such as {{"label": 3}}') from error
    if type(label) is not int or not 0 <= label <= _LARGEST:
        raise DataError(f"{where}: its label is no whole number from 0")
    return label


@contextlib.contextmanager
def _opened(path: AnyPath) -> Iterator[BinaryIO]:
    """Open a shard, and turn the archive reader's errors into one clear line."""
    with opened(path) as file:
        try:
            yield file
        except (tarfile.TarError, ValueError, OverflowError, RecursionError, EOFError) as error:
            file.seek(0)
            if file.read(6).startswith(_COMPRESSED):
                raise DataError(
                    f"{path}: compressed: its images are already, so unpack it to a plain .tar"
                ) from error
            reason = " ".join(str(error).split())
            raise DataError(f"{path}: not a whole tar archive: {reason}") from error
