"""NumPy arrays in a file: an .npy file, or a member of an .npz archive.

Values that are stored as they are get mapped into memory, a window at a time; compressed ones are
decompressed piece by piece. Python objects (pickles) are never loaded.
"""

from __future__ import annotations

import contextlib
import io
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .base import reading

_LOCAL_HEADER: Final = 30
_ENCRYPTED: Final = 1


@dataclass(frozen=True)
class ArrayFile:
    """One array, of which the header has been read.

    Attributes:
        path: the file.
        name: what the array is called in messages, and in an archive.
        shape: at least one dimension.
        dtype: never of objects.
        offset: where its values begin in the file; None if they are compressed.
    """

    path: Path
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int | None

    @classmethod
    def open(cls, path: Path) -> ArrayFile:
        """Read the header of an .npy file.

        Raises:
            DataError: it is no array, or none that dpntk reads.
        """
        with _reading_npy(path), path.open("rb") as file:
            shape, dtype = _header(file, path, path.stem)
            return cls(path, path.stem, shape, dtype, file.tell())._whole()

    @classmethod
    def open_member(cls, path: Path, name: str) -> ArrayFile:
        """Read the header of an array in an .npz archive.

        Raises:
            DataError: the archive is damaged, or the array is none that dpntk reads.
        """
        with reading_npz(path), zipfile.ZipFile(path) as archive:
            member = archive.getinfo(f"{name}.npy")
            with archive.open(member) as file:
                shape, dtype = _header(file, path, name)
                header_bytes = file.tell()
            if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & _ENCRYPTED:
                return cls(path, name, shape, dtype, None)
            with path.open("rb") as whole:
                whole.seek(member.header_offset)
                lengths = struct.unpack("<HH", whole.read(_LOCAL_HEADER)[-4:])
            offset = member.header_offset + _LOCAL_HEADER + sum(lengths) + header_bytes
            return cls(path, name, shape, dtype, offset)._whole()

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def item_bytes(self) -> int:
        """Size of one of its items, along the first dimension."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def read(
        self, size: int, start: int = 0, stop: int | None = None
    ) -> Generator[tuple[int, NDArray[Any]], None, None]:
        """Yield (number of the first item, items) for `size` items at a time.

        Raises:
            DataError: the file is damaged, or has been cut short meanwhile.
        """
        wanted = range(len(self))[start:stop]
        if self.offset is None:
            yield from self._decompressed(wanted, size)
            return
        for first in wanted[::size]:
            shape = (min(size, wanted.stop - first), *self.shape[1:])
            with _reading_npy(self.path):
                place = self.offset + first * self.item_bytes
                window = np.memmap(self.path, self.dtype, "r", place, shape)
                items = np.array(window)  # what is not copied could vanish with the file
            yield first, items

    def _decompressed(
        self, wanted: range, size: int
    ) -> Generator[tuple[int, NDArray[Any]], None, None]:
        with (
            reading_npz(self.path),
            zipfile.ZipFile(self.path) as archive,
            archive.open(f"{self.name}.npy") as file,
        ):
            _header(file, self.path, self.name)
            file.seek(wanted.start * self.item_bytes, io.SEEK_CUR)
            for first in wanted[::size]:
                count = min(size, wanted.stop - first)
                content = file.read(count * self.item_bytes)
                if len(content) < count * self.item_bytes:
                    raise self._cut_short(first + len(content) // self.item_bytes)
                yield first, np.frombuffer(content, self.dtype).reshape(count, *self.shape[1:])

    def _whole(self) -> ArrayFile:
        assert self.offset is not None
        there = self.path.stat().st_size - self.offset
        if there < len(self) * self.item_bytes:
            raise self._cut_short(max(there, 0) // max(self.item_bytes, 1))
        return self

    def _cut_short(self, items: int) -> DataError:
        return DataError(
            f"{self.path}: {self.name} is cut short: it ends after {items} of {len(self)} records"
        )


def _header(file: IO[bytes], path: Path, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    try:
        if version == (1, 0):
            shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
        else:
            shape, by_columns, dtype = np.lib.format.read_array_header_2_0(file)
    except (tokenize.TokenError, SyntaxError) as error:  # the header is written like Python
        raise ValueError(f"{name} has a header that cannot be read") from error
    if dtype.hasobject:
        raise DataError(f"{path}: {name} holds Python objects, which dpntk never loads")
    if not shape:
        raise DataError(f"{path}: {name} is a single number: store one item a record")
    if min(shape) < 0:
        raise ValueError(f"{name} has the shape {shape}")
    if by_columns and len(shape) > 1:
        raise DataError(
            f"{path}: {name} is stored by columns: save numpy.ascontiguousarray({name}) instead"
        )
    return shape, dtype


@contextlib.contextmanager
def _reading_npy(path: Path) -> Iterator[None]:
    """Turn NumPy's refusals into one clear line."""
    with reading(path):
        try:
            yield
        except (ValueError, EOFError, struct.error) as error:
            reason = " ".join(str(error).split())
            raise DataError(f"{path}: not a whole .npy file: {reason}") from error


@contextlib.contextmanager
def reading_npz(path: Path) -> Iterator[None]:
    """Turn the archive reader's refusals into one clear line."""
    with reading(path):
        try:
            yield
        except (
            zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, struct.error,
        ) as error:  # fmt: skip
            reason = " ".join(str(error).split())
            raise DataError(f"{path}: not a whole .npz archive: {reason}") from error
