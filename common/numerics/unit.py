"""The grid unit, of which sums of features, counts and noise are 64-bit integer multiples."""

from __future__ import annotations

from typing import Final

LARGEST_SUM: Final = 2**62 - 1
"""Half the range of an int64; the other half is left for the noise."""
SMALLEST_SHIFT: Final = 16
LARGEST_SHIFT: Final = 35
"""2^35 times 255 levels times 1024 records in a chunk make 2^53, the largest exact integer of a
float64. A finer grid would need smaller chunks, for precision that nobody sees."""


def units_per_one(levels: int, shift: int) -> int:
    """The number of units that make the value 1: `levels` 2^`shift`."""
    return levels << shift
