"""Gradients of each record's loss with respect to the support points, by their coefficients.

For a record x with target y, the loss is (Nguyen, Chen, Lee 2021; Vinaroz and Park 2023)

    l = 1/2 || y - k_x A^-1 Y ||^2,      A = K + ridge tr(K) / m I,

with K the kernel of the m support points and k_x that of the record with them. With r = k_x A^-1 Y
- y, u = A^-1 k_x and v = A^-1 Y r its differential is <v, dk_x> - u^T dA v. Since dk(x, z) / dz is
p x + q z (`dpntk.common.relu_kernel`), the gradient with respect to support point a is

    c_a x + sum_j E_aj X_j,

a combination of the record and the support points. So norms and clipped sums follow from the
coefficients c (m) and E (m x m) and from inner products, without a matrix m x D for each record.

Every number of a record is a function of its own bytes and of public ones, to the last bit: only
elementwise operations that IEEE 754 defines, and `products.product`. (docs/privacy.md, statement
15)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from ..common.relu_kernel import ReluKernel
from ..embed.arithmetic import sum_in_fixed_order, sum_of_squares
from .products import product, relative_error


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Gradients of a batch: of record i with respect to point a, c_ia x_i + sum_j E_iaj X_j.

    Attributes:
        of_record: c, float64 (b, m).
        of_points: E, float64 (b, m, m).
        products: <x_i, X_j>, float64 (b, m).
        squares: ||x_i||^2, float64 (b,).
    """

    of_record: Tensor
    of_points: Tensor
    products: Tensor
    squares: Tensor


class SupportLoss:
    """The loss of records under kernel ridge regression from given support points.

    Args:
        kernel: the kernel.
        points: X, float64 (m, D): multiples of 2^-16 of at most 8, so that products with records
            are exact.
        targets: Y, float64 (m, c).
        ridge: of the regression, relative to the kernel's mean on the diagonal.
    """

    def __init__(self, kernel: ReluKernel, points: Tensor, targets: Tensor, ridge: float) -> None:
        self.points = points
        self._kernel = kernel
        self._size = len(points)
        self._ridge = ridge
        self._gram = points @ points.T
        self._squares = (points * points).sum(1)
        self._norms = torch.sqrt(self._squares)
        slopes = kernel.slopes(self._gram, self._squares, self._squares)
        # The slope is not defined where two records are the same: the diagonal has its own.
        self._first = slopes.first.clone().fill_diagonal_(0)
        self._second = slopes.second.clone().fill_diagonal_(0)
        system = slopes.values.clone()
        own = kernel.own(self._squares)
        system.diagonal().copy_(own + ridge * own.mean())
        factor = torch.linalg.cholesky(system)
        self._inverse = torch.cholesky_inverse(factor)
        self._solution = torch.cholesky_solve(targets, factor)

    def coefficients(self, records: Tensor, targets: Tensor) -> Coefficients:
        """The gradients of a batch.

        Args:
            records: float64 (b, D), multiples of 2^-8 of at most 1.
            targets: y, float64 (b, c).
        """
        products = records @ self.points.T  # exact
        squares = sum_of_squares(records)
        slopes = self._kernel.slopes(products, squares, self._squares)
        residual = product(slopes.values, self._solution) - targets
        u = product(slopes.values, self._inverse)
        v = product(residual, self._solution.T)
        trace = (self._ridge / self._size) * sum_in_fixed_order(u * v)[:, None]
        own = (
            v * slopes.second
            - (u * product(v, self._second) + v * product(u, self._second))
            - (u * v + trace) * self._kernel.own_slope()
        )
        outer = u[:, :, None] * v[:, None, :]
        of_points = (outer + outer.mT).mul_(-self._first.T)
        of_points.diagonal(dim1=1, dim2=2).copy_(own)
        return Coefficients(v * slopes.first, of_points, products, squares)

    def norms(self, found: Coefficients, slices: int = 3) -> tuple[Tensor, Tensor]:
        """Squared norms of the gradients over all support points, and how far off they may be.

        Args:
            found: the gradients.
            slices: of the largest product; see `products.product`.

        Returns:
            The squared norms as computed, float64 (b,), and bounds of their errors, float64 (b,),
            for the coefficients as they are. (docs/privacy.md, statement 16.)
        """
        size = self._size
        pairs = found.of_points.reshape(-1, size)
        image = product(pairs, self._gram, slices).view(-1, size, size)
        image += 2.0 * (found.of_record[:, :, None] * found.products[:, None, :])
        image *= found.of_points
        computed = sum_in_fixed_order(image.flatten(1))
        computed = computed + found.squares * sum_of_squares(found.of_record)
        sizes = pairs.abs()
        largest = sizes.amax(1).view(-1, size)
        reach = size * float(self._norms.max())
        # What the rows of E X are at most, were nothing to cancel.
        lengths = product(sizes, self._norms[:, None], 1).view(-1, size)
        lengths = lengths + relative_error(size, 1) * reach * largest
        error = relative_error(size, slices) * reach * sum_in_fixed_order(largest * lengths)
        everything = found.of_record.abs() * torch.sqrt(found.squares)[:, None] + lengths
        return computed, error + _ROUNDING * sum_of_squares(everything)


_ROUNDING: Final = 2.0**-44
"""Of sums of fewer than 2^30 terms by halving, relative to the sum of the sizes of the terms."""
