"""NumPy archives with images `x` and labels `y` (or `x_train`, `y_train`, `x_test`, `y_test`).

Arrays are read from the archive piece by piece, so memory does not grow with their length.
"""

from __future__ import annotations

import contextlib
import io
import math
import zipfile
import zlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, SchemaError
from ..schema import PIXEL_LEVELS, ImageSchema
from .base import (
    Batch,
    files_fingerprint,
    numbered_classes,
    require_labels,
    require_records,
    resize,
    square_side,
)

_LABEL_PIECE: Final = 1 << 16


@dataclass(frozen=True)
class NpzSource:
    """Images and labels in an .npz archive."""

    path: Path
    x: str
    y: str
    count: int
    height: int
    width: int
    schema: ImageSchema

    @classmethod
    def open(
        cls, path: Path, split: str, image_size: int | None, class_count: int | None
    ) -> NpzSource:
        """Read the arrays' headers.

        Raises:
            DataError: an array is missing or of the wrong type, or the two disagree.
            SchemaError: sizes or classes that are not supported.
        """
        with _reading(path), zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
        x, y = next(
            ((x, y) for x, y in ((f"x_{split}", f"y_{split}"), ("x", "y")) if f"{x}.npy" in names),
            ("x", "y"),
        )
        for name in (x, y):
            if f"{name}.npy" not in names:
                raise DataError(f"{path}: holds no array named {name}")
        shape, dtype = _header(path, x)
        label_shape, label_dtype = _header(path, y)
        where = f"{path}: {x}"
        if dtype.kind != "f" and dtype != np.uint8:
            raise DataError(f"{where} is {dtype}: store pixels as uint8, or as floats in [0, 1]")
        if label_dtype.kind not in "iu":
            raise DataError(f"{path}: {y} is {label_dtype}: store labels as integers from 0")
        if len(label_shape) == 0 or math.prod(label_shape[1:]) != 1:
            raise DataError(f"{path}: {y} has shape {label_shape}: store one label a record")
        if not shape or shape[0] != label_shape[0]:
            raise DataError(
                f"{path}: {x} holds {shape[0] if shape else 0} images but {y} holds "
                f"{label_shape[0]} labels: they do not belong together"
            )
        require_records(shape[0], where)
        height, width = _image_shape(shape, where)
        side, side_origin = square_side(height, width, image_size, where)
        pieces = (p.reshape(-1).astype(np.int64) for _, p in _read(path, y, _LABEL_PIECE))
        classes, classes_origin = numbered_classes(class_count, pieces)
        schema = ImageSchema(side, classes, side_origin, classes_origin)
        return cls(path, x, y, shape[0], height, width, schema)

    def __len__(self) -> int:
        return self.count

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Yield the images in the order of the array."""
        with (
            contextlib.closing(_read(self.path, self.x, size, start, stop)) as image_pieces,
            contextlib.closing(_read(self.path, self.y, size, start, stop)) as label_pieces,
        ):
            for (first, raw), (_, raw_labels) in zip(image_pieces, label_pieces, strict=True):
                labels = raw_labels.reshape(-1).astype(np.int64)
                where = f"{self.path}: {self.y}"
                require_labels(labels, len(self.schema.classes), first, where)
                pixels = _to_pixels(raw, first, f"{self.path}: {self.x}")
                images = resize(pixels.reshape(-1, self.height, self.width), self.schema.side)
                yield Batch(images.reshape(len(images), -1), labels)

    def fingerprint(self) -> str:
        """Of the archive's name, size and time, and which arrays of it are read."""
        return files_fingerprint((self.path,), self.path.parent, "npz", self.x, self.y, self.count)


def _image_shape(shape: tuple[int, ...], where: str) -> tuple[int, int]:
    """Height and width of images stored as (n, h, w), with a channel of 1, or flat."""
    match shape[1:]:
        case (height, width) | (height, width, 1) | (1, height, width):
            return height, width
        case (inputs,) if math.isqrt(inputs) ** 2 == inputs:
            return math.isqrt(inputs), math.isqrt(inputs)
        case _:
            raise SchemaError(
                f"{where} has shape {shape}: one-channel images are (n, height, width)"
            )


def _to_pixels(raw: NDArray[Any], first: int, where: str) -> NDArray[np.uint8]:
    if raw.dtype == np.uint8:
        return raw
    flat = raw.reshape(len(raw), -1)
    wrong = np.flatnonzero(~((flat >= 0) & (flat <= 1)).all(axis=1))
    if wrong.size:
        raise DataError(
            f"{where}: record {first + int(wrong[0])} has a value outside [0, 1]: "
            "store pixels as uint8 in 0..255, or as floats in [0, 1]"
        )
    pixels: NDArray[np.uint8] = np.rint(raw * PIXEL_LEVELS).astype(np.uint8)
    return pixels


def _header(path: Path, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    with _reading(path), zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
        return _array_header(file, path, name)


def _array_header(file: IO[bytes], path: Path, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, by_columns, dtype = np.lib.format.read_array_header_2_0(file)
    if dtype.hasobject:
        raise DataError(f"{path}: {name} holds Python objects, which dpntk never loads")
    if by_columns and len(shape) > 1:
        raise DataError(
            f"{path}: {name} is stored by columns: save numpy.ascontiguousarray({name}) instead"
        )
    return shape, dtype


def _read(
    path: Path, name: str, size: int, start: int = 0, stop: int | None = None
) -> Generator[tuple[int, NDArray[Any]], None, None]:
    """Yield (number of the first item, items) for `size` items at a time."""
    with _reading(path), zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
        (count, *shape), dtype = _array_header(file, path, name)
        item = math.prod(shape) * dtype.itemsize
        end = count if stop is None else min(stop, count)
        file.seek(start * item, io.SEEK_CUR)  # a compressed array is read through
        for first in range(start, end, size):
            wanted = min(size, end - first)
            content = file.read(wanted * item)
            if len(content) < wanted * item:
                raise DataError(
                    f"{path}: {name} is cut short: it ends after "
                    f"{first + len(content) // max(item, 1)} of {count} records"
                )
            yield first, np.frombuffer(content, dtype=dtype).reshape(wanted, *shape)


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn the archive reader's refusals into one clear line."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError) as error:
        raise DataError(f"{path}: not a whole .npz archive: {error}") from error
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
