"""Files and folders in object storage, with as much of a local path as sources use.

fsspec knows the storage; what it is asked for are lists of objects, and ranges of their bytes. No
object is kept, neither on the disk nor, beyond what is read ahead, in memory.
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
"""What brings what reads a protocol."""
_VERSIONS: Final = (
    "ETag", "etag", "generation", "Content-MD5", "mtime", "LastModified", "last_modified",
    "Last-Modified", "modify", "created",
)  # fmt: skip
"""What storages call that which changes when an object is replaced; the first that is there."""
_LOGGERS: Final = ("fsspec", "gcsfs", "s3fs")
_UNHEARD: Final = logging.NullHandler()
"""What libraries log of failures is for whoever sets up logging, and not for the terminal."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What the storage says of an object, or of a folder.

    Attributes:
        kind: "file" or "directory", or something else.
        size: in bytes.
        version: changes when the object is replaced; of folders empty.
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
        if isinstance(version, datetime):  # which lists may have in seconds
            version = version.timestamp()
        if size is None or not version:
            raise DataError(
                f"{where}: its storage does not say how large it is and when it was changed: "
                "copy it first"
            )
        return cls(kind, int(size), str(version))


class RemotePath:
    """An object, or a folder of them. What is in it is SENSITIVE.

    What the storage says of it is asked once. Whoever has read an object is told if it has been
    replaced since, so that no mixture of two data sets goes unnoticed.

    Errors name the address, and what kind of error a library met; what libraries say may hold more
    than is meant for logs, so none is quoted.
    """

    def __init__(
        self, filesystem: Any, path: str, address: str, found: _Found | None  # noqa: ANN401
    ) -> None:  # fmt: skip
        """Name it; `RemotePath.at` asks the storage.

        Args:
            filesystem: fsspec's.
            path: of the object, as `filesystem` has it.
            address: for messages.
            found: what the storage says; None if there is nothing.
        """
        self._filesystem = filesystem
        self._path = path
        self._address = address
        self._found = found

    @classmethod
    def at(cls, address: str) -> RemotePath:
        """What lies at an address.

        Credentials, regions and the like come from where the storage's own tools look for them.

        Raises:
            DataError: the address is none, what reads it is not installed, or the storage cannot be
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
        """What the name ends with, from its last dot on."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> str:
        """The address of what it lies in."""
        return self._address.rpartition("/")[0]

    @property
    def size(self) -> int:
        """In bytes."""
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
        """What is called so in this folder."""
        return self._child(name, self._held.get(name))

    def iterdir(self) -> Iterator[RemotePath]:
        """What lies in this folder."""
        for name, found in self._held.items():
            yield self._child(name, found)

    def exists(self) -> bool:
        """Whether there is anything."""
        return self._found is not None

    def is_file(self) -> bool:
        """Whether it is an object."""
        return self._found is not None and self._found.kind == "file"

    def is_dir(self) -> bool:
        """Whether it is a folder."""
        return self._found is not None and self._found.kind == "directory"

    def is_symlink(self) -> bool:
        """Whether it leads elsewhere: none does that is listed as one."""
        return False

    @contextlib.contextmanager
    def opened(self, ahead: int | None = None) -> Iterator[BinaryIO]:
        """Open an object for reading, range by range.

        Whether it has been replaced is looked at when the block ends, but not if a generator is
        closed within: who stops early calls `require_unchanged`.

        Args:
            ahead: how many bytes to read at a time, if less is asked for; 0 if exactly that. 4 MiB
                if None.

        Raises:
            DataError: there is none, it cannot be read, or it has been replaced.
        """
        if not self.is_file():
            raise DataError(f"{self}: there is no such file")
        raw, ahead = _RemoteFile(self), _AHEAD if ahead is None else ahead
        file: io.RawIOBase | io.BufferedReader = io.BufferedReader(raw, ahead) if ahead else raw
        with file:
            try:
                yield cast(BinaryIO, file)
            except Exception:
                self.require_unchanged()  # or that explains it
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
        """Bytes start..stop-1, or as many of them as there are.

        Raises:
            DataError: they cannot be read.
        """
        with self._asking():
            content: bytes = self._filesystem.cat_file(self._path, start=start, end=stop)
        if len(content) > stop - start:
            raise DataError(f"{self}: its storage gives all of it and no parts: copy it first")
        return content

    def require_unchanged(self) -> None:
        """Ask again what the storage says of the object.

        Raises:
            DataError: something else than at first.
        """
        if self._look() != self._found:
            raise DataError(
                f"{self}: was replaced while it was read: embed data that nobody writes to"
            )

    @cached_property
    def _held(self) -> dict[str, _Found]:
        """What lies in this folder, by name: some hundred bytes for each object."""
        if not self.is_dir():
            return {}
        with self._asking():
            entries = self._filesystem.ls(self._path, detail=True)
        own, held = self._path.strip("/"), {}
        for entry in entries:
            path = str(entry["name"]).strip("/")
            name = path.rpartition("/")[2]
            if path != own and name:  # some list a mark of the folder itself
                held[name] = _Found.of(entry, f"{self}/{name}")
        return held

    def _child(self, name: str, found: _Found | None) -> RemotePath:
        path, address = f"{self._path.rstrip('/')}/{name}", f"{self._address}/{name}"
        return RemotePath(self._filesystem, path, address, found)

    def _look(self) -> _Found | None:
        """What the storage says now."""
        with self._asking():
            try:
                info = self._filesystem.info(self._path)
            except FileNotFoundError:
                return None
            return _Found.of(info, str(self))

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Turn whatever a library raises into one line."""
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
    """An object as a file, of which each read is a request."""

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
    """What reads an address, and the path that it has there.

    Nothing is taken over from earlier ones: neither lists of objects nor connections.
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
