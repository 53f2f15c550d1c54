"""Locks between processes. They belong to living processes: a killed one leaves none behind."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from ..errors import OutputError, RunError
from .atomic import is_at, open_plain, write_failures

LOCK: Final = "lock"
"""The name of the file that `folder_locked` locks."""
_LOCK_BESIDE: Final = ".dpntk.lock"
"""The name of the file that `locked` locks."""


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock the folder of `path` against other processes that use this lock; wait if necessary.

    The lock is on an empty hidden file in the folder, so replacing `path` keeps it. The file is not
    deleted: in a network folder, others might not notice at once that it is gone. (A lock on the
    folder itself would hold only on this machine there.)

    Raises:
        OutputError: the folder is missing or cannot be locked.
    """
    lock = path.parent / _LOCK_BESIDE
    with write_failures(path.parent):
        descriptor = _lock_that_is_there(lock, None)
    try:
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def folder_locked(folder: Path, *, busy: str | None = None) -> Iterator[Callable[[], bool]]:
    """Make a folder (0700) if necessary, and lock it against others that use this lock.

    The holder of the lock may remove the folder: waiting processes make it anew.

    Args:
        folder: the folder with the lock in it.
        busy: the message if another process holds the lock; wait for it if None.

    Yields:
        A function that tells whether the folder is still the locked one: once it is removed, a
        folder of that name belongs to another process.

    Raises:
        RunError: another process holds the lock, and `busy` is given.
        OutputError: the folder cannot be made or locked.
    """
    with write_failures(folder):
        descriptor = _make_and_lock(folder, busy)
    try:
        yield partial(is_at, descriptor, folder / LOCK)
    finally:
        os.close(descriptor)


def _make_and_lock(folder: Path, busy: str | None) -> int:
    """The descriptor that holds the lock."""
    lock = folder / LOCK
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.is_symlink():  # somebody else would have chosen the place of our files
            raise OutputError(f"{folder} is a link to another place: remove it")
        with contextlib.suppress(FileNotFoundError):  # the folder was removed in the meantime
            _require_ours(folder)
            return _lock_that_is_there(lock, busy)


def _require_ours(folder: Path) -> None:
    """Refuse a folder that somebody else has put there, who could exchange what is kept in it.

    Raises:
        OutputError: it is another user's, and others may write to it.
    """
    status = folder.stat()
    if status.st_uid != os.geteuid() and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OutputError(f"{folder} is another user's, and others may write to it: remove it")


def _lock_that_is_there(lock: Path, busy: str | None) -> int:
    """Like `_open_and_lock`, even if another process removes the file while we wait for it."""
    while not is_at(descriptor := _open_and_lock(lock, busy), lock):
        os.close(descriptor)
    return descriptor


def _open_and_lock(lock: Path, busy: str | None) -> int:
    """The descriptor of a locked file, created if necessary; waits if `busy` is None."""
    descriptor = open_plain(lock, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
    except BlockingIOError as error:
        os.close(descriptor)
        raise RunError(busy) from error
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextlib.contextmanager
def held(lock: Path, *, busy: str) -> Iterator[None]:
    """Hold a lock file in an existing folder until the end of the block; do not wait.

    Args:
        lock: the file, created if necessary.
        busy: the message if another process holds it.

    Raises:
        RunError: another process holds it.
        OutputError: the file cannot be made or locked.
    """
    with write_failures(lock):
        descriptor = _open_and_lock(lock, busy)
    try:
        yield
    finally:
        os.close(descriptor)
