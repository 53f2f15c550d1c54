"""Per-record gradients of the loss with respect to the support points, as coefficients.

For a record x with target y, the loss is (Nguyen, Chen, Lee 2021; Vinaroz and Park 2023)

    l = 1/2 || y - k_x A^-1 Y ||^2,      A = K + ridge tr(K) / m I,

where K is the kernel matrix of the m support points and k_x the record's kernel values with them.
With r = k_x A^-1 Y - y, u = A^-1 k_x and v = A^-1 Y r, its differential is <v, dk_x> - u^T dA v.
Since dk(x, z) / dz is p x + q z (`dpntk.common.features.infinite_ntk`), the gradient with respect
to support point a is

    c_a x + sum_j E_aj X_j,

a combination of the record and the support points, and off the diagonal

    E = -(u v^T + v u^T) o M,      M the matrix of p for pairs of support points.

So norms and clipped sums follow from u, v, c and the diagonal, and from inner products, without an
m x D or m x m matrix per record. Norms take m^2 C^2 / 2 operations for C classes rather than m^3: v
= S r has one term per class (S = A^-1 Y), so the largest term, sum_a || sum_j E_aj X_j ||^2 over j
other than a, is a sum over pairs of classes,

    sum_cc' r_c r_c' u^T N_cc' u,

where the N_cc' are the same for all records of a step. (With G the inner products of support
points, P_c = M diag(S_c) G and Q_c = M o P_c, twice the symmetric part of

    diag(S_c') Q_c + 1/2 diag(Q_c S_c') + 1/2 G o (M diag(S_c S_c') M)

in c and c' will do.) Targets and residuals add up to 0 over the classes, so C - 1 of them are
enough.

Every number computed for a record is a function of its own bytes and of public numbers, to the last
bit: only elementwise operations that IEEE 754 defines, and `products`, are used.
(docs/privacy/proofs.md, statement 15)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final

import torch
from torch import Tensor

from ...common.arguments import argument
from ...common.display.representations import RedactedRepr
from ...common.errors import BudgetError
from ...common.features.infinite_ntk import ReluKernel
from ...common.numerics.exact import sum_in_fixed_order, sum_of_squares
from ...common.numerics.square_root import square_root
from .products import SlicedMatrix


@dataclass(frozen=True, eq=False, repr=False)
class Coefficients(RedactedRepr):
    """Gradients of a batch: for record i and point a, c_ia x_i + sum_j E_iaj X_j.

    E_iaa is d_ia, and E_iaj = -(u_ia v_ij + v_ia u_ij) M_aj.

    Attributes:
        of_record: c, float64 (b, m).
        own: d, float64 (b, m).
        u: float64 (b, m).
        v: float64 (b, m).
        residual: r without its last entry, float64 (b, C - 1).
        products: <x_i, X_j>, float64 (b, m).
        squares: ||x_i||^2, float64 (b,).
    """

    of_record: Tensor
    own: Tensor
    u: Tensor
    v: Tensor
    residual: Tensor
    products: Tensor
    squares: Tensor

    def __getitem__(self, rows: Tensor) -> Coefficients:
        """Those of some of the records."""
        return Coefficients(*(getattr(self, field.name)[rows] for field in fields(self)))


def require_memory(size: int, classes: int) -> None:
    """Check that the matrices for all pairs of classes fit into memory.

    Args:
        size: number of support points.
        classes: number of classes.

    Raises:
        BudgetError: they do not.
    """
    entries = classes * (classes - 1) // 2 * size**2
    if entries > _MOST_ENTRIES:
        raise BudgetError(
            f"{size:,} support points in {classes:,} classes need {entries >> 26:,} GB of memory: "
            f"choose a smaller {argument('per_class')}"
        )


class SupportLoss:
    """The loss of records under kernel ridge regression from given support points.

    Args:
        kernel: the kernel.
        points: X, float64 (m, D): multiples of 2^-16 and at most 8, so that products with records
            are exact.
        targets: Y, float64 (m, C); rows add up to 0.
        ridge: the regression's ridge, relative to the mean of the kernel's diagonal.
        slices: the number of slices in the products for norms; see `products.SlicedMatrix`.
        with_norms: whether `norms` will be called. Preparing for it takes longest.

    Attributes:
        points: X.
        first: M, float64 (m, m), symmetric, with zeros on the diagonal.
    """

    def __init__(
        self,
        kernel: ReluKernel,
        points: Tensor,
        targets: Tensor,
        ridge: float,
        slices: int = 2,
        *,
        with_norms: bool = True,
    ) -> None:
        self.points = points
        self._kernel = kernel
        self._size = len(points)
        self._ridge = ridge
        self._slices = slices
        self._gram = points @ points.T
        self._squares = (points * points).sum(1)
        self._norms = square_root(self._squares)
        slopes = kernel.slopes(self._gram, self._squares, self._squares)
        # The slope is undefined for two equal records, so the diagonal is treated separately.
        self.first = slopes.first.clone().fill_diagonal_(0)
        self._second = SlicedMatrix(slopes.second.clone().fill_diagonal_(0))
        system = slopes.values.clone()
        own = kernel.own(self._squares)
        system.diagonal().copy_(own + ridge * own.mean())
        factor = torch.linalg.cholesky(system)
        self._inverse = SlicedMatrix(torch.cholesky_inverse(factor))
        solution = torch.cholesky_solve(targets, factor)
        self._solution = SlicedMatrix(solution)
        self._differences = solution[:, :-1] - solution[:, -1:]
        self._of_record = SlicedMatrix(self.first, slices)
        self._of_own = SlicedMatrix(self.first * self._gram, slices)
        self._reach = SlicedMatrix(self.first.abs() * self._norms[:, None], 1)
        self._forms = list(self._pairs_of_classes()) if with_norms else []

    def coefficients(self, records: Tensor, targets: Tensor) -> Coefficients:
        """The gradients of a batch.

        Args:
            records: float64 (b, D), multiples of 2^-8 of at most 1.
            targets: y, float64 (b, C); rows add up to 0.
        """
        products = records @ self.points.T  # exact
        squares = sum_of_squares(records)
        slopes = self._kernel.slopes(products, squares, self._squares)
        residual = (self._solution.left_multiplied(slopes.values) - targets)[:, :-1].contiguous()
        u = self._inverse.left_multiplied(slopes.values)
        v = self._by_class(residual, self._differences)
        trace = (self._ridge / self._size) * sum_in_fixed_order(u * v)[:, None]
        own = (
            v * slopes.second
            - (u * self._second.left_multiplied(v) + v * self._second.left_multiplied(u))
            - (u * v + trace) * self._kernel.own_slope()
        )
        return Coefficients(v * slopes.first, own, u, v, residual, products, squares)

    def norms(self, found: Coefficients, slices: int | None = None) -> tuple[Tensor, Tensor]:
        """Squared norms of the gradients over all support points, with error bounds.

        Args:
            found: the gradients.
            slices: how many of the slices are used: one takes a third of the time that two take.
                None for all.

        Returns:
            The squared norms as computed, float64 (b,), and bounds on their errors, float64 (b,),
            for the given coefficients. (docs/privacy/proofs.md, statement 16.)
        """
        c, d, u, v = found.of_record, found.own, found.u, found.v
        squares = sum_of_squares(c) * found.squares
        squares += sum_in_fixed_order(d * d * self._squares + 2.0 * (c * d * found.products))
        error = torch.zeros_like(squares)
        for sliced, left, right in (
            (self._of_record, v * found.products, c * u),
            (self._of_record, u * found.products, c * v),
            (self._of_own, v, d * u),
            (self._of_own, u, d * v),
        ):
            squares -= 2.0 * sum_in_fixed_order(sliced.left_multiplied(left, slices) * right)
            error += 2.0 * sliced.truncation_error(left, slices) * sum_in_fixed_order(right.abs())
        for c, other, forms in self._forms:
            weights = found.residual[:, c] * found.residual[:, other]
            weights *= torch.where(c == other, 1.0, 2.0)
            count = len(c)
            for rows in torch.arange(len(u)).split(max(1, _ENTRIES // (count * self._size))):
                here = u[rows]
                images = forms.left_multiplied(here, slices).view(-1, count, self._size)
                images *= here[:, None]
                squares[rows] += sum_in_fixed_order(sum_in_fixed_order(images) * weights[rows])
            largest = sum_in_fixed_order(u.abs()) * sum_in_fixed_order(weights.abs())
            error += forms.truncation_error(u, slices) * largest
        return squares, error + self._rounding() * sum_of_squares(self._lengths(found))

    def _pairs_of_classes(self) -> Iterator[tuple[Tensor, Tensor, SlicedMatrix]]:
        """Pairs of classes c and c' with their matrices N_cc', several at a time."""
        solution, first, size = self._differences, self.first, self._size
        mixed = torch.stack([first * ((first * s) @ self._gram) for s in solution.T])  # Q_c
        pairs = torch.combinations(torch.arange(solution.shape[1]), with_replacement=True)
        for block in pairs.split(max(1, _ENTRIES // size**2)):
            forms = []
            for c, other in block.tolist():
                form = self._gram * ((first * (solution[:, c] * solution[:, other])) @ first)
                form += solution[:, other, None] * mixed[c] + solution[:, c, None] * mixed[other]
                form.diagonal().add_(mixed[c] @ solution[:, other])
                forms.append(form)
            yield block[:, 0], block[:, 1], SlicedMatrix(torch.cat(forms, dim=1), self._slices)

    def _lengths(self, found: Coefficients) -> Tensor:
        """Upper bounds on the norms of gradient rows, without cancellation; float64 (b, m)."""

        def summed(sizes: Tensor) -> Tensor:
            """An upper bound on sum_j |M_aj| ||X_j|| sizes_j."""
            return self._reach.left_multiplied(sizes) + self._reach.truncation_error(sizes)[:, None]

        u, v = found.u.abs(), self._by_class(found.residual.abs(), self._differences.abs())
        lengths = found.of_record.abs() * square_root(found.squares)[:, None]
        lengths += found.own.abs() * self._norms
        return lengths + (u * summed(v) + v * summed(u))

    def _rounding(self) -> float:
        """The rounding error relative to these bounds' squares: no term is rounded more often."""
        size, classes = len(self._differences), self._differences.shape[1]
        return (4 * size + 4 * classes + 128) * 2.0**-53

    @staticmethod
    def _by_class(residual: Tensor, solution: Tensor) -> Tensor:
        """sum_c r_c S_c, float64 (b, m), in a fixed order."""
        total = residual[:, :1] * solution[:, 0]
        for c in range(1, solution.shape[1]):
            total += residual[:, c : c + 1] * solution[:, c]
        return total


_MOST_ENTRIES: Final = 1 << 30
"""The most entries of all N_cc' together: 16 GB in two slices."""
_ENTRIES: Final = 1 << 18
"""Numbers that are processed at a time, so that they stay in a processor's cache."""
