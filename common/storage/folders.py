"""Atomic folders: a folder of results appears under its final name only when it is whole.

A folder cannot replace another in one step, so the exchange uses a hidden folder beside it (mode
0700), with

    new    the result, which is whole when it leaves
    old    the earlier result, from when it is taken away until the new one is at its place
    lock   held by the process that writes; once it is dead, the next one clears up
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from ..arguments import in_command
from ..errors import DpntkError, OutputError
from .atomic import (
    SENSITIVE_MODE,
    require_writable_folder,
    stale_names,
    sync,
    temporary_name,
    write_failures,
)
from .locks import LOCK, folder_locked, held

_NEW: Final = "new"
_OLD: Final = "old"


@contextlib.contextmanager
def folder_appearing_whole(
    path: Path, *, marker: str, ours: Collection[str], sensitive: bool = False
) -> Iterator[Path]:
    """Yield a temporary folder that takes the name `path` when the block succeeds.

    An earlier result (an empty folder, or one with only our files) is replaced, or keeps its name
    if the new one cannot take it. A folder with anything else in it is left alone.

    Args:
        path: the final name.
        marker: a file that each of our folders holds, by which an earlier one is recognised.
        ours: the names of all files that such a folder may hold.
        sensitive: whether only the owner may read it (0700, its files 0600); otherwise the user's
            umask decides.

    Raises:
        OutputError: `path` is in use by something else, or cannot be written.
    """
    require_replaceable_folder(path, marker=marker, ours=ours)
    work = temporary_name(path)
    new = work / _NEW
    with write_failures(path), folder_locked(work):
        try:
            new.mkdir(0o700 if sensitive else 0o777)
            yield new
            for file in new.iterdir():
                if sensitive:
                    file.chmod(SENSITIVE_MODE)
                sync(file)
            sync(new)
            if path.exists():
                # writing may have taken long: somebody may have put a file of theirs there
                _require_ours(path, marker, ours)
                path.rename(work / _OLD)
            new.rename(path)
        finally:
            _clear(work, path)
        sync(path.parent)


def require_replaceable_folder(path: Path, *, marker: str, ours: Collection[str]) -> None:
    """Refuse early to replace a folder that holds anything but our earlier result.

    Leftovers of killed processes are cleared up first.

    Args:
        path: where the result will be written.
        marker: a file that each of our folders holds, by which an earlier one is recognised.
        ours: the names of all files that such a folder may hold.

    Raises:
        OutputError: `path` is a file, a folder with other things in it, or one that cannot be
            replaced or created.
    """
    with write_failures(path):
        irreplaceable = path.is_dir() and (path.samefile(".") or path.is_mount())
    if irreplaceable:
        raise OutputError(
            f"{path} is no folder that can be replaced: name one in it{in_command(' with -o')}, "
            f"such as {path / 'synthetic'}"
        )
    _clear_stale(path)
    if path.exists() and not path.is_dir():
        raise OutputError(f"{path} is a file: choose another folder{in_command(' with -o')}")
    if path.exists():
        _require_ours(path, marker, ours)
    require_writable_folder(path.parent)


def _require_ours(folder: Path, marker: str, ours: Collection[str]) -> None:
    """Check that a folder is empty, or is an earlier result with nothing else in it."""
    foreign = _first_foreign(folder, marker, ours)
    if foreign is not None:
        raise OutputError(
            f"{folder} holds more than an earlier result, such as {foreign}: move it, or choose "
            f"another folder{in_command(' with -o')}"
        )


def _first_foreign(folder: Path, marker: str, ours: Collection[str]) -> str | None:
    """The name of the first thing in a folder that is not ours to delete, if any."""
    with write_failures(folder):
        found = sorted(folder.iterdir())
        # We write only files: a folder or a link is not ours, whatever its name.
        others = [at for at in found if at.name not in ours or at.is_symlink() or not at.is_file()]
        if not others and folder / marker not in found:
            others = found  # without the marker, files with our names are not ours
        if not others:
            return None
        return f"{others[0].name}/" if others[0].is_dir() else others[0].name


def _clear(work: Path, path: Path) -> None:
    """Delete a hidden folder whose lock the caller holds.

    An earlier result in it gets its name back, unless the new one has left the folder to take that
    name. If this fails, the earlier result stays where it is.
    """
    new, old = work / _NEW, work / _OLD
    if new.exists() and old.exists() and not path.exists():
        old.rename(path)
    shutil.rmtree(work, ignore_errors=True)


def _clear_stale(path: Path) -> None:
    """Clear up after killed processes, leaving what cannot be deleted or is not ours."""
    for work in stale_names(path):
        with contextlib.suppress(OSError, DpntkError):
            status = work.lstat()
            names = {file.name for file in work.iterdir()}
            if (
                stat.S_ISDIR(status.st_mode)
                and status.st_uid == os.geteuid()
                and names <= {LOCK, _NEW, _OLD}
            ):
                with held(work / LOCK, busy=f"{work}: its writer lives"):
                    _clear(work, path)
