"""CIFAR-10's binary files: `data_batch_1.bin` and so on, and `test_batch.bin`.

A record is one byte for the label and 3,072 bytes for the pixels: the red values of a 32x32 image
row by row, then the green ones, then the blue ones (Krizhevsky 2009, "Learning Multiple Layers of
Features from Tiny Images"). The version for Python consists of pickles, which are never loaded.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...schema.image import COLOUR, ImageSchema
from ..base import (
    Batch,
    files_fingerprint,
    read_in_batches,
    records_at_a_time,
    require_records,
)
from ..options import SourceOptions
from ..paths import AnyPath, opened, size_of
from ..shards import overlaps
from .decoding.layout import PixelLayout
from .labels import Classes, labelled_classes

_SHAPE: Final = (COLOUR, 32, 32)
_RECORD: Final = 1 + 3 * 32 * 32
_PIECE: Final = 1 << 12
_NAME: Final = re.compile(r"(?P<what>data_batch_\d+|test_batch)(?P<suffix>\.bin)?")
_SPLITS: Final = {"train": "data_batch", "test": "test_batch"}


def holds_cifar_files(folder: AnyPath) -> bool:
    """Whether a folder looks like CIFAR-10's."""
    return any(_NAME.fullmatch(file.name) for file in folder.iterdir())


@dataclass(frozen=True)
class CifarSource:
    """Images and labels in CIFAR's binary files, in the order of their numbers.

    Attributes:
        files: the files of one split.
        counts: the number of records in each file.
        layout: how the images are stored.
        classes: the classes, and the labels that stand for them.
        schema: what is publicly known of the records.
    """

    files: tuple[AnyPath, ...]
    counts: tuple[int, ...]
    layout: PixelLayout
    classes: Classes
    schema: ImageSchema

    @classmethod
    def open(cls, folder: AnyPath, options: SourceOptions) -> CifarSource:
        """Count the records.

        Raises:
            DataError: there are no such files, or only pickles, or a file is truncated.
            SchemaError: sizes or classes are not supported.
        """
        files = tuple(_files(folder, options.split))
        counts = []
        for file in files:
            count, rest = divmod(size_of(file), _RECORD)
            if rest:
                raise DataError(
                    f"{file}: cut short, or none of CIFAR-10's files: it ends within record {count}"
                )
            counts.append(count)
        require_records(sum(counts), str(files[0]))
        layout = PixelLayout.of(_SHAPE, options, str(files[0]))
        pieces = (
            part[:, 0]
            for file, count in zip(files, counts, strict=True)
            for _, part in _read(file, _PIECE, 0, count)
        )
        classes = labelled_classes(options, pieces, str(folder))
        schema = layout.form.schema(classes)
        return cls(files, tuple(counts), layout, classes, schema)

    def __len__(self) -> int:
        return sum(self.counts)

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Yield the images file by file."""
        yield from read_in_batches(self._pieces(size, start, stop), size)

    def fingerprint(self) -> str:
        """Digest of the files' names, sizes and times."""
        return files_fingerprint(self.files, "cifar", self.counts)

    def _pieces(self, size: int, start: int, stop: int | None) -> Generator[Batch, None, None]:
        size = records_at_a_time(size, _RECORD)
        for index, begin, end in overlaps(self.counts, start, stop):
            file = self.files[index]
            with contextlib.closing(_read(file, size, begin, end)) as parts:
                for first, part in parts:
                    labels = self.classes.indices(part[:, 0], first, str(file))
                    yield Batch(self.layout.records(part[:, 1:], first, str(file)), labels)


def _files(folder: AnyPath, split: str) -> list[AnyPath]:
    """The binary files of a split, in the order of their numbers.

    Raises:
        DataError: some or all are missing.
    """
    found = [(file, _NAME.fullmatch(file.name)) for file in folder.iterdir()]
    wanted = [(file, name) for file, name in found if name and _SPLITS[split] in name["what"]]
    binary = [file for file, name in wanted if name["suffix"]]
    if wanted and not binary:
        raise DataError(
            f"{wanted[0][0]}: a pickle, which dpntk never loads: fetch CIFAR-10's binary version"
        )
    if not binary:
        raise DataError(f"{folder}: there is no {_SPLITS[split]}*.bin in it")
    binary.sort(key=_number)
    missing = set(range(1, _number(binary[-1]))) - set(map(_number, binary))
    if missing:
        raise DataError(f"{folder}: data_batch_{min(missing)}.bin is missing")
    return binary


def _number(file: AnyPath) -> int:
    return int("".join(filter(str.isdigit, file.name)) or 0)


def _read(
    file: AnyPath, size: int, start: int, stop: int
) -> Generator[tuple[int, NDArray[np.uint8]], None, None]:
    """Yield (number of the first record, records) for `size` records at a time."""
    with opened(file) as content:
        content.seek(start * _RECORD)
        for first in range(start, stop, size):
            count = min(size, stop - first)
            read = content.read(count * _RECORD)
            if len(read) < count * _RECORD:
                raise DataError(f"{file}: cut short since it was opened")
            yield first, np.frombuffer(read, dtype=np.uint8).reshape(count, _RECORD)
