"""NumPy arrays with images `x` and labels `y` (or `x_train`, `y_train`, `x_test`, `y_test`).

They lie in one .npz archive, or each in an .npy file of a folder; or two arrays are in memory.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import DataError, SchemaError
from ...schema.image import PIXEL_LEVELS, ImageSchema
from ..base import (
    Batch,
    files_fingerprint,
    records_at_a_time,
    records_fingerprint,
    regrouped,
    require_labels,
    require_records,
)
from ..prefetch import read_ahead
from .held import HeldArray
from .npy import ArrayFile, opened_npz
from .numbers import numbered_classes
from .sizes import require_image, resize, square_side

_LABEL_PIECE: Final = 1 << 16

Array = ArrayFile | HeldArray


@dataclass(frozen=True)
class ArraySource:
    """Images and labels in two arrays, in files or in memory.

    Attributes:
        x: the images.
        y: the labels.
        height: of the images as they are stored.
        width: of the same.
        schema: what is publicly known of the records.
    """

    x: Array
    y: Array
    height: int
    width: int
    schema: ImageSchema

    @classmethod
    def open_npz(
        cls, path: Path, split: str, image_size: int | None, class_names: tuple[str, ...] | None
    ) -> ArraySource:
        """Read the headers of the arrays in an archive.

        Raises:
            DataError: an array is missing or of the wrong type, or the two disagree.
            SchemaError: sizes or classes that are not supported.
        """
        with opened_npz(path) as (_, archive):
            members = archive.namelist()
        x, y = _names(members, split, f"{path}: holds no array named")
        arrays = ArrayFile.open_member(path, x), ArrayFile.open_member(path, y)
        return cls._open(*arrays, image_size, class_names)

    @classmethod
    def open_folder(
        cls, folder: Path, split: str, image_size: int | None, class_names: tuple[str, ...] | None
    ) -> ArraySource:
        """Read the headers of .npy files in a folder.

        Raises:
            DataError: a file is missing or of the wrong type, or the two disagree.
            SchemaError: sizes or classes that are not supported.
        """
        files = (file.name for file in folder.iterdir())
        x, y = _names(files, split, f"{folder}: holds no .npy file named")
        arrays = ArrayFile.open(folder / f"{x}.npy"), ArrayFile.open(folder / f"{y}.npy")
        return cls._open(*arrays, image_size, class_names)

    @classmethod
    def open_held(
        cls,
        images: ArrayLike,
        labels: ArrayLike,
        image_size: int | None,
        class_names: tuple[str, ...] | None,
    ) -> ArraySource:
        """Take over arrays in memory.

        Raises:
            DataError: one is of the wrong type, or the two disagree.
            SchemaError: sizes or classes that are not supported.
        """
        x, y = HeldArray.of("images", images), HeldArray.of("labels", labels)
        return cls._open(x, y, image_size, class_names)

    @classmethod
    def _open(
        cls, x: Array, y: Array, image_size: int | None, class_names: tuple[str, ...] | None
    ) -> ArraySource:
        where, where_labels = x.where, y.where
        if x.dtype.kind != "f" and x.dtype != np.uint8:
            raise DataError(f"{where} is {x.dtype}: store pixels as uint8, or as floats in [0, 1]")
        if y.dtype.kind not in "iu":
            raise DataError(f"{where_labels} is {y.dtype}: store labels as integers from 0")
        if math.prod(y.shape[1:]) != 1:
            raise DataError(f"{where_labels} has shape {y.shape}: store one label a record")
        if len(x) != len(y):
            raise DataError(
                f"{where} holds {len(x)} images but {y.name} holds {len(y)} labels: they do not "
                "belong together"
            )
        require_records(len(x), where)
        height, width = _image_shape(x.shape, where)
        require_image(height, width, where)
        side, side_origin = square_side(height, width, image_size, where)
        pieces = (labels.reshape(-1).astype(np.int64) for _, labels in y.read(_LABEL_PIECE))
        classes, classes_origin = numbered_classes(class_names, pieces, where_labels)
        return cls(x, y, height, width, ImageSchema(side, classes, side_origin, classes_origin))

    def __len__(self) -> int:
        return len(self.x)

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Yield the images in the order of the array."""
        with contextlib.closing(read_ahead(self._pieces(size, start, stop))) as pieces:
            yield from regrouped(pieces, size)

    def fingerprint(self) -> str:
        """Of the files' names, sizes and times, and which arrays of them are read.

        Of arrays in memory, of the records.
        """
        if isinstance(self.x, HeldArray) or isinstance(self.y, HeldArray):
            return records_fingerprint(self.batches(_LABEL_PIECE), self.schema)
        names = dict.fromkeys((self.x.path.name, self.y.path.name))
        what = ("arrays", self.x.name, self.y.name, len(self))
        return files_fingerprint(self.x.path.parent, names, *what)

    def _pieces(self, size: int, start: int, stop: int | None) -> Generator[Batch, None, None]:
        size = records_at_a_time(size, self.x.item_bytes)
        with (
            contextlib.closing(self.x.read(size, start, stop)) as image_pieces,
            contextlib.closing(self.y.read(size, start, stop)) as label_pieces,
        ):
            for (first, raw), (_, raw_labels) in zip(image_pieces, label_pieces, strict=True):
                labels = raw_labels.reshape(-1).astype(np.int64)
                require_labels(labels, len(self.schema.classes), first, self.y.where)
                pixels = to_pixels(raw, first, self.x.where)
                images = resize(pixels.reshape(-1, self.height, self.width), self.schema.side)
                yield Batch(images.reshape(len(images), -1), labels)


def holds_npy_files(folder: Path) -> bool:
    """Whether a folder holds arrays of images."""
    names = ("x.npy", "x_train.npy", "x_test.npy")
    return any((folder / name).is_file() for name in names)


def _names(files: Iterable[str], split: str, missing: str) -> tuple[str, str]:
    """The names of the arrays of images and of labels: those of the split, or of all."""
    there = set(files)
    x, y = (f"x_{split}", f"y_{split}") if f"x_{split}.npy" in there else ("x", "y")
    for name in (x, y):
        if f"{name}.npy" not in there:
            held = ", ".join(sorted(file[:-4] for file in there if file.endswith(".npy")))
            raise DataError(
                f"{missing} {name}: images are x and labels y, but there is {held[:300]}"
            )
    return x, y


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


def to_pixels(raw: NDArray[Any], first: int, where: str) -> NDArray[np.uint8]:
    """Values as they are stored, uint8 or floats in [0, 1], as pixels 0..255.

    Args:
        raw: (b, ...).
        first: number of the record that `raw[0]` belongs to, from 0.
        where: the file, for the message.

    Raises:
        DataError: a value is outside [0, 1], or no number.
    """
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
