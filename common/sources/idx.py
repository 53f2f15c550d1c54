"""MNIST's own format: a file of images and a file of labels, gzipped or not.

Four bytes of magic (two zeros, the type, the number of dimensions), then each dimension as a
big-endian 32-bit integer, then the values (LeCun, Cortes, Burges: "The MNIST database").
"""

from __future__ import annotations

import contextlib
import gzip
import io
import re
import struct
import zlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, SchemaError
from ..schema import ImageSchema
from .base import (
    Batch,
    files_fingerprint,
    numbered_classes,
    require_labels,
    require_records,
    resize,
    square_side,
)

_NAME: Final = re.compile(
    r"(?P<split>train|t10k|test)[-_.](?P<what>images|labels)([-_.]idx[13][-_.]ubyte)?(\.gz)?"
)
_UNSIGNED_BYTE: Final = 0x08
_LABEL_PIECE: Final = 1 << 16


def holds_idx_files(folder: Path) -> bool:
    """Whether a folder looks like MNIST's."""
    return any(_NAME.fullmatch(file.name) for file in folder.iterdir())


def find_idx_pair(folder: Path, split: str) -> tuple[Path, Path]:
    """The files of images and of labels of one split.

    Raises:
        DataError: one of them is missing, or there are several to choose from.
    """
    names = {"train": ("train",), "test": ("t10k", "test")}[split]
    found: dict[str, list[Path]] = {"images": [], "labels": []}
    for file in sorted(folder.iterdir()):
        match = _NAME.fullmatch(file.name)
        if match and match["split"] in names:
            found[match["what"]].append(file)
    for what, files in found.items():
        if not files:
            raise DataError(f"{folder}: no IDX file of {split} {what} ({names[0]}-{what}-...)")
        if len(files) > 1:
            both = " and ".join(file.name for file in files[:2])
            raise DataError(f"{folder}: both {both} hold the {split} {what}: keep one of them")
    return found["images"][0], found["labels"][0]


@dataclass(frozen=True)
class IdxSource:
    """Images and labels in IDX files, read side by side."""

    images: Path
    labels: Path
    count: int
    height: int
    width: int
    schema: ImageSchema

    @classmethod
    def open(
        cls, images: Path, labels: Path, image_size: int | None, class_count: int | None
    ) -> IdxSource:
        """Read the headers.

        Raises:
            DataError: they are not what an IDX file begins with, or the two files disagree.
            SchemaError: sizes or classes that are not supported.
        """
        count, height, width = _dimensions(images, 3)
        (label_count,) = _dimensions(labels, 1)
        if count != label_count:
            raise DataError(
                f"{images} holds {count} images but {labels.name} holds {label_count} labels: "
                "they do not belong together"
            )
        require_records(count, str(images))
        side, side_origin = square_side(height, width, image_size, str(images))
        pieces = (piece for _, piece in _read(labels, 1, _LABEL_PIECE))
        names, classes_origin = numbered_classes(class_count, (p.astype(np.int64) for p in pieces))
        schema = ImageSchema(side, names, side_origin, classes_origin)
        return cls(images, labels, count, height, width, schema)

    def __len__(self) -> int:
        return self.count

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Yield the images in the order of the file."""
        with (
            contextlib.closing(_read(self.images, 3, size, start, stop)) as image_pieces,
            contextlib.closing(_read(self.labels, 1, size, start, stop)) as label_pieces,
        ):
            for (first, images), (_, raw) in zip(image_pieces, label_pieces, strict=True):
                labels = raw.astype(np.int64)
                require_labels(labels, len(self.schema.classes), first, str(self.labels))
                records = resize(images, self.schema.side).reshape(len(images), -1)
                yield Batch(records, labels)

    def fingerprint(self) -> str:
        """Of the two files' names, sizes and times."""
        files = (self.images, self.labels)
        return files_fingerprint(files, self.images.parent, "idx", self.count)


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return path.open("rb")


def _header(file: IO[bytes], path: Path, rank: int) -> tuple[int, ...]:
    magic = file.read(4)
    if len(magic) < 4 or magic != bytes((0, 0, _UNSIGNED_BYTE, rank)):
        raise DataError(
            f"{path}: not an IDX file of unsigned bytes in {rank} dimension{'s'[: rank > 1]}"
        )
    sizes = file.read(4 * rank)
    if len(sizes) < 4 * rank:
        raise DataError(f"{path}: cut short: it ends within its header")
    return struct.unpack(f">{rank}I", sizes)


def _dimensions(path: Path, rank: int) -> tuple[int, ...]:
    with _reading(path), _open(path) as file:
        dimensions = _header(file, path, rank)
    if rank == 3 and min(dimensions[1:]) < 1:
        raise SchemaError(f"{path}: images of {dimensions[1]}x{dimensions[2]} pixels")
    return dimensions


def _read(
    path: Path, rank: int, size: int, start: int = 0, stop: int | None = None
) -> Generator[tuple[int, NDArray[np.uint8]], None, None]:
    """Yield (number of the first item, items) for `size` items at a time."""
    with _reading(path), _open(path) as file:
        count, *shape = _header(file, path, rank)
        item = int(np.prod(shape, dtype=np.int64))
        end = count if stop is None else min(stop, count)
        file.seek(start * item, io.SEEK_CUR)  # a compressed file is read through
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


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn a decompressor's or the system's refusal into one clear line."""
    try:
        yield
    except EOFError as error:
        raise DataError(f"{path}: cut short: the gzip stream has no end") from error
    except (zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: damaged: {error}") from error
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
