"""How the numbers of a class go together, as released, for rows that exchange values.

A release with products of numbers (`dpntk.common.features.moments`) holds E z z^T of each class
with noise. When rows exchange values of a column, its mean and variance stay, and what is left to
be matched are correlations. Among all laws with these columns and given correlations, the one of
the largest entropy has an energy that is a quadratic form in the standardised numbers. It is looked
for beside the energy that the other features ask for, and each of its coefficients is held back by
a ridge: the variance of the noise over that of correlations. So a correlation of which the noise
leaves nothing is what the other features make it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....common.features.joint import Parts
from ....common.features.moments import STEPS, TO_STEPS, MomentFeatures
from ....common.schema.encoding import Block

_LEAST_DEVIATION: Final = 0.02
"""Numbers that vary less, on a scale of -1..1, are as good as constant on the grid of products."""
_LEAST_EIGENVALUE: Final = 0.03
"""Of correlations that rows are to have: no combination of numbers is as good as constant."""
_RATE: Final = 0.2
_EXACT: Final = 1e-12


@dataclass(frozen=True, eq=False)
class ReleasedMoments:
    """The released mean of z z^T of one class, z on a scale of -1..1.

    Attributes:
        features: of which they are the mean.
        products: noisy, float64 (k, k), symmetric.
        means: noisy, float64 (k,).
        noise: standard deviation of the noise on each of them but the diagonal.
    """

    features: MomentFeatures
    products: NDArray[np.float64]
    means: NDArray[np.float64]
    noise: float

    @classmethod
    def of(cls, parts: Parts, mean: NDArray[np.float32], noise: float) -> ReleasedMoments | None:
        """Read them off a class's mean feature; None if it holds none.

        Args:
            parts: of the feature map.
            mean: noisy, float32 (d,).
            noise: standard deviation of the noise on an entry of it.
        """
        moments = parts.moments
        if moments is None:
            return None
        size = parts.moment_weight * moments.entry * STEPS**2
        noisy = mean[parts.moment_place].astype(np.float64) / size
        twice = noisy.reshape(moments.factors, moments.factors)
        # Each product of two factors is there twice, with noise of its own; the first one is 1.
        products = (twice + twice.T) / 2
        return cls(moments, products[1:, 1:], products[0, 1:], noise / size / np.sqrt(2))

    @property
    def places(self) -> list[int]:
        """Of each number in a record."""
        return [place for place, _ in self.features.numbers]

    def numbers(self, records: Tensor) -> Tensor:
        """Numbers of rows (n, record size) of values 0..1, as they would be read back, (n, k)."""
        levels = (records[:, self.places].clamp(0, 1) * self.features.levels).round()
        found = (levels.div(TO_STEPS, rounding_mode="floor") * 2 - STEPS) / STEPS
        for number, (_, missing) in enumerate(self.features.numbers):
            if missing >= 0:
                found[records[:, missing] * self.features.levels >= 0.5, number] = 0.0
        return found


class Correlations:
    """The part of an energy that makes numbers go together: z^T A z / 2, A found on the way.

    Args:
        released: of the class.
        records: rows with the columns that all rows will have, (n, record size).
    """

    def __init__(self, released: ReleasedMoments, records: Tensor) -> None:
        self._released = released
        numbers = released.numbers(records).double()
        self._mean, self._scale = numbers.mean(dim=0), numbers.std(dim=0, correction=0)
        varies = self._scale > _LEAST_DEVIATION
        self._scale = self._scale.clamp(min=_LEAST_DEVIATION)
        size = torch.outer(self._scale, self._scale)
        # Released products are of numbers with the means of the class, of which the rows' are one
        # estimate and the released ones another.
        likely = (self._mean + torch.from_numpy(released.means)) / 2
        centred = torch.from_numpy(released.products) - torch.outer(likely, likely)
        varies = torch.outer(varies, varies)
        self._seen = (centred / size).clamp(-1, 1)
        self._free = varies.fill_diagonal_(False)
        # Of an error in the means a product has a part, too.
        squares = likely.square()
        self._ridge = _ridge(
            self._seen, released.noise**2 * (1 + squares[:, None] + squares) / size**2, self._free
        )
        # If all numbers were Gaussian and went together in no other way, this would be all.
        believed = (self._seen / (1 + self._ridge) * self._free).fill_diagonal_(1.0)
        self._theta = -torch.linalg.inv(_as_correlations(believed)) * self._free

    def standardised(self, records: Tensor) -> Tensor:
        """Numbers of mean 0 and variance 1, float32 (n, k)."""
        return ((self._released.numbers(records) - self._mean) / self._scale).float()

    def learn(self, records: Tensor) -> None:
        """Change the energy by what the correlations of rows, as they stand, still lack."""
        numbers = self.standardised(records).double()
        missing = self._seen - numbers.T @ numbers / len(numbers)
        # The ridge counts at the new coefficients: else a large one would make the steps diverge.
        longer = self._theta + _RATE * missing * self._free
        self._theta = longer / (1 + _RATE * self._ridge)

    def pull(self, records: Tensor) -> Pull:
        """What exchanges between the first half of some rows and the other one change."""
        return Pull(self.standardised(records), self._theta.float(), self._released.places)


class Pull:
    """By how much the energy grows if two rows exchange a number.

    Args:
        numbers: standardised, (2 n, k); row i may exchange values with row n + i.
        coefficients: symmetric, 0 on the diagonal, (k, k).
        places: in a record of each number, (k,).

    Attributes:
        coefficients: as above.
    """

    def __init__(self, numbers: Tensor, coefficients: Tensor, places: Sequence[int]) -> None:
        half = len(numbers) // 2
        self.coefficients = coefficients
        self._places = {place: number for number, place in enumerate(places)}
        self._apart = numbers[:half] - numbers[half:]
        self._towards = self._apart @ coefficients

    def gain(self, block: Block) -> Tensor | float:
        """Of each pair of rows, if they exchange their values of a column, (n,).

        With rows x and y the energy is x^T A x / 2 + y^T A y / 2, and x_j and y_j have no square in
        it: it changes by (y_j - x_j) (A (x - y))_j.
        """
        number = self._places.get(block.place.start)
        if number is None:
            return 0.0
        return -self._apart[:, number] * self._towards[:, number]

    def exchanged(self, block: Block, chosen: Tensor) -> None:
        """Some pairs, int64 (m,), have exchanged their values of a column."""
        number = self._places.get(block.place.start)
        if number is None:
            return
        twice = 2 * self._apart[chosen, number]
        self._apart[chosen, number] -= twice
        self._towards[chosen] -= twice[:, None] * self.coefficients[number]


def _ridge(seen: Tensor, noise: Tensor, free: Tensor) -> Tensor:
    """What holds each coefficient back: the noise's variance over that of correlations.

    The latter is what the released correlations leave when the noise is taken off, each weighing as
    it is known (empirical Bayes): with nothing left no correlation is believed.

    Args:
        seen: noisy correlations, (k, k).
        noise: variance of the noise on each, (k, k).
        free: which there are, bool (k, k).
    """
    weights = free / noise.clamp(min=_EXACT).square()
    total = weights.sum().clamp(min=_EXACT)
    variance = (weights * (seen.square() - noise)).sum() / total
    return noise / variance.clamp(min=_EXACT)


def _as_correlations(noisy: Tensor) -> Tensor:
    """A matrix near to some noisy correlations that some numbers have, positive definite."""
    values, vectors = torch.linalg.eigh(noisy)
    matrix = vectors @ torch.diag(values.clamp(min=_LEAST_EIGENVALUE)) @ vectors.T
    scale = matrix.diagonal().rsqrt()
    found: Tensor = matrix * torch.outer(scale, scale)
    return found
