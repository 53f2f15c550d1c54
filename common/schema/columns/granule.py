"""How finely numbers are told apart: a column's values are multiples of its granule."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .kinds import ColumnKind


class Granule(NamedTuple):
    """The number n / 10^d, which stays exact where a float64 such as 0.1 would not.

    Attributes:
        number: n, at least 1.
        digits: d, at least 0.
    """

    number: int
    digits: int

    @property
    def size(self) -> float:
        """The number itself, as near as a float64 comes."""
        return self.number / 10.0**self.digits

    def rounded(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The nearest multiples of it; half-way, the even ones.

        A product, a quotient and what they are rounded to are the same on every processor.
        """
        power = 10.0**self.digits
        nearest: NDArray[np.float64] = np.rint(values * power / self.number) * self.number / power
        return nearest

    def steps(self, length: float) -> int:
        """How many times it goes into a length that is a multiple of it."""
        times: float = length * 10**self.digits / self.number
        return round(times)


def granule_of(kind: ColumnKind, step: float | None, decimals: int | None) -> Granule | None:
    """The granule of a numeric column; None if its values are not rounded.

    Args:
        kind: of the column: all but continuous values are whole numbers.
        step: as `Column.step`.
        decimals: as `Column.decimals`.
    """
    if kind is not ColumnKind.CONTINUOUS:
        return Granule(int(step or 1), 0)
    if decimals is not None:
        return Granule(1, decimals)
    if step is None:
        return None
    _, digits, exponent = Decimal(repr(step)).normalize().as_tuple()
    assert isinstance(exponent, int)
    number = int("".join(map(str, digits)))
    return Granule(number * 10 ** max(0, exponent), max(0, -exponent))
