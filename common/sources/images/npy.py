"""NumPy arrays in a file: an .npy file, or a member of an .npz archive.

Uncompressed values are mapped into memory, a window at a time; compressed ones are decompressed
piece by piece. Python objects (pickles) are never loaded.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import IO, Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..base import reading
from ..paths import AnyPath, opened
from ..remote import RemotePath

_LOCAL_HEADER: Final = 30
_ENCRYPTED: Final = 1
_LONGEST_HEADER: Final = 1 << 14
"""The longest header in bytes; NumPy accepts at most 10,000."""
_MOST_TO_ONE: Final = 1032
"""The most bytes that deflate packs into one."""


@dataclass(frozen=True)
class ArrayFile:
    """An array in a file, whose header has been read.

    Attributes:
        path: the file.
        name: its name in messages and in the archive.
        shape: its shape, of at least one dimension.
        dtype: its type, never of objects.
        offset: where its values begin, in the file or in the decompressed member.
        compressed: whether its values are compressed.
    """

    path: AnyPath
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int
    compressed: bool

    @classmethod
    def open(cls, path: AnyPath) -> ArrayFile:
        """Read the header of an .npy file.

        Raises:
            DataError: it is not an array, or not one that dpntk reads.
        """
        with _reading_npy(path), opened(path, _LONGEST_HEADER) as file:
            shape, dtype, offset = _header(file, path, path.stem)
            array = cls(path, path.stem, shape, dtype, offset, compressed=False)
            array._require_whole(file.seek(0, os.SEEK_END))
            return array

    @classmethod
    def open_member(cls, path: AnyPath, name: str) -> ArrayFile:
        """Read the header of an array in an .npz archive.

        Raises:
            DataError: the archive is damaged, or the array is not one that dpntk reads.
        """
        with opened_npz(path) as (file, archive):
            member = _member(archive, name, path)
            with archive.open(member) as content:
                shape, dtype, offset = _header(content, path, name)
            packed = member.compress_type != zipfile.ZIP_STORED or member.flag_bits & _ENCRYPTED
            array = cls(path, name, shape, dtype, offset, compressed=bool(packed))
            array._require_whole(member.file_size)
            if packed:
                return array
            file.seek(member.header_offset)
            lengths = struct.unpack("<HH", file.read(_LOCAL_HEADER)[-4:])
            begin = member.header_offset + _LOCAL_HEADER + sum(lengths)
            array = replace(array, offset=begin + offset)
            array._require_whole(file.seek(0, os.SEEK_END))
            return array

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def where(self) -> str:
        """Its name in messages."""
        return str(self.path) if self.path.suffix == ".npy" else f"{self.path}: {self.name}"

    @property
    def item_bytes(self) -> int:
        """The size in bytes of one item along the first dimension."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def read(
        self, size: int, start: int = 0, stop: int | None = None
    ) -> Generator[tuple[int, NDArray[Any]], None, None]:
        """Yield (number of the first item, items) for `size` items at a time.

        Raises:
            DataError: the file is damaged, or has been truncated meanwhile.
        """
        wanted = range(len(self))[start:stop]
        if self.compressed:
            with opened_npz(self.path) as (_, archive), archive.open(f"{self.name}.npy") as file:
                yield from self._in_turn(file, wanted, size)
            return
        if isinstance(self.path, RemotePath):
            with opened(self.path) as file:
                yield from self._in_turn(file, wanted, size)
            return
        for first in wanted[::size]:
            shape = (min(size, wanted.stop - first), *self.shape[1:])
            with (
                _reading_npy(self.path),
                opened(self.path) as file,
            ):
                place = self.offset + first * self.item_bytes
                window = np.memmap(file, self.dtype, "r", place, shape)
                items = np.array(window)  # copied, because mapped values could vanish with the file
            yield first, items

    def _in_turn(
        self, file: IO[bytes], wanted: range, size: int
    ) -> Generator[tuple[int, NDArray[Any]], None, None]:
        """Read items sequentially from a file or member that cannot be mapped."""
        file.seek(self.offset + wanted.start * self.item_bytes)
        for first in wanted[::size]:
            count = min(size, wanted.stop - first)
            content = file.read(count * self.item_bytes)
            if len(content) < count * self.item_bytes:
                raise self._cut_short(first + len(content) // self.item_bytes)
            yield first, np.frombuffer(content, self.dtype).reshape(count, *self.shape[1:])

    def _require_whole(self, size: int) -> None:
        """Check that a file or member of `size` bytes can hold what the header announces."""
        there = size - self.offset
        if there < len(self) * self.item_bytes:
            raise self._cut_short(max(there, 0) // max(self.item_bytes, 1))

    def _cut_short(self, items: int) -> DataError:
        return DataError(
            f"{self.path}: {self.name} is cut short: it ends after {items} of {len(self)} records"
        )


def _header(
    content: IO[bytes], path: AnyPath, name: str
) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """The shape and type of an array, and the offset of its values."""
    file = io.BytesIO(content.read(_LONGEST_HEADER))  # a file may announce a header of gigabytes
    version = np.lib.format.read_magic(file)
    try:
        if version == (1, 0):
            shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
        else:
            shape, by_columns, dtype = np.lib.format.read_array_header_2_0(file)
    except (tokenize.TokenError, SyntaxError) as error:  # the header is written like Python
        raise ValueError(f"{name} has a header that cannot be read") from error
    if dtype.hasobject:
        raise DataError(
            f"{path}: {name} holds Python objects, which dpntk never loads: save numbers, "
            "or of texts astype(str)"
        )
    if not shape:
        raise DataError(f"{path}: {name} is a single number: store one item a record")
    if min(shape) < 0:
        raise ValueError(f"{name} has the shape {shape}")
    if by_columns and len(shape) > 1:
        raise DataError(
            f"{path}: {name} is stored by columns: save numpy.ascontiguousarray({name}) instead"
        )
    return shape, dtype, file.tell()


def _member(archive: zipfile.ZipFile, name: str, path: AnyPath) -> zipfile.ZipInfo:
    """An archive's entry for an array.

    Raises:
        DataError: there is no such array, its compression is not NumPy's, or it cannot be as large
            as the archive says.
    """
    try:
        member = archive.getinfo(f"{name}.npy")
    except KeyError as error:
        raise DataError(f"{path}: holds no array named {name}") from error
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(f"{path}: compressed as NumPy does not do it: save it with numpy.savez")
    if member.file_size > member.compress_size * _MOST_TO_ONE:
        raise DataError(f"{path}: {name} cannot be as large as the archive says")
    return member


@contextlib.contextmanager
def _reading_npy(path: AnyPath) -> Iterator[None]:
    """Turn NumPy's errors into one clear line."""
    with reading(path):
        try:
            yield
        except (ValueError, EOFError, struct.error) as error:
            reason = " ".join(str(error).split())
            raise DataError(f"{path}: not a whole .npy file: {reason}") from error


@contextlib.contextmanager
def opened_npz(path: AnyPath) -> Iterator[tuple[BinaryIO, zipfile.ZipFile]]:
    """Open an archive, and turn its reader's errors into one clear line.

    Yields:
        The file, and the archive in it.
    """
    with opened(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                yield file, archive
        except (
            zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, struct.error,
        ) as error:  # fmt: skip
            reason = " ".join(str(error).split())
            raise DataError(f"{path}: not a whole .npz archive: {reason}") from error
