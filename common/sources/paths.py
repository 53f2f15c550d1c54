"""Paths of records: files and folders on this machine or in object storage."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..address import is_address, is_flattened_address
from ..errors import DataError
from ..storage import untrusted_files
from .remote import RemotePath

AnyPath = Path | RemotePath


def located(data: Path | str) -> AnyPath:
    """The file or folder at a path or address.

    Raises:
        DataError: it is an address that does not answer, or an address mistaken for a path.
    """
    if isinstance(data, str) and is_address(data):
        return RemotePath.at(data)
    path = Path(data)
    if is_flattened_address(str(path)) and not path.exists():
        raise DataError(
            f"{path}: there is no such file or folder; an address of object storage has two "
            "slashes, and is a text in Python, for a Path drops one of them"
        )
    return path


@contextlib.contextmanager
def opened(path: AnyPath, ahead: int | None = None) -> Iterator[BinaryIO]:
    """Open a file for reading.

    Args:
        path: the file.
        ahead: the number of bytes that will be read from the first position on, if known: no more
            of an object is fetched.

    Raises:
        DataError: it does not exist, cannot be read, or is replaced while being read.
    """
    if isinstance(path, RemotePath):
        with path.opened(ahead) as file:
            yield file
    else:
        with untrusted_files.opened(path, None, refusal=DataError) as file:
            yield file


def for_arrow(
    path: AnyPath, ahead: int | None = None
) -> contextlib.AbstractContextManager[BinaryIO | str]:
    """A file as Arrow can open it: by its name, if that is in UTF-8, and otherwise already open.

    Args:
        path: the file.
        ahead: see `opened`.
    """
    if not isinstance(path, RemotePath):
        with contextlib.suppress(UnicodeEncodeError):
            str(path).encode()
            return contextlib.nullcontext(str(path))
    return opened(path, ahead)


def read(path: AnyPath, most: int) -> bytes:
    """All bytes of a file.

    Raises:
        DataError: it has more than `most`, or cannot be read.
    """
    return (
        path.read(most)
        if isinstance(path, RemotePath)
        else untrusted_files.read(path, most, refusal=DataError)
    )


def size_of(path: AnyPath) -> int:
    """The size of a file in bytes."""
    return path.size if isinstance(path, RemotePath) else path.stat().st_size


def require_unchanged(path: AnyPath) -> None:
    """Refuse an object that was replaced while it was read; `opened` checks this at its end.

    Raises:
        DataError: it was replaced.
    """
    if isinstance(path, RemotePath):
        path.require_unchanged()
