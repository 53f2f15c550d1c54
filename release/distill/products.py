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

    def __init__(self, matrix: Tensor, slices: int = 2) -> None:
        self._digits = _digits(len(matrix))
        self._parts = [part.T for part in _cut(matrix.T, self._digits, slices)]

    def left_multiplied(self, left: Tensor) -> Tensor:
        """The product; a row depends on its own row of `left` and on this matrix alone.

        Args:
            left: float64 (n, k): one row for each record.

        Returns:
            float64 (n, l). With s slices, an entry is wrong by about k 2^(-22 s) of the product of
            the largest values.
        """
        count = len(self._parts)
        lefts = _cut(left, self._digits, count)
        pairs = [(i, j) for i in range(count) for j in range(count - i)]
        total = lefts[0] @ self._parts[0]
        for i, j in pairs[1:]:
            total += lefts[i] @ self._parts[j]
        return total


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
