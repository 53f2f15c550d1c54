"""Results appear under their final name only when they are whole."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..arguments import argument
from ..errors import OutputError

# Permissions that a file is made with. The user's umask takes some away and never adds any.
SENSITIVE_MODE: Final = 0o600
"""Mode of what was computed from records without noise: for its owner alone, whatever the umask."""
OWN_MODE: Final = 0o644
"""Mode of files that say whom the user trusts: only the user may write, whatever the umask."""
PUBLIC_MODE: Final = 0o666
"""Mode of what may be given to anybody: the umask decides who may read it."""


def require_absent(path: Path, *, overwrite: bool, cost: str, begins: bytes) -> None:
    """Refuse early to replace a file whose loss would hurt.

    Args:
        path: where the result is to go.
        overwrite: the user's explicit permission; to replace a file of the same kind, not the
            records or another stage's result.
        cost: what would be lost, for the message.
        begins: what files of this kind begin with.

    Raises:
        OutputError: something is there and may not be replaced, or no file can be put there.
    """
    if path.is_dir():
        raise OutputError(f"{path} is a folder: name a file")
    if path.exists() and not _begins(path, begins):
        raise OutputError(
            f"{path} is another kind of file than what is to be written, and is left alone: choose "
            "another name"
        )
    if path.exists() and not overwrite:
        raise OutputError(
            f"{path} already exists and {cost}: "
            f"choose another name, or add {argument('overwrite', True)} to replace it"
        )
    require_writable_folder(path.parent)


def _begins(path: Path, begins: bytes) -> bool:
    """Whether a file, which may be empty or a device, can be one that begins so."""
    if not path.is_file():
        return False
    with write_failures(path), path.open("rb") as file:
        return file.read(len(begins)) in (b"", begins)


def require_writable_folder(folder: Path) -> None:
    """Find out before hours of work whether a result can be put into `folder`.

    Raises:
        OutputError: the folder is missing or cannot be written to.
    """
    if not folder.is_dir():
        raise OutputError(f"{folder} is not a folder: create it, or choose another place with -o")
    with write_failures(folder), tempfile.TemporaryFile(dir=folder):
        pass


def require_room(path: Path, size: int) -> None:
    """Check that a disk has room for a file, before something is spent that the file is to show.

    Args:
        path: where the file will be written.
        size: of it, in bytes.

    Raises:
        OutputError: it has less.
    """
    with write_failures(path):
        free = shutil.disk_usage(path.parent).free
    if free < size:
        raise OutputError(
            f"{path}: {size / 1e6:,.1f} MB are needed and {free / 1e6:,.1f} MB are free: make "
            "room, or choose another place with -o"
        )


def write_atomically(path: Path, content: bytes | memoryview, *, mode: int = PUBLIC_MODE) -> None:
    """Write `content` to `path` so that a reader sees all of it or none of it.

    The bytes go to a temporary file in the same folder, reach the disk (fsync), and are renamed;
    the folder is fsynced too, so that the name survives a power cut. What a process that was
    killed here has left is deleted first.

    Args:
        path: where.
        content: all of the file.
        mode: its permissions, less what the umask takes away.

    Raises:
        OutputError: the file cannot be written; nothing is left behind and an earlier file of
            that name is untouched.
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
    """A name beside `path` for what is to replace it, of which `collect_stale` knows."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def stale_names(path: Path) -> Iterator[Path]:
    """Whatever has a name that `temporary_name` may have made."""
    return path.parent.glob(f".{glob.escape(path.name)}.*.tmp")


def _begin(path: Path, mode: int) -> tuple[int, Path]:
    """A new temporary file, and the descriptor whose lock says that its writer lives."""
    while True:
        temporary = temporary_name(path)
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            pass  # taken for stale before it was locked, and about to be deleted
        except OSError:
            return descriptor, temporary  # no locks on this disk, so nothing is taken for stale
        else:
            if is_at(descriptor, temporary):
                return descriptor, temporary
        os.close(descriptor)


def collect_stale(path: Path) -> None:
    """Delete the temporary files that killed processes left while they wrote `path`.

    A file whose writer lives is locked, and left alone. What cannot be deleted is left too.
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
    """The descriptor of a file of ours, in a folder where others may have put something else.

    A symbolic link is not followed, for it may lead to where nothing of ours should be made or
    locked; a pipe or a device is not waited for.

    Args:
        path: the file; if it is made, it is its owner's alone.
        flags: as of `os.open`.

    Raises:
        OutputError: it is no plain file.
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
    """Whether an open file is the one that is there under a name."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    return False


def followed(path: Path) -> Path:
    """The file or folder that a symbolic link leads to; the path itself if it is none.

    Replacing a link would leave the file that it led to as it was: a ledger would have an old copy.
    """
    return Path(os.path.realpath(path)) if path.is_symlink() else path


@contextlib.contextmanager
def write_failures(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals while writing `path` into one clear line.

    Raises:
        OutputError: in place of any OSError.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(
            f"cannot write {path}: {reason}; make room or choose another place with -o"
        ) from error


def sync(path: Path) -> None:
    """Wait until a file's or folder's contents are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
