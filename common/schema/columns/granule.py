"""The resolution of numbers: a column's values are multiples of its granule."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .kinds import ColumnKind


class Granule(NamedTuple):
    """The number n / 10^d, stored exactly, unlike a float64 such as 0.1.

    Attributes:
        number: n, at least 1.
        digits: d, at least 0.
    """

    number: int
    digits: int

    @property
    def size(self) -> float:
        """The number itself, as the nearest float64."""
        return self.number / 10.0**self.digits

    def rounded(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The nearest multiples of it; ties go to the even multiple.

        Products, quotients and their rounding are the same on every processor.
        """
        power = 10.0**self.digits
        nearest: NDArray[np.float64] = np.rint(values * power / self.number) * self.number / power
        return nearest

    def steps(self, length: float) -> int:
        """How often it fits into a length that is a multiple of it."""
        times: float = length * 10**self.digits / self.number
        return round(times)


def granule_of(kind: ColumnKind, step: float | None, decimals: int | None) -> Granule | None:
    """The granule of a numeric column; None if its values are not rounded.

    Args:
        kind: the column's kind: all but continuous values are integers.
        step: see `Column.step`.
        decimals: see `Column.decimals`.
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
