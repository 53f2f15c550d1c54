"""What a step takes from each record, and the gradient that follows from sums of it.

For a record x with target y, the loss is (Nguyen, Chen, Lee 2021; Vinaroz and Park 2023)

    l = 1/2 || y - k_x A^-1 Y ||^2,      A = K + ridge tr(K) / m I,

where K is the kernel matrix of the m support points X and k_x the record's kernel values with them.
With S = A^-1 Y, r = k_x S - y, v = S r and u = A^-1 k_x its differential is <v, dk_x> - u^T dA v.
Since dk(x, z) / dz is p x + q z (`dpntk.common.features.infinite_ntk`), the gradient with respect
to support point a is

    v_a p_a x + v_a q_a X_a - (terms of u v^T with public factors).

Summed over a batch, the last part is a linear function of the small matrix sum u r^T, because v = S
r and S is public. So three sums over the records are enough for the gradient of the batch:

    J = sum (v o p) x^T  (m, D),      h = sum v o q  (m,),      U = sum u r^T  (m, C),

and a record's share in them has a norm that is a product of norms of vectors. No number of a record
takes more work than its kernel values do. (The norm of a record's gradient itself takes m^2 C^2.)

Less noise does the same if a record's share is made shorter by what the sums know anyhow:

- *The rest.* J without sum p' v (u^T X)^T, where p' is the mean slope between support points, is as
  good as J, as this is p' S U^T X. So x counts with v o (p - p'), and the rest x - u^T X, which is
  what the support points do not explain of x, with p' v.
- *Directions.* The vectors v o p = (S r) o p lie nearly in few directions of R^m. Those of records
  that are support points, with residuals in all directions, have the covariance (S S^T) o (M M^T),
  M the slopes p between support points. Of J only the part along its first eigenvectors is summed.
- *Whitening.* In place of u, W^T k_x is summed, where W^T A W = I. Its norm is at most
  sqrt(k(x, x)). With many support points, W has only the first eigenvectors of A.

Every number computed for a record is a function of its own bytes and of public numbers, to the last
bit: only elementwise operations that IEEE 754 defines, and `products`, are used.
(docs/privacy/proofs.md, statement 15)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from ...common.arguments import argument
from ...common.display.representations import RedactedRepr
from ...common.errors import BudgetError
from ...common.features.infinite_ntk import ReluKernel
from ...common.numerics.exact import sum_of_squares
from ...common.numerics.square_root import square_root
from ..file.distilled import MOST_POINTS
from .products import SlicedMatrix

REST: Final = 1 << 13
"""The rest of a record is rounded to multiples of 1 divided by this."""
DIRECTION: Final = 1 << 20
"""The direction of a residual is rounded to multiples of 1 divided by this."""
_WEIGHT: Final = 0.28
"""What shares of U are multiplied by. They count for a quarter of a share's square on MNIST."""
_DIRECTIONS: Final = 30, 3
"""The least number of directions for J, and the least for each class but one."""
_WHITENED: Final = 100, 10
"""The least number of eigenvectors of A, and the least for each class."""


@dataclass(frozen=True, eq=False, repr=False)
class Contributions(RedactedRepr):
    """What records contribute: a x^T + b y^T to J, h, and s t^T to U, each in its public scale.

    Attributes:
        of_record: a, float64 (b, k), along k directions of R^m.
        of_rest: b, float64 (b, k).
        record: x, float64 (b, D): whole multiples of 1 / REST.
        rest: y, the rest, float64 (b, D): also.
        own: h, float64 (b, m).
        seen: s, float64 (b, l), with the length of the residual.
        direction: t, the residual's direction, float64 (b, C): multiples of 1 / DIRECTION.
    """

    of_record: Tensor
    of_rest: Tensor
    record: Tensor
    rest: Tensor
    own: Tensor
    seen: Tensor
    direction: Tensor


def require_memory(size: int) -> None:
    """Check that matrices for all pairs of support points fit into memory.

    Raises:
        BudgetError: they do not.
    """
    if size > MOST_POINTS:
        raise BudgetError(
            f"{size:,} support points are too many, {MOST_POINTS:,} are the most: choose a "
            f"smaller {argument('per_class')}"
        )


class SupportLoss:
    """The loss of records under kernel ridge regression from given support points.

    Args:
        kernel: the kernel.
        points: X, float64 (m, D): multiples of 2^-16 and at most 8, so that products with records
            are exact.
        targets: Y, float64 (m, C); rows add up to 0.
        ridge: the regression's ridge, relative to the mean of the kernel's diagonal.
        directions: the most directions along which J is summed; None for the default.
        whitened: the most eigenvectors of A in W; None for the default.

    Attributes:
        points: X.
        shapes: of the sums of `Contributions` over records.
    """

    def __init__(
        self,
        kernel: ReluKernel,
        points: Tensor,
        targets: Tensor,
        ridge: float,
        directions: int | None = None,
        whitened: int | None = None,
    ) -> None:
        size, inputs = points.shape
        classes = targets.shape[1]
        self.points = points
        self._kernel = kernel
        self._ridge = ridge
        self._squares = (points * points).sum(1)
        slopes = kernel.slopes(points @ points.T, self._squares, self._squares)
        # The slope is undefined for two equal records, so the diagonal is treated separately.
        self._first = slopes.first.clone().fill_diagonal_(0)
        self._second = slopes.second.clone().fill_diagonal_(0)
        system = slopes.values.clone()
        own = kernel.own(self._squares)
        system.diagonal().copy_(own + ridge * own.mean())
        self._factor = torch.linalg.cholesky(system)
        self._solution = torch.cholesky_solve(targets, self._factor)
        self._slope = float(self._first.sum()) / max(1, size * (size - 1))
        along = min(size, directions or max(_DIRECTIONS[0], _DIRECTIONS[1] * (classes - 1)))
        self._directions = self._first_directions(along) if along < size else None
        few = min(size, whitened or max(_WHITENED[0], _WHITENED[1] * classes))
        self._whitening = self._whiten(system, few)
        self.shapes = (along, inputs), (size,), (few, classes)
        # Units in which shares have about the length of the residual, whatever the points are.
        self._unit = max(float(self._solution.norm()), 1e-300) * 2 / math.sqrt(classes * inputs)
        self._own_unit = self._unit / max(float(self._squares.mean().sqrt()), 1e-3)
        self._sliced_solution = SlicedMatrix(self._solution, 2)
        self._sliced_transposed = SlicedMatrix(self._solution.T.contiguous(), 2)
        self._sliced_whitening = SlicedMatrix(self._whitening, 2)
        self._sliced_explained = SlicedMatrix(self._whitening.T @ points, 1)
        if self._directions is not None:
            self._sliced_directions = SlicedMatrix(self._directions, 1)

    def shares(self, records: Tensor, targets: Tensor) -> Contributions:
        """What each record of a batch contributes.

        Args:
            records: x, float64 (b, D), multiples of 2^-8 of at most 1.
            targets: y, float64 (b, C); rows add up to 0.
        """
        slopes = self._kernel.slopes(
            records @ self.points.T,  # exact
            sum_of_squares(records),
            self._squares,
        )
        residual = self._sliced_solution.left_multiplied(slopes.values) - targets
        v = self._sliced_transposed.left_multiplied(residual) / self._unit
        seen = self._sliced_whitening.left_multiplied(slopes.values)
        rest = ((records - self._sliced_explained.left_multiplied(seen)) * REST).round_() / REST
        of_record, of_rest = v * (slopes.first - self._slope), v * self._slope
        if self._directions is not None:
            of_record = self._sliced_directions.left_multiplied(of_record)
            of_rest = self._sliced_directions.left_multiplied(of_rest)
        length = square_root(sum_of_squares(residual))[:, None]
        direction = (residual / length.clamp_min(1e-300) * DIRECTION).round_() / DIRECTION
        own = v * slopes.second * (self._unit / self._own_unit)
        seen = seen * (length * _WEIGHT)
        return Contributions(of_record, of_rest, records, rest, own, seen, direction)

    def gradient(self, of_records: Tensor, own: Tensor, seen: Tensor) -> Tensor:
        """The gradient of a batch, from the sums of its records' shares, noisy or not.

        Returns:
            float64 (m, D).
        """
        if self._directions is not None:
            of_records = self._directions @ of_records
        solved = self._whitening @ (seen / _WEIGHT)
        explained = self._solution @ (solved.T @ self.points)
        return self._from_sums(
            of_records * self._unit + self._slope * explained, own * self._own_unit, solved
        )

    def exact_gradient(self, records: Tensor, targets: Tensor) -> Tensor:
        """The gradient of a batch, float64 (m, D), without the detour by `shares`."""
        slopes = self._kernel.slopes(
            records @ self.points.T, (records * records).sum(1), self._squares
        )
        residual = slopes.values @ self._solution - targets
        v = residual @ self._solution.T
        parts = v * slopes.first, v * slopes.second, slopes.values, residual
        finite = torch.stack([each.isfinite().all(1) for each in parts]).all(0)[:, None]
        c, h, k, r = (torch.where(finite, each, 0.0) for each in parts)
        return self._from_sums(c.T @ records, h.sum(0), torch.cholesky_solve(k.T @ r, self._factor))

    def _from_sums(self, of_records: Tensor, own: Tensor, solved: Tensor) -> Tensor:
        """The gradient from J, h and U."""
        system = solved @ self._solution.T
        trace = self._ridge / len(system) * system.trace()
        own_slope = self._kernel.own_slope()
        diagonal = own - (system.diagonal() + trace) * own_slope
        system = system + system.T
        diagonal = diagonal - (system * self._second).sum(0)
        between = (system * self._first) @ self.points
        gradient: Tensor = of_records + diagonal[:, None] * self.points - between
        return gradient

    def _first_directions(self, few: int) -> Tensor:
        """Eigenvectors of the covariance of v o p, float64 (m, few)."""
        covariance = (self._solution @ self._solution.T) * (self._first @ self._first)
        vectors: Tensor = torch.linalg.eigh(covariance)[1]
        return vectors[:, -few:].contiguous()

    def _whiten(self, system: Tensor, few: int) -> Tensor:
        """W, float64 (m, few)."""
        whitening: Tensor
        if few == len(system):
            one = torch.eye(few, dtype=system.dtype)
            whitening = torch.linalg.solve_triangular(self._factor.T, one, upper=True)
        else:
            values, vectors = torch.linalg.eigh(system)
            whitening = vectors[:, -few:] / values[-few:].sqrt()
        return whitening
