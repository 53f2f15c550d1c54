"""Results appear under their final name only when they are whole."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from .errors import OutputError

SENSITIVE_MODE = 0o600
PUBLIC_MODE = 0o644


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
        raise OutputError(f"{path} is a folder: name a file with -o")
    if path.exists() and not _begins(path, begins):
        raise OutputError(
            f"{path} is another kind of file than this command writes, and is left alone: choose "
            "another name with -o"
        )
    if path.exists() and not overwrite:
        raise OutputError(
            f"{path} already exists and {cost}: "
            "choose another name with -o, or add --overwrite to replace it"
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
    the folder is fsynced too, so that the name survives a power cut.

    Raises:
        OutputError: the file cannot be written; nothing is left behind and an earlier file of
            that name is untouched.
    """
    with write_failures(path):
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                with contextlib.suppress(OSError):  # says that its writer lives: see below
                    fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
                os.fchmod(file.fileno(), mode)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync(path.parent)


def collect_stale(path: Path) -> None:
    """Delete the temporary files that killed processes left while they wrote `path`.

    The caller keeps others from beginning to write it, with a lock (`dpntk.common.locks`); a file
    whose writer lives all the same is locked, and left alone. What cannot be deleted is left too.
    """
    for temporary in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        with contextlib.suppress(OSError), temporary.open("r+b") as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            temporary.unlink()


def followed(path: Path) -> Path:
    """The file or folder that a symbolic link leads to; the path itself if it is none.

    Replacing a link would leave the file that it led to as it was: a ledger would have an old copy.
    """
    return Path(os.path.realpath(path)) if path.is_symlink() else path


@contextlib.contextmanager
def folder_appearing_whole(path: Path, *, marker: str, ours: Collection[str]) -> Iterator[Path]:
    """Give a temporary folder that takes the name `path` when the block ends well.

    An earlier result (an empty folder, or one of nothing but our files) is replaced; a folder with
    anything else in it is left alone.

    Args:
        path: the final name.
        marker: a file that each of our folders holds, by which an earlier one is recognised.
        ours: the names of all files that such a folder may hold.

    Raises:
        OutputError: `path` is in use by something else, or cannot be written.
    """
    require_replaceable_folder(path, marker=marker, ours=ours)
    with write_failures(path):
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"))
        try:
            yield temporary
            for file in temporary.iterdir():
                _sync(file)
            temporary.chmod(0o755)
            if path.exists():
                # writing may have taken long: somebody may have put a file of theirs there
                require_replaceable_folder(path, marker=marker, ours=ours)
                retired = Path(f"{temporary}.old")
                path.rename(retired)
                temporary.rename(path)
                shutil.rmtree(retired)
            else:
                temporary.rename(path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        _sync(path.parent)


def require_replaceable_folder(path: Path, *, marker: str, ours: Collection[str]) -> None:
    """Refuse early to replace a folder that holds anything else than our earlier result.

    Args:
        path: where the result is to go.
        marker: a file that each of our folders holds, by which an earlier one is recognised.
        ours: the names of all files that such a folder may hold.

    Raises:
        OutputError: `path` is a file, a folder with other things in it, or cannot be created.
    """
    if path.exists() and not path.is_dir():
        raise OutputError(f"{path} is a file: choose another folder with -o")
    foreign = _first_foreign(path, marker, ours) if path.is_dir() else None
    if foreign is not None:
        raise OutputError(
            f"{path} holds files that dpntk did not write, such as {foreign}: move them, or choose "
            "another folder with -o"
        )
    require_writable_folder(path.parent)


def _first_foreign(folder: Path, marker: str, ours: Collection[str]) -> str | None:
    """The first thing in a folder that is not ours to delete, by name; None if there is none."""
    with write_failures(folder):
        found = sorted(folder.iterdir())
        # We write files only: a folder or a link is somebody else's, whatever its name.
        others = [at for at in found if at.name not in ours or at.is_symlink() or not at.is_file()]
        if not others and folder / marker not in found:
            others = found  # files that are named like ours are not ours without the marker
        if not others:
            return None
        return f"{others[0].name}/" if others[0].is_dir() else others[0].name


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


def _sync(path: Path) -> None:
    """Wait until a file's or folder's contents are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
