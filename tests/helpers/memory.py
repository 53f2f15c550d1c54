"""How much memory Python needs at the most while something is done."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

TRIES = 3
"""Other threads of this process may need memory for a moment: the least of so many peaks counts."""


def peak(work: Callable[[], object]) -> int:
    """The most memory that is in use at a time, in bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def growth(few: Callable[[], object], many: Callable[[], object], allowed: float) -> int:
    """How much more memory it takes to do many things than to do few, in bytes.

    Args:
        few: does few.
        many: does many, which takes long: once it is below what is allowed, it is not tried again.
        allowed: that much.
    """
    least, found = min(peak(few) for _ in range(TRIES)), []
    for _ in range(TRIES):
        found.append(peak(many) - least)
        if found[-1] < allowed:
            break
    return min(found)
