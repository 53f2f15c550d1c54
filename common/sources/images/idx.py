"""MNIST's format: a file of images and a file of labels, gzipped or not, or shards of both.

Images without any file of labels form one class.

A file has four magic bytes (two zeros, the type, the number of dimensions), then each dimension as
a big-endian 32-bit integer, then the values (LeCun, Cortes, Burges: "The MNIST database").
"""

from __future__ import annotations

import contextlib
import gzip
import io
import re
import struct
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, SchemaError
from ...schema.image import ImageSchema
from ..base import (
    Batch,
    files_fingerprint,
    read_in_batches,
    records_at_a_time,
    require_records,
)
from ..options import SourceOptions
from ..paths import AnyPath, opened
from ..shards import overlaps, require_all
from .decoding.layout import PixelLayout
from .labels import Classes, labelled_classes, no_labels, one_class

_NAME: Final = re.compile(
    r"(?P<split>train|t10k|test)([-_.](?P<before>\d+)(-of-\d+)?)?"
    r"[-_.](?P<what>images|labels)([-_.]idx[134][-_.]ubyte)?"
    r"([-_.](?P<after>\d+)(-of-\d+)?)?(\.gz)?"
)
_UNSIGNED_BYTE: Final = 0x08
_IMAGES: Final = (3, 4)
_LABELS: Final = (1,)
"""The allowed numbers of dimensions; a fourth one holds the channels of a colour image."""
_LABEL_PIECE: Final = 1 << 16


def holds_idx_files(folder: AnyPath) -> bool:
    """Whether a folder looks like MNIST's."""
    return any(_NAME.fullmatch(file.name) for file in folder.iterdir())


def _find_pairs(folder: AnyPath, split: str) -> tuple[tuple[AnyPath, AnyPath | None], ...]:
    """The files of images and labels of one split, shard by shard; labels may be absent.

    Shards are numbered after the name or after the split, from any number on without a gap:
    `train-images-idx3-ubyte.00000`, or `train-00000-images-idx3-ubyte.gz`.

    Raises:
        DataError: a file is missing, or several could be meant.
    """
    names = {"train": ("train",), "test": ("t10k", "test")}[split]
    named = [(file, _NAME.fullmatch(file.name)) for file in sorted(folder.iterdir(), key=_name)]
    found: dict[str, dict[int | None, AnyPath]] = {"images": {}}
    if any(match["what"] == "labels" for _, match in named if match):
        found["labels"] = {}
    for file, match in named:
        if match is None or match["split"] not in names:
            continue
        digits = match["before"] or match["after"]
        number = None if digits is None else int(digits)
        earlier = found[match["what"]].setdefault(number, file)
        if earlier != file:
            raise DataError(
                f"{folder}: both {earlier.name} and {file.name} hold the {split} {match['what']}"
                f"{_of(number)}: keep one of them"
            )
    for what, files in found.items():
        if not files:
            raise DataError(f"{folder}: no IDX file of {split} {what} ({names[0]}-{what}-...)")
        if None in files and len(files) > 1:
            some = " and ".join(file.name for file in list(files.values())[:2])
            raise DataError(f"{folder}: both {some} hold the {split} {what}: keep whole or shards")
        require_all(folder, files.values())
    numbers = sorted({number for files in found.values() for number in files if number is not None})
    shards = range(numbers[0], numbers[-1] + 1) if numbers else [None]
    for number in shards:
        for what, files in found.items():
            if number not in files:
                raise DataError(f"{folder}: no IDX file of {split} {what}{_of(number)}")
    images, labels = found["images"], found.get("labels", {})
    return tuple((images[number], labels.get(number)) for number in shards)


def _of(number: int | None) -> str:
    return "" if number is None else f" of shard {number}"


def _name(file: AnyPath) -> str:
    return file.name


@dataclass(frozen=True)
class IdxSource:
    """Images and labels in IDX files, read side by side.

    Attributes:
        pairs: the files of images and labels of each shard; labels may be absent from all.
        counts: the number of records in each shard.
        layout: how the images are stored.
        classes: the classes, and the labels that stand for them.
        schema: what is publicly known of the records.
    """

    pairs: tuple[tuple[AnyPath, AnyPath | None], ...]
    counts: tuple[int, ...]
    layout: PixelLayout
    classes: Classes
    schema: ImageSchema

    @classmethod
    def open(cls, folder: AnyPath, options: SourceOptions) -> IdxSource:
        """Read the headers of a split's files.

        Raises:
            DataError: files are missing or incomplete, they do not begin with headers of IDX files,
                or two files disagree.
            SchemaError: sizes or classes are not supported.
        """
        pairs = _find_pairs(folder, options.split)
        first = pairs[0][0]
        counts = []
        shape: tuple[int, ...] = ()
        for images, labels in pairs:
            count, *dimensions = _dimensions(images, _IMAGES)
            if labels is not None:
                (label_count,) = _dimensions(labels, _LABELS)
                if count != label_count:
                    raise DataError(
                        f"{images} holds {count} images but {labels.name} holds {label_count} "
                        "labels: they do not belong together"
                    )
            shape = shape or tuple(dimensions)
            if tuple(dimensions) != shape:
                raise SchemaError(
                    f"{images} holds images of {_times(dimensions)} pixels but {first.name} of "
                    f"{_times(shape)}: shards hold images of one size"
                )
            counts.append(count)
        require_records(sum(counts), str(first))
        layout = PixelLayout.of(shape, options, str(first))
        files = [labels for _, labels in pairs if labels is not None]
        if files:
            pieces = (
                piece for labels in files for _, piece in _read(labels, _LABELS, _LABEL_PIECE)
            )
            classes = labelled_classes(options, pieces, str(first.parent))
        else:
            classes = one_class(options, str(first.parent))
        schema = layout.form.schema(classes)
        return cls(pairs, tuple(counts), layout, classes, schema)

    def __len__(self) -> int:
        return sum(self.counts)

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Yield the images in the order of the shards."""
        yield from read_in_batches(self._pieces(size, start, stop), size)

    def fingerprint(self) -> str:
        """Digest of the files' names, sizes and times."""
        files = (file for pair in self.pairs for file in pair if file is not None)
        return files_fingerprint(files, "idx", self.counts)

    def _pieces(self, size: int, start: int, stop: int | None) -> Generator[Batch, None, None]:
        size = records_at_a_time(size, self.layout.stored_size)
        for shard, begin, end in overlaps(self.counts, start, stop):
            images_file, labels_file = self.pairs[shard]
            with (
                contextlib.closing(_read(images_file, _IMAGES, size, begin, end)) as image_pieces,
                contextlib.closing(self._labels(labels_file, size, begin, end)) as label_pieces,
            ):
                for (first, images), labels in zip(image_pieces, label_pieces, strict=True):
                    yield Batch(self.layout.records(images, first, str(images_file)), labels)

    def _labels(
        self, file: AnyPath | None, size: int, begin: int, end: int
    ) -> Generator[NDArray[np.int64], None, None]:
        if file is None:
            yield from no_labels(size, begin, end)
            return
        for first, raw in _read(file, _LABELS, size, begin, end):
            yield self.classes.indices(raw, first, str(file))


@contextlib.contextmanager
def _opened(path: AnyPath) -> Iterator[BinaryIO | gzip.GzipFile]:
    """Open a file, gzipped or not, and turn errors into one clear line."""
    with opened(path) as file:
        try:
            yield gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
        except EOFError as error:
            raise DataError(f"{path}: cut short: the gzip stream has no end") from error
        except (zlib.error, gzip.BadGzipFile) as error:
            raise DataError(f"{path}: damaged: {error}") from error


def _header(
    file: BinaryIO | gzip.GzipFile, path: AnyPath, ranks: tuple[int, ...]
) -> tuple[int, ...]:
    magic = file.read(4)
    if len(magic) < 4 or magic[:3] != bytes((0, 0, _UNSIGNED_BYTE)) or magic[3] not in ranks:
        several = "s" if ranks[0] > 1 else ""
        wanted = " or ".join(map(str, ranks))
        raise DataError(f"{path}: not an IDX file of unsigned bytes in {wanted} dimension{several}")
    rank = magic[3]
    sizes = file.read(4 * rank)
    if len(sizes) < 4 * rank:
        raise DataError(f"{path}: cut short: it ends within its header")
    return struct.unpack(f">{rank}I", sizes)


def _dimensions(path: AnyPath, ranks: tuple[int, ...]) -> tuple[int, ...]:
    with _opened(path) as file:
        return _header(file, path, ranks)


def _times(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def _read(
    path: AnyPath, ranks: tuple[int, ...], size: int, start: int = 0, stop: int | None = None
) -> Generator[tuple[int, NDArray[np.uint8]], None, None]:
    """Yield (number of the first item, items) for `size` items at a time."""
    with _opened(path) as file:
        count, *shape = _header(file, path, ranks)
        item = int(np.prod(shape, dtype=np.int64))
        end = count if stop is None else min(stop, count)
        file.seek(start * item, io.SEEK_CUR)  # a compressed file is decompressed up to here
        for first in range(start, end, size):
            wanted = min(size, end - first)
            content = file.read(wanted * item)
            if len(content) < wanted * item:
                raise DataError(
                    f"{path}: cut short: it ends after {first + len(content) // item} of "
                    f"{count} items; fetch the file again"
                )
            yield first, np.frombuffer(content, dtype=np.uint8).reshape(wanted, *shape)
        if end == count and file.read(1):
            raise DataError(f"{path}: goes on after the {count} items that its header announces")
