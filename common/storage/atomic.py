"""Atomic writes: a result appears under its final name only when it is whole."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import math
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..arguments import argument, in_command, require_flag
from ..errors import OutputError

# The permissions with which a file is made. The user's umask can only remove some.
SENSITIVE_MODE: Final = 0o600
"""Mode of results from records without noise: only the owner may read, whatever the umask."""
OWN_MODE: Final = 0o644
"""Mode of lists of trusted signers: only the user may write, whatever the umask."""
PUBLIC_MODE: Final = 0o666
"""Mode of files that may be given to anybody: the umask decides who may read them."""
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the operating system answers if there is no more room."""


def require_absent(path: Path, *, overwrite: bool, cost: str, begins: bytes) -> None:
    """Refuse early to replace a file whose loss would hurt.

    Args:
        path: where the result will be written.
        overwrite: the user's explicit permission to replace a file of the same kind, not the
            records or another stage's result.
        cost: what would be lost, for the message.
        begins: the beginning of files of this kind.

    Raises:
        OutputError: something is there and may not be replaced, or no file can be written there.
    """
    require_flag("overwrite", overwrite, refusal=OutputError)
    with write_failures(path):
        is_folder, exists = path.is_dir(), path.exists()
    if is_folder:
        raise OutputError(f"{path} is a folder: name a file")
    with write_failures(path):
        temporary_name(path).exists()  # fails if the name leaves no room for a temporary one
    if exists and not _begins(path, begins):
        raise OutputError(
            f"{path} is another kind of file than what is to be written, and is left alone: choose "
            "another name"
        )
    if exists and not overwrite:
        raise OutputError(
            f"{path} already exists and {cost}: "
            f"choose another name, or add {argument('overwrite', True)} to replace it"
        )
    require_writable_folder(path.parent)


def _begins(path: Path, begins: bytes) -> bool:
    """Whether a path is a regular file that has this beginning or is empty."""
    if not path.is_file():
        return False
    with write_failures(path), path.open("rb") as file:
        return file.read(len(begins)) in (b"", begins)


def require_writable_folder(folder: Path) -> None:
    """Check before hours of work that a result can be written into `folder`.

    Raises:
        OutputError: the folder is missing or cannot be written to.
    """
    with write_failures(folder):
        there = folder.is_dir()
    if not there:
        elsewhere = f"choose another place{in_command(' with -o')}"
        raise OutputError(f"{folder} is not a folder: create it, or {elsewhere}")
    with write_failures(folder), tempfile.TemporaryFile(dir=folder):
        pass


def require_room(path: Path, size: int, *, elsewhere: bool = True) -> None:
    """Check that a disk has room for a file before budget is spent on its content.

    Args:
        path: where the file will be written.
        size: its size in bytes.
        elsewhere: whether the user may choose another place for it.

    Raises:
        OutputError: it has less.
    """
    with write_failures(path):
        free = shutil.disk_usage(path.parent).free
    if free < size:
        needed, there = math.ceil(size / 1e5) / 10, math.floor(free / 1e5) / 10
        other = f", or choose another place{in_command(' with -o')}" if elsewhere else ""
        raise OutputError(
            f"{path}: {needed:,.1f} MB are needed and {there:,.1f} MB are free: make room{other}"
        )


def write_atomically(path: Path, content: bytes | memoryview, *, mode: int = PUBLIC_MODE) -> None:
    """Write `content` to `path` so that a reader sees all of it or none of it.

    The bytes go to a temporary file in the same folder, reach the disk (fsync), and the file is
    renamed; the folder is fsynced too, so that the name survives a power cut. Leftovers of killed
    processes are deleted first.

    Args:
        path: where to write.
        content: the whole file.
        mode: its permissions, before the umask.

    Raises:
        OutputError: the file cannot be written; nothing is left behind, and an earlier file of that
            name is untouched.
    """
    collect_stale(path)
    with write_failures(path):
        descriptor, temporary = _begin(path, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync(path.parent)


def temporary_name(path: Path) -> Path:
    """A name beside `path` for its replacement, which `collect_stale` recognises."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def stale_names(path: Path) -> Iterator[Path]:
    """The files whose names `temporary_name` may have made."""
    return path.parent.glob(f".{glob.escape(path.name)}.*.tmp")


def _begin(path: Path, mode: int) -> tuple[int, Path]:
    """A new temporary file, and its descriptor, whose lock shows that its writer lives."""
    while True:
        temporary = temporary_name(path)
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            pass  # another process took it for stale and is about to delete it
        except OSError:
            return descriptor, temporary  # no locks on this disk, so nothing counts as stale
        else:
            if is_at(descriptor, temporary):
                return descriptor, temporary
        os.close(descriptor)


def collect_stale(path: Path) -> None:
    """Delete the temporary files of processes that were killed while writing `path`.

    A file whose writer lives is locked, and left alone. Files that cannot be deleted are left, too.
    """
    for temporary in stale_names(path):
        with contextlib.suppress(OSError, OutputError):
            descriptor = open_plain(temporary, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                temporary.unlink()
            finally:
                os.close(descriptor)


def open_plain(path: Path, flags: int) -> int:
    """Open our own file in a folder where others may have put something else in its place.

    A symbolic link is not followed, because it may lead to a place where nothing of ours should be
    made or locked. A pipe or a device is not waited for.

    Args:
        path: the file; if it is created, only its owner may use it.
        flags: as for `os.open`.

    Raises:
        OutputError: it is not a plain file.
        OSError: it cannot be opened.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, SENSITIVE_MODE)
    except OSError as error:
        if path.is_symlink():
            raise OutputError(f"{path} is a link to another place: remove it") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OutputError(f"{path} is not a plain file: remove it")
    return descriptor


def is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one at a path."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    return False


def followed(path: Path) -> Path:
    """The target of a symbolic link; the path itself if it is not a link.

    Replacing a link would leave its target unchanged, with an old copy of a ledger.
    """
    return Path(os.path.realpath(path)) if path.is_symlink() else path


@contextlib.contextmanager
def write_failures(path: Path) -> Iterator[None]:
    """Turn the operating system's errors while writing `path` into one clear line.

    Raises:
        OutputError: in place of any OSError.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        room = "make room or " if error.errno in _FULL else ""
        raise OutputError(
            f"cannot write {path}: {reason}; {room}choose another place{in_command(' with -o')}"
        ) from error


def sync(path: Path) -> None:
    """Wait until a file's or folder's contents are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
