"""Locks between processes that change the same file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import threading
from pathlib import Path

import pytest

from dpntk.common.errors import OutputError
from dpntk.common.storage.locks import locked

LOCK = ".dpntk.lock"


def taken(lock: Path) -> bool:
    """Whether somebody else holds a lock on a file."""
    descriptor = os.open(lock, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def test_the_lock_is_on_a_file_beside(tmp_path: Path) -> None:
    """On a folder of a network, a lock on the folder itself is one of this machine alone."""
    with locked(tmp_path / "embedding.h5"):
        status = (tmp_path / LOCK).stat()
        assert stat.S_ISREG(status.st_mode)
        assert stat.S_IMODE(status.st_mode) == 0o600
        assert taken(tmp_path / LOCK)
    assert not taken(tmp_path / LOCK)


def test_a_lock_file_that_is_removed_does_not_let_two_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, events = threading.Semaphore(0), list[str]()
    really_flock = fcntl.flock

    def flock(descriptor: int, operation: int) -> None:
        if threading.current_thread() is other:
            asked.release()
        really_flock(descriptor, operation)

    def enter() -> None:
        with locked(tmp_path / "b"):
            events.append("the other is in")

    other = threading.Thread(target=enter)
    monkeypatch.setattr(fcntl, "flock", flock)
    with locked(tmp_path / "a"):
        other.start()
        assert asked.acquire(timeout=60)  # it has opened the file that is there
        (tmp_path / LOCK).unlink()
        second = contextlib.ExitStack()
        second.enter_context(locked(tmp_path / "a"))  # of a file of its own
    with second:
        assert asked.acquire(timeout=60)  # it has got the old one, and asks for the new one
        events.append("we are out")
    other.join(timeout=60)
    assert events == ["we are out", "the other is in"]


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="nowhere"), locked(tmp_path / "nowhere" / "a"):
        pass
