"""The interval between checkpoints."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Final

DEFAULT_INTERVAL: Final = 30.0
"""Seconds between checkpoints, unless writing them that often would cost too much time."""
_LARGEST_SHARE_OF_TIME: Final = 1 / 50
"""Share of the time that writing checkpoints may take, unless the user sets the interval."""


class CheckpointInterval:
    """The time between two checkpoints.

    Args:
        seconds: its length; if None, `DEFAULT_INTERVAL`, or more if checkpoints take long to write.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + (DEFAULT_INTERVAL if seconds is None else seconds)

    @property
    def elapsed(self) -> bool:
        """Whether it is time for a checkpoint."""
        return time.monotonic() >= self._end

    @contextlib.contextmanager
    def restarted(self) -> Iterator[None]:
        """Write a checkpoint in the block; the longer that takes, the longer the next interval."""
        start = time.monotonic()
        yield
        end = time.monotonic()
        long_enough = max(DEFAULT_INTERVAL, (end - start) / _LARGEST_SHARE_OF_TIME)
        self._end = end + (long_enough if self._seconds is None else self._seconds)
