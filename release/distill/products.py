"""Matrix products whose every entry is a function of its own row, to the last bit.

An ordinary floating-point product adds in an order that depends on the size of the batch and on a
row's place in it. Here both factors are cut into slices of so few binary digits that products of
slices are exact in float64, whatever the order (Ozaki, Ogita, Oishi, Rump 2012, "Error-free
transformations of matrix multiplication"). The slices' products are added elementwise.
"""

from __future__ import annotations

import math

from torch import Tensor

from ...common.numerics.exact import round_to_digits


class SlicedMatrix:
    """A public matrix, cut into slices once, for products with the rows of records.

    Args:
        matrix: float64 (k, l).
        slices: the number of slices, each of about 22 binary digits.
    """

    def __init__(self, matrix: Tensor, slices: int = 3) -> None:
        self._terms = len(matrix)
        self._digits = _digits(self._terms)
        self._parts = [part.T for part in _cut(matrix.T, self._digits, slices)]
        self._largest = float(matrix.abs().max())

    def left_multiplied(self, left: Tensor, slices: int | None = None) -> Tensor:
        """The product; a row depends on its own row of `left` and on this matrix alone.

        Args:
            left: float64 (n, k): one row for each record, or several.
            slices: how many of the slices are used; None for all.

        Returns:
            float64 (n, l). An entry is wrong by `truncation_error` at most, and by rounding.
        """
        parts = self._parts[:slices]
        lefts = _cut(left, self._digits, len(parts))
        pairs = [(i, j) for i in range(len(parts)) for j in range(len(parts) - i)]
        total = lefts[0] @ parts[0]
        for i, j in pairs[1:]:
            total += lefts[i] @ parts[j]
        return total

    def truncation_error(self, left: Tensor, slices: int | None = None) -> Tensor:
        """A bound on the error of a product row's entries from slicing, float64 (n,)."""
        share = relative_error(self._terms, len(self._parts[:slices])) * self._terms
        return share * self._largest * left.abs().amax(1)


def relative_error(terms: int, slices: int) -> float:
    """The error from slicing, relative to a product of the largest values.

    A slice keeps d digits of the remainder of the one before, so s slices leave out 2^(-d s) of
    either factor, and s - 1 products of slices that are as small as that are not computed. The 2^-6
    covers products of remainders, and the rounding when the slices' products are added.

    Args:
        terms: the number of products in an entry.
        slices: the number of slices.
    """
    return float((slices + 1) * 2.0 ** (-_digits(terms) * slices) * (1 + 2.0**-6))


def _digits(terms: int) -> int:
    """Binary digits per slice, so that sums of `terms` products of two stay below 2^53."""
    return (53 - math.ceil(math.log2(terms))) // 2


def _cut(values: Tensor, digits: int, slices: int) -> list[Tensor]:
    """Slices that nearly add up to `values`; in a row, each has multiples of a power of two."""
    parts: list[Tensor] = []
    for number in range(slices):
        part = round_to_digits(values, digits)
        parts.append(part)
        if number < slices - 1:
            values = values - part  # exact: the digits that were left out
    return parts
