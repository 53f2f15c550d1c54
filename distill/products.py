"""Matrix products of which every entry is a function of its own row, to the last bit.

An ordinary product in floating point adds in an order that depends on the size of the batch and on
a row's place in it. Here both factors are cut into slices of so few binary digits that products of
slices are exact in float64, whatever the order (Ozaki, Ogita, Oishi, Rump 2012, "Error-free
transformations of matrix multiplication"); the slices' products are added elementwise.
"""

from __future__ import annotations

import math

from torch import Tensor

from ..embed.arithmetic import round_to_digits


def product(left: Tensor, right: Tensor, slices: int = 3) -> Tensor:
    """The product of two matrices; a row depends on its own row of `left` and on `right` alone.

    Args:
        left: float64 (n, k): one row for each record, or several.
        right: float64 (k, l), public.
        slices: how many of about 22 binary digits.

    Returns:
        float64 (n, l). An entry is off by at most `relative_error(k, slices)` k times the largest
        values in its row and its column, and rounding.
    """
    digits = _digits(left.shape[1])
    lefts, rights = _cut(left, digits, slices), [s.T for s in _cut(right.T, digits, slices)]
    pairs = [(i, j) for i in range(slices) for j in range(slices - i)]
    total = lefts[0] @ rights[0]
    for i, j in pairs[1:]:
        total += lefts[i] @ rights[j]
    return total


def relative_error(terms: int, slices: int) -> float:
    """What slices leave out, relative to a product of the largest values.

    A slice keeps d digits of what the one before has left, so s of them leave out 2^(-d s) of
    either factor, and s - 1 products of slices that are as small as that are not computed.

    Args:
        terms: how many products make an entry.
        slices: how many.
    """
    return float((slices + 1) * 2.0 ** (-_digits(terms) * slices) * (1 + 2.0**-10))


def _digits(terms: int) -> int:
    """So many that sums of as many products of two slices stay below 2^53."""
    return (53 - math.ceil(math.log2(terms))) // 2


def _cut(values: Tensor, digits: int, slices: int) -> list[Tensor]:
    """Parts that add up to nearly `values`, row by row: whole multiples of a power of two each."""
    parts: list[Tensor] = []
    for number in range(slices):
        part = round_to_digits(values, digits)
        parts.append(part)
        if number < slices - 1:
            values = values - part  # exact: the digits that were left out
    return parts
