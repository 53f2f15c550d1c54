"""The grid unit: exact sums of features, counts and noise are whole numbers of it, in 64 bits."""

from __future__ import annotations

from typing import Final

LARGEST_SUM: Final = 2**62 - 1
"""Half of what an int64 holds; the other half is left to the noise."""
SMALLEST_SHIFT: Final = 16
LARGEST_SHIFT: Final = 35
"""2^35 levels of 255 in chunks of 1024 records make 2^53, the largest exact integer of a float64;
a finer grid would buy precision that nobody sees with smaller chunks."""


def units_per_one(levels: int, shift: int) -> int:
    """How many units make the value 1: `levels` 2^`shift`."""
    return levels << shift
