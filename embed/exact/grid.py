"""The quantisation grid: the unit in which class sums are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...common.errors import SchemaError
from ...common.numerics.unit import LARGEST_SHIFT, LARGEST_SUM, SMALLEST_SHIFT, units_per_one

DEFAULT_CAPACITY: Final = 2**20
MOST_RECORDS: Final = 2**62
"""The most records that can be spoken of; sums have room for fewer."""


@dataclass(frozen=True)
class Grid:
    """The unit in which class sums are counted.

    Attributes:
        levels: records hold integers 0..levels.
        shift: s, the number of binary digits kept of delta / ||.||.
        capacity: the most records that a sum on this grid can hold without overflow.

    Raises:
        SchemaError: there is no such grid: a sum could overflow.
    """

    levels: int
    shift: int
    capacity: int

    def __post_init__(self) -> None:
        numbers = (self.levels, self.shift, self.capacity)
        # The shift is checked first, so that a huge one does not make a huge number.
        if (
            not all(type(number) is int and 0 < number <= LARGEST_SUM for number in numbers)
            or not SMALLEST_SHIFT <= self.shift <= LARGEST_SHIFT
            or self.units_per_one * self.capacity > LARGEST_SUM
        ):
            raise SchemaError("not a grid on which that many records can be summed in 64 bits")

    @classmethod
    def for_capacity(cls, levels: int, capacity: int) -> Grid:
        """The finest grid on which `capacity` unit-norm features cannot overflow an int64.

        Raises:
            SchemaError: no grid that is fine enough has room for so many records.
        """
        shift = (LARGEST_SUM // (max(capacity, 1) * levels)).bit_length() - 1
        if capacity < 1 or shift < SMALLEST_SHIFT:
            raise SchemaError(
                f"a capacity of {capacity} records: from 1 to "
                f"{LARGEST_SUM // units_per_one(levels, SMALLEST_SHIFT)} can be summed in 64 bits"
            )
        return cls(levels=levels, shift=min(shift, LARGEST_SHIFT), capacity=capacity)

    @property
    def units_per_one(self) -> int:
        """1/g: the number of grid units that make the value 1."""
        return units_per_one(self.levels, self.shift)

    @property
    def unit(self) -> float:
        """g: the value that one grid unit stands for."""
        return 1.0 / self.units_per_one
