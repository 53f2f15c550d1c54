"""Files and folders in object storage, with the part of a path's interface that sources use.

fsspec talks to the storage; it is asked only for lists of objects and for ranges of their bytes. No
object is kept on the disk, nor in memory beyond what is read ahead.
"""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, BinaryIO, Final, cast

from ..address import protocol_of, require_plain
from ..errors import DataError, DpntkError

_AHEAD: Final = 1 << 22
_S3: Final = "pip install s3fs, or dpntk with its extra s3"
_GCS: Final = "pip install gcsfs, or dpntk with its extra gcs"
_ADVICE: Final = {"s3": _S3, "s3a": _S3, "gs": _GCS, "gcs": _GCS}
"""The installation advice for each protocol."""
_VERSIONS: Final = (
    "ETag", "etag", "generation", "Content-MD5", "mtime", "LastModified", "last_modified",
    "Last-Modified", "modify", "created",
)  # fmt: skip
"""Storages' names for the property that changes when an object is replaced; the first present
counts."""
_LOGGERS: Final = ("fsspec", "gcsfs", "s3fs")
_UNHEARD: Final = logging.NullHandler()
"""Keeps libraries' logs of failures off the terminal; an application can still set up logging."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The storage's information on an object or a folder.

    Attributes:
        kind: "file" or "directory", or something else.
        size: the size in bytes.
        version: changes when the object is replaced; empty for folders.
    """

    kind: str
    size: int
    version: str

    @classmethod
    def of(cls, info: Mapping[str, Any], where: str) -> _Found:
        kind, size = str(info["type"]), info.get("size")
        if kind != "file":
            return cls(kind, 0, "")
        version = next((info[name] for name in _VERSIONS if info.get(name)), "")
        if isinstance(version, datetime):  # lists may give times in seconds only
            version = version.timestamp()
        if size is None or not version:
            raise DataError(
                f"{where}: its storage does not say how large it is and when it was changed: "
                "copy it first"
            )
        return cls(kind, int(size), str(version))


class RemotePath:
    """An object, or a folder of objects. Its contents are SENSITIVE.

    The storage is asked about it once. After an object was read, an error is raised if it has been
    replaced, so that no mixture of two data sets goes unnoticed.

    Errors name the address and the type of a library's error. Libraries' messages may hold more
    than is meant for logs, so they are never quoted.
    """

    def __init__(
        self, filesystem: Any, path: str, address: str, found: _Found | None  # noqa: ANN401
    ) -> None:  # fmt: skip
        """Store the arguments; `RemotePath.at` asks the storage.

        Args:
            filesystem: fsspec's file system.
            path: the object's path in `filesystem`.
            address: the address, for messages.
            found: the storage's information; None if nothing exists there.
        """
        self._filesystem = filesystem
        self._path = path
        self._address = address
        self._found = found

    @classmethod
    def at(cls, address: str) -> RemotePath:
        """The object or folder at an address.

        Credentials, regions and the like come from where the storage's own tools find them.

        Raises:
            DataError: the address is invalid, its reader is not installed, or the storage cannot be
                reached or does not answer.
        """
        require_plain(address, refusal=DataError)
        filesystem, path = _connected(address)
        here = cls(filesystem, path, address.rstrip("/"), None)
        here._found = here._look()
        return here

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self._path.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        """The end of the name, from its last dot on."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> str:
        """The address of the folder that holds it."""
        return self._address.rpartition("/")[0]

    @property
    def size(self) -> int:
        """The size in bytes."""
        return 0 if self._found is None else self._found.size

    @property
    def state(self) -> str:
        """Size and version: what changes when the object is replaced."""
        return "" if self._found is None else f"{self._found.size} {self._found.version}"

    def __str__(self) -> str:
        return self._address

    def __repr__(self) -> str:
        return f"RemotePath({self._address!r})"

    def __truediv__(self, name: str) -> RemotePath:
        """The entry with this name in the folder."""
        return self._child(name, self._held.get(name))

    def iterdir(self) -> Iterator[RemotePath]:
        """The entries of this folder."""
        for name, found in self._held.items():
            yield self._child(name, found)

    def exists(self) -> bool:
        """Whether anything exists there."""
        return self._found is not None

    def is_file(self) -> bool:
        """Whether it is an object."""
        return self._found is not None and self._found.kind == "file"

    def is_dir(self) -> bool:
        """Whether it is a folder."""
        return self._found is not None and self._found.kind == "directory"

    def is_symlink(self) -> bool:
        """Whether it is a link: objects in storage never are."""
        return False

    @contextlib.contextmanager
    def opened(self, ahead: int | None = None) -> Iterator[BinaryIO]:
        """Open an object for reading, range by range.

        The end of the block checks whether the object has been replaced, but not if a generator is
        closed within: a caller who stops early calls `require_unchanged`.

        Args:
            ahead: the least number of bytes to read at a time; 0 to read exactly what is asked for.
                4 MiB if None.

        Raises:
            DataError: it does not exist, cannot be read, or has been replaced.
        """
        if not self.is_file():
            raise DataError(f"{self}: there is no such file")
        raw, ahead = _RemoteFile(self), _AHEAD if ahead is None else ahead
        file: io.RawIOBase | io.BufferedReader = io.BufferedReader(raw, ahead) if ahead else raw
        with file:
            try:
                yield cast(BinaryIO, file)
            except Exception:
                self.require_unchanged()  # a replacement explains the error better
                raise
            self.require_unchanged()

    def read(self, most: int) -> bytes:
        """All bytes of a small object.

        Raises:
            DataError: it is larger than `most`, cannot be read, or has been replaced.
        """
        if self.size > most:
            raise DataError(
                f"{self}: {self.size:,} bytes, where {most:,} are the most that is read"
            )
        with self.opened(ahead=0) as file:
            return file.read(self.size)

    def range(self, start: int, stop: int) -> bytes:
        """Bytes start..stop-1, or those of them that exist.

        Raises:
            DataError: they cannot be read.
        """
        with self._asking():
            content: bytes = self._filesystem.cat_file(self._path, start=start, end=stop)
        if len(content) > stop - start:
            raise DataError(f"{self}: its storage gives all of it and no parts: copy it first")
        return content

    def require_unchanged(self) -> None:
        """Ask the storage again about the object.

        Raises:
            DataError: the answer has changed.
        """
        if self._look() != self._found:
            raise DataError(
                f"{self}: was replaced while it was read: embed data that nobody writes to"
            )

    @cached_property
    def _held(self) -> dict[str, _Found]:
        """The entries of this folder, by name: some hundred bytes for each."""
        if not self.is_dir():
            return {}
        with self._asking():
            entries = self._filesystem.ls(self._path, detail=True)
        own, held = self._path.strip("/"), {}
        for entry in entries:
            path = str(entry["name"]).strip("/")
            name = path.rpartition("/")[2]
            if path != own and name:  # some storages list a marker for the folder itself
                held[name] = _Found.of(entry, f"{self}/{name}")
        return held

    def _child(self, name: str, found: _Found | None) -> RemotePath:
        path, address = f"{self._path.rstrip('/')}/{name}", f"{self._address}/{name}"
        return RemotePath(self._filesystem, path, address, found)

    def _look(self) -> _Found | None:
        """The storage's present information."""
        with self._asking():
            try:
                info = self._filesystem.info(self._path)
            except FileNotFoundError:
                return None
            return _Found.of(info, str(self))

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Turn any error of a library into one line."""
        try:
            yield
        except DpntkError:
            raise
        except FileNotFoundError:
            raise DataError(f"{self}: there is no such file or folder") from None
        except PermissionError:
            raise DataError(
                f"{self}: no permission to read it: check the credentials in the environment"
            ) from None
        except Exception as error:
            raise DataError(
                f"{self}: cannot be read ({type(error).__name__}): check the address, the "
                "connection and the credentials in the environment"
            ) from None


class _RemoteFile(io.RawIOBase):
    """An object as a file; each read is a request."""

    def __init__(self, path: RemotePath) -> None:
        super().__init__()
        self._path = path
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._path.size}[whence]
        if begin + offset < 0:
            raise ValueError(f"negative seek position {begin + offset}")
        self._place = begin + offset
        return self._place

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - whatever holds bytes
        start = self._place
        stop = min(start + len(buffer), self._path.size)
        content = self._path.range(start, stop) if start < stop else b""
        buffer[: len(content)] = content
        self._place += len(content)
        return len(content)


def _connected(address: str) -> tuple[Any, str]:
    """The file system for an address, and the path in it.

    Nothing is reused from earlier ones: neither lists of objects nor connections.
    """
    from fsspec.core import url_to_fs

    protocol = protocol_of(address)
    for name in _LOGGERS:
        logging.getLogger(name).addHandler(_UNHEARD)
    try:
        filesystem, path = url_to_fs(address, use_listings_cache=False, skip_instance_cache=True)
        return filesystem, str(path)
    except ImportError:
        advice = _ADVICE.get(protocol, f"pip install what fsspec reads {protocol}:// with")
        raise DataError(f"{protocol}:// is not read by what is installed: {advice}") from None
    except Exception as error:
        raise DataError(
            f"{protocol}:// cannot be read ({type(error).__name__}): s3:// and gs:// can, and "
            "whatever else fsspec knows and is installed"
        ) from None
