"""The unit in which class sums are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..common.errors import SchemaError

DEFAULT_CAPACITY: Final = 2**20
_LARGEST_SUM: Final = 2**62 - 1
"""Half of what an int64 holds; the other half is left to the noise."""
_SMALLEST_SHIFT: Final = 16
_LARGEST_SHIFT: Final = 35
"""2^35 levels of 255 in chunks of 1024 records make 2^53, the largest exact integer of a float64;
a finer grid would buy precision that nobody sees with smaller chunks."""


@dataclass(frozen=True)
class Grid:
    """The unit in which class sums are counted.

    Attributes:
        levels: records hold integers 0..levels.
        shift: s, the number of binary digits kept of delta / ||.||.
        capacity: how many records a sum on this grid can hold without overflow.

    Raises:
        SchemaError: there is no such grid: a sum could overflow.
    """

    levels: int
    shift: int
    capacity: int

    def __post_init__(self) -> None:
        numbers = (self.levels, self.shift, self.capacity)
        # The shift first: no number is made that takes more memory than it has bits.
        if (
            not all(type(number) is int and 0 < number <= _LARGEST_SUM for number in numbers)
            or not _SMALLEST_SHIFT <= self.shift <= _LARGEST_SHIFT
            or self.units_per_one * self.capacity > _LARGEST_SUM
        ):
            raise SchemaError("not a grid on which that many records can be summed in 64 bits")

    @classmethod
    def for_capacity(cls, levels: int, capacity: int) -> Grid:
        """The finest grid on which `capacity` unit-norm features cannot overflow an int64.

        Raises:
            SchemaError: so many records leave no grid worth the name.
        """
        shift = (_LARGEST_SUM // (capacity * levels)).bit_length() - 1
        if capacity < 1 or shift < _SMALLEST_SHIFT:
            raise SchemaError(
                f"a capacity of {capacity} records: from 1 to "
                f"{_LARGEST_SUM // (levels << _SMALLEST_SHIFT)} can be summed in 64 bits"
            )
        return cls(levels=levels, shift=min(shift, _LARGEST_SHIFT), capacity=capacity)

    @property
    def units_per_one(self) -> int:
        """1/g: how many grid units make the value 1."""
        return self.levels << self.shift

    @property
    def unit(self) -> float:
        """G."""
        return 1.0 / self.units_per_one
