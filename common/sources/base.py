"""What every source of records offers, and the checks that they share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ..errors import DataError, SchemaError
from ..schema import ImageSchema, Origin


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive records.

    Attributes:
        records: uint8 (b, inputs), values 0..levels of the schema.
        labels: int64 (b,), indices into the schema's classes.
    """

    records: NDArray[np.uint8]
    labels: NDArray[np.int64]


class Source(Protocol):
    """A data set that is read from front to back in a fixed order."""

    @property
    def schema(self) -> ImageSchema:
        """What is publicly known of the records."""
        ...

    def __len__(self) -> int:
        """Number of records, known without reading them."""
        ...

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Yield records start..stop-1 in order, `size` at a time (fewer in the last batch).

        No more is read than these records need.

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
        """SHA-256, in hexadecimal, of what tells these data from others without reading them.

        Names (below the data's folder), sizes and times of change of the files, and how many
        records there are: data that changed meanwhile have another fingerprint.

        Raises:
            DataError: a file is not there any more.
        """
        ...


def files_fingerprint(files: Iterable[Path], folder: Path, *what: object) -> str:
    """SHA-256 of files' names below `folder`, their sizes and times of change in ns.

    Args:
        files: in a fixed order.
        folder: that they lie in, at whatever depth; its own name does not count.
        what: anything else that tells the data from others, such as the number of records.

    Raises:
        DataError: a file is not there any more.
    """
    collected = hashlib.sha256(repr(what).encode())
    for file in files:
        try:
            status = file.stat()
        except OSError as error:
            raise DataError(f"{file}: {error.strerror}") from error
        name = file.relative_to(folder).as_posix()
        collected.update(f"{name!r} {status.st_size} {status.st_mtime_ns}\n".encode())
    return collected.hexdigest()


def square_side(height: int, width: int, image_size: int | None, where: str) -> tuple[int, Origin]:
    """The side of the images of a source, and where it came from.

    Raises:
        SchemaError: the images are not square and no size to resize them to was given.
    """
    if image_size is not None:
        return image_size, Origin.DECLARED
    if height != width:
        raise SchemaError(
            f"{where}: images of {height}x{width} pixels are not square: "
            f"--image-size {min(height, width)} resizes every image to "
            f"{min(height, width)}x{min(height, width)}"
        )
    return height, Origin.FORMAT


def resize(images: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Resize images (b, height, width) to (b, side, side), one by one, each from itself alone."""
    if images.shape[1:] == (side, side):
        return images
    resized = [
        np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.BILINEAR))
        for image in images
    ]
    return np.stack(resized) if resized else np.empty((0, side, side), dtype=np.uint8)


def numbered_classes(
    count: int | None, labels: Iterator[NDArray[np.int64]]
) -> tuple[tuple[str, ...], Origin]:
    """Class names "0", "1", ... as declared, or else up to the largest label found.

    Args:
        count: how many classes the user declared, if so.
        labels: all labels, in pieces; read only where `count` is None.
    """
    if count is not None:
        return tuple(map(str, range(count))), Origin.DECLARED
    largest = max((int(piece.max()) for piece in labels if piece.size), default=0)
    return tuple(map(str, range(largest + 1))), Origin.FROM_DATA


def require_labels(labels: NDArray[np.int64], classes: int, first: int, where: str) -> None:
    """Check that every label names a class.

    Args:
        labels: int64 (b,).
        classes: how many classes there are.
        first: number of the record that `labels[0]` belongs to, from 0.
        where: the file, for the message.

    Raises:
        SchemaError: a label is negative or too large.
    """
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if wrong.size:
        index = int(wrong[0])
        raise SchemaError(
            f"{where}: record {first + index} has label {labels[index]}, "
            f"but the labels of {classes} classes are 0 to {classes - 1}: correct it, or declare "
            "more with --classes"
        )


def require_records(count: int, where: str) -> None:
    """Refuse an empty data set.

    Raises:
        DataError: there is nothing to read.
    """
    if count < 1:
        raise DataError(f"{where}: there are no records in it")
