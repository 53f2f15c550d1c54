"""Tar shards in WebDataset's form: images such as `KEY.png`, each with its label.

The label is in `KEY.cls` (a number in digits) or in `KEY.json` (`{"label": 3}`), beside the image.
Images without any label form one class. Shards are listed once, header by header; images are then
read in place. Nothing is ever extracted to the disk, and members of other kinds are ignored.

Source: the WebDataset convention, in which the key is a member's name up to the first dot of its
last part, and the members of one record follow one another.
"""

from __future__ import annotations

import contextlib
import json
import re
import tarfile
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import IO, BinaryIO, Final

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
        wanted = self._pieces(range(len(self))[start:stop])
        yield from decoded(self._decode, wanted, piece_size=_PIECE, size=size)

    def fingerprint(self) -> str:
        """Digest of the shards' names, sizes and times, and of the number of records in each."""
        counts = tuple(map(len, self.shards))
        return files_fingerprint((shard.path for shard in self.shards), "tar", counts)

    def _pieces(self, wanted: range) -> Iterator[tuple[_Shard, int, int]]:
        counts = tuple(map(len, self.shards))
        for index, first, last in pieces(counts, wanted.start, wanted.stop, _PIECE):
            yield self.shards[index], first, last

    def _decode(self, piece: tuple[_Shard, int, int]) -> Batch:
        shard, start, stop = piece
        records = []
        with opened(shard.path, shard.extent(start, stop)) as file:
            for record in range(start, stop):
                records.append(self.decoder.decode(*shard.read(file, record)))
        return Batch(np.stack(records), shard.labels[start:stop])


@dataclass(repr=False)
class _Record(RedactedRepr):
    """The parts found so far of the record being listed."""

    key: str
    image: tuple[int, int] | None = None
    number: int | None = None
    document: bytes | None = None


class _ShardListing:
    """Assembles the records of one shard from its members, one by one."""

    def __init__(self, path: AnyPath) -> None:
        self._path = path
        self._record = _Record("")
        self._offsets, self._sizes, self._labels = array("q"), array("i"), array("q")
        self._unlabelled = ""

    def add(self, member: tarfile.TarInfo, file: IO[bytes]) -> None:
        """Record a member if it is an image or a label."""
        match = _NAME.fullmatch(member.name)
        if match is None:
            return
        kind = match["kind"].lower()
        image = f".{kind}" in SUFFIXES
        if not image and kind not in _LABEL_KINDS:
            return
        where = f"{self._path}: {member.name}"
        if not member.isreg() or member.issparse():
            raise DataError(f"{where}: a link or a special file: store the file itself")
        if match["key"] != self._record.key:
            self.finish_record()
            self._record = _Record(match["key"])
        if image:
            require_size(member.size, where)
            if self._record.image:
                raise DataError(f"{where}: a second image of the same name: keep one of them")
            self._record.image = member.offset_data, member.size
            return
        if member.size > _MOST_LABEL_BYTES:
            raise DataError(f"{where}: {member.size} bytes are no label")
        file.seek(member.offset_data)
        content = file.read(member.size)
        if kind == "json":
            self._record.document = content
        else:
            self._record.number = _number(content, where)

    def finish_record(self) -> None:
        """Add the record's image and label once all its members are known."""
        record = self._record
        if not record.key:
            return
        where = f"{self._path}: {record.key}"
        if record.number is None and record.document is not None:
            record.number = _number_in(record.document, f"{where}.json")
        if record.image is None:
            raise DataError(f"{where}: a label without an image beside it")
        if record.number is None:
            self._unlabelled = self._unlabelled or record.key
        self._offsets.append(record.image[0])
        self._sizes.append(record.image[1])
        self._labels.append(-1 if record.number is None else record.number)

    def shard(self) -> _Shard:
        """The finished list."""
        return _Shard(
            self._path,
            np.array(self._offsets, dtype=np.int64),
            np.array(self._sizes, dtype=np.int32),
            np.array(self._labels, dtype=np.int64),
            self._unlabelled,
        )


def _list(path: AnyPath) -> _Shard:
    """Go through a shard's headers once.

    Raises:
        DataError: the shard is damaged, or does not hold images with labels.
    """
    listing = _ShardListing(path)
    with _opened(path) as file, tarfile.open(fileobj=file, mode="r:") as tar:
        begin = -1
        while (member := tar.next()) is not None:
            if member.size < 0 or member.offset <= begin:
                raise DataError(f"{path}: damaged at byte {member.offset}")
            begin = member.offset
            # The archive would keep them all in memory.
            tar.members.clear()  # type: ignore[attr-defined]
            listing.add(member, file)
        _require_end(file, tar.offset, path)
        listing.finish_record()
    return listing.shard()


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
