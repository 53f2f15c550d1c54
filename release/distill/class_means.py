"""The first steps of a distillation: class means, at which the support points start.

Support points that start as noise have to find first what all records of a class have in common,
and what is left of the noise stays with them. Sums of whole records tell that in a few steps.
"""

from __future__ import annotations

from torch import Tensor

from ...common.numerics.exact import sum_of_squares
from ...common.numerics.square_root import square_root


class ClassMeans:
    """Sums of records of each class, every record scaled to length 1.

    Args:
        points: the support points, float64 (m, D).
        targets: their targets, float64 (m, C).

    Attributes:
        points: the support points.
        shapes: of the sums.
    """

    def __init__(self, points: Tensor, targets: Tensor) -> None:
        self.points = points
        self._labels = targets.argmax(1)
        self.shapes = ((targets.shape[1], points.shape[1]),)

    def whole(self, pixels: Tensor, targets: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """Each record's class, and the record, as integers of this length at most.

        The integers nearest to a vector are at most sqrt(D) / 2 from it.

        Args:
            pixels: integers, float64 (b, D).
            targets: float64 (b, C).
            length: the length.

        Returns:
            float64 (b, C), a one in each row, and float64 (b, D).
        """
        longest = (length - pixels.shape[1]) * (1 - 2.0**-40)
        lengths = square_root(sum_of_squares(pixels))[:, None].clamp_min(1.0)
        return (targets > 0).double(), (pixels * (longest / lengths)).round_()

    def gradient(self, sums: Tensor) -> Tensor:
        """For each support point the sum of its class, float64 (m, D)."""
        return sums[self._labels]

    def exact_gradient(self, records: Tensor, targets: Tensor) -> Tensor:
        """The same without noise, float64 (m, D)."""
        lengths = (records * records).sum(1, keepdim=True).sqrt().clamp_min(1e-300)
        return self.gradient((targets > 0).double().T @ (records / lengths))
