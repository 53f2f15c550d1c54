"""NumPy arrays with images `x` and labels `y` (or `x_train`, `y_train`, `x_test`, `y_test`).

They may be in one .npz archive, in a folder with one archive for each part of the data or one .npy
file for each array, or in memory. Images without labels form one class; they may also be one .npy
file.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import DataError
from ...schema.image import ImageSchema
from ..base import (
    Batch,
    files_fingerprint,
    read_in_batches,
    records_at_a_time,
    records_fingerprint,
    require_records,
)
from ..options import SourceOptions
from ..paths import AnyPath
from .decoding.layout import PixelLayout
from .decoding.pixels import require_one_meaning, require_pixels
from .in_memory import InMemoryArray
from .labels import Classes, labelled_classes, no_labels, one_class
from .npy import ArrayFile, opened_npz

_LABEL_PIECE: Final = 1 << 16

Array = ArrayFile | InMemoryArray


@dataclass(frozen=True)
class ArraySource:
    """Images in arrays, with labels if there are any, in files or in memory.

    Attributes:
        x: the images.
        y: the labels; None if there are none.
        layout: how the images are stored.
        classes: the classes, and the labels that stand for them.
        schema: what is publicly known of the records.
    """

    x: Array
    y: Array | None
    layout: PixelLayout
    classes: Classes
    schema: ImageSchema

    @classmethod
    def open_npz(cls, path: AnyPath, options: SourceOptions) -> ArraySource:
        """Read the headers of the arrays in an archive.

        Raises:
            DataError: an array is missing or has the wrong type, or the two disagree.
            SchemaError: sizes or classes are not supported.
        """
        with opened_npz(path) as (_, archive):
            members = archive.namelist()
        x, y = _names(members, options.split, path, "array")
        images = ArrayFile.open_member(path, x)
        labels = None if y is None else ArrayFile.open_member(path, y)
        return cls._open(images, labels, options)

    @classmethod
    def open_npz_part(cls, folder: AnyPath, options: SourceOptions) -> ArraySource:
        """Read the headers of the arrays in a part's archive, such as `train.npz`.

        Raises:
            DataError: there is no such archive, one of its arrays is missing or has the wrong type,
                or the two disagree.
            SchemaError: sizes or classes are not supported.
        """
        archive = folder / f"{options.split}.npz"
        if not archive.is_file():
            raise DataError(f"{folder}: holds no {archive.name}")
        return cls.open_npz(archive, options)

    @classmethod
    def open_folder(cls, folder: AnyPath, options: SourceOptions) -> ArraySource:
        """Read the headers of .npy files in a folder.

        Raises:
            DataError: a file is missing or has the wrong type, or the two disagree.
            SchemaError: sizes or classes are not supported.
        """
        files = (file.name for file in folder.iterdir())
        x, y = _names(files, options.split, folder, ".npy file")
        images = ArrayFile.open(folder / f"{x}.npy")
        labels = None if y is None else ArrayFile.open(folder / f"{y}.npy")
        return cls._open(images, labels, options)

    @classmethod
    def open_npy(cls, path: AnyPath, options: SourceOptions) -> ArraySource:
        """Read the header of an .npy file of images without labels.

        Raises:
            DataError: it has the wrong type.
            SchemaError: sizes or classes are not supported.
        """
        return cls._open(ArrayFile.open(path), None, options)

    @classmethod
    def open_in_memory(
        cls, images: ArrayLike, labels: ArrayLike | None, options: SourceOptions
    ) -> ArraySource:
        """Open arrays in memory.

        Raises:
            DataError: one has the wrong type, or the two disagree.
            SchemaError: sizes or classes are not supported.
        """
        x = InMemoryArray.of("images", images)
        return cls._open(x, None if labels is None else InMemoryArray.of("labels", labels), options)

    @classmethod
    def _open(cls, x: Array, y: Array | None, options: SourceOptions) -> ArraySource:
        where = x.where
        require_pixels(x.dtype, where, options)
        if y is not None:
            _require_labels_of(x, y)
        require_records(len(x), where)
        layout = PixelLayout.of(x.shape[1:], options, where)
        if y is None:
            classes = one_class(options, where)
        else:
            pieces = (labels.reshape(-1) for _, labels in y.read(_LABEL_PIECE))
            texts = y.dtype.kind == "U"
            classes = labelled_classes(options, pieces, y.where, texts=texts)
        schema = layout.form.schema(classes)
        return cls(x, y, layout, classes, schema)

    def __len__(self) -> int:
        return len(self.x)

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Yield the images in the array's order."""
        yield from read_in_batches(self._pieces(size, start, stop), size)

    def fingerprint(self) -> str:
        """Digest of the files' names, sizes and times, and of the names of the arrays read.

        For arrays in memory, a digest of the records.
        """
        if isinstance(self.x, InMemoryArray) or isinstance(self.y, InMemoryArray):
            return records_fingerprint(self.batches(_LABEL_PIECE), self.schema)
        arrays = [array for array in (self.x, self.y) if array is not None]
        files = {array.path.name: array.path for array in arrays}.values()
        what = ("arrays", *(array.name for array in arrays), len(self))
        return files_fingerprint(files, *what)

    def _pieces(self, size: int, start: int, stop: int | None) -> Generator[Batch, None, None]:
        size = records_at_a_time(size, self.x.item_bytes)
        with (
            contextlib.closing(self.x.read(size, start, stop)) as image_pieces,
            contextlib.closing(self._labels(size, start, stop)) as label_pieces,
        ):
            for (first, raw), labels in zip(image_pieces, label_pieces, strict=True):
                require_one_meaning(raw, self.x.where, self.layout.form, first)
                yield Batch(self.layout.records(raw, first, self.x.where), labels)

    def _labels(
        self, size: int, start: int, stop: int | None
    ) -> Generator[NDArray[np.int64], None, None]:
        if self.y is None:
            wanted = range(len(self))[start:stop]
            yield from no_labels(size, wanted.start, wanted.stop)
            return
        for first, raw in self.y.read(size, start, stop):
            yield self.classes.indices(raw.reshape(-1), first, self.y.where)


def holds_npy_files(folder: AnyPath) -> bool:
    """Whether a folder holds arrays of images."""
    names = ("x.npy", "x_train.npy", "x_test.npy")
    return any((folder / name).is_file() for name in names)


def holds_npz_parts(folder: AnyPath) -> bool:
    """Whether a folder holds archives, each with a part of a data set."""
    return any((folder / name).is_file() for name in ("train.npz", "test.npz"))


def _names(files: Iterable[str], split: str, where: AnyPath, kind: str) -> tuple[str, str | None]:
    """The names of the arrays of images and labels: those of the split, or of the whole.

    Args:
        files: the names of all arrays, with `.npy`.
        split: "train" or "test".
        where: an archive or a folder.
        kind: what an array is there, for messages.

    Raises:
        DataError: the images are missing, or both a whole and a part could be meant.
    """
    there = set(files)
    kinds = [name for name in ("x", "x_train", "x_test") if f"{name}.npy" in there]
    if "x" in kinds and len(kinds) > 1:
        # Otherwise a single record in one of them would decide whether the others are read.
        raise DataError(
            f"{where}: holds x and {kinds[1]}: keep either x, or x_train and x_test, in one place"
        )
    x, y = (f"x_{split}", f"y_{split}") if f"x_{split}.npy" in there else ("x", "y")
    if f"{x}.npy" not in there:
        held = ", ".join(sorted(file[:-4] for file in there if file.endswith(".npy")))
        raise DataError(
            f"{where}: holds no {kind} named {x}: images are x and labels y, but there is "
            f"{held[:300]}"
        )
    return x, y if f"{y}.npy" in there else None


def _require_labels_of(x: Array, y: Array) -> None:
    """Refuse an array that cannot hold the images' labels.

    Raises:
        DataError: they are neither numbers nor texts, or their number differs.
    """
    where = y.where
    if y.dtype.kind not in "iubfU":
        raise DataError(f"{where} is {y.dtype}: store labels as whole numbers or texts")
    if math.prod(y.shape[1:]) != 1:
        raise DataError(f"{where} has shape {y.shape}: store one label a record")
    if len(x) != len(y):
        raise DataError(
            f"{x.where} holds {len(x)} images but {y.name} holds {len(y)} labels: they do not "
            "belong together"
        )
