"""How the columns of a class go together, as released, for rows that exchange values.

A release with products of columns (`dpntk.common.features.moments`) holds E z z^T / |z|^2 of each
class with noise. When rows exchange values of a column, its own law stays, and what is left to be
matched is what goes with what. Among laws with these columns, those of an energy that is a
quadratic form in the standardised numbers and indicators of categories are looked for, beside the
energy that the other features ask for. Each of its coefficients is held back by a ridge: the
variance of the noise over that of what pairs of its kind show. So what the noise leaves nothing of
is what the other features make it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....common.features.joint import Parts
from ....common.features.moments import CONSTANT, INDICATOR, STEPS, TO_STEPS, MomentFeatures
from ....common.schema.encoding import Block

_LEAST_DEVIATION: Final = 0.5
"""Numbers that vary less, in steps, and categories that hardly anyone has, are as good as constant.
"""
_LEAST_EIGENVALUE: Final = 0.03
"""Of correlations that rows are to have: no combination of numbers is as good as constant."""
_RATE: Final = 0.2
_SQUARES: Final = 0.3
"""How far the mean square of a number usually is from what it is in independent rows,"""
_LEAST_SQUARE: Final = 0.2
"""and what it is at least."""
_EXACT: Final = 1e-12
_SURE: Final = 2.0
"""So many standard deviations of the noise are more than that explains."""
_LIKE_OTHERS: Final = 8.0
"""Pairs of columns with so many products are half like all pairs, half like themselves."""


@dataclass(frozen=True, eq=False)
class ReleasedMoments:
    """The released mean of z z^T / |z|^2 of one class.

    Attributes:
        features: of which they are the mean.
        products: noisy, float64 (k, k), symmetric.
        noise: standard deviation of the noise on each of them but the diagonal.
    """

    features: MomentFeatures
    products: NDArray[np.float64]
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
        noisy = mean[parts.moment_place].astype(np.float64) / parts.moment_weight
        twice = noisy.reshape(moments.factors, moments.factors)
        # Each product of two factors is there twice, with noise of its own.
        return cls(moments, (twice + twice.T) / 2, noise / parts.moment_weight / np.sqrt(2))

    def columns(self) -> Tensor:
        """Which column each of z belongs to, numbers first; the constant's is 0. int64 (k,)."""
        found = torch.zeros(self.features.factors, dtype=torch.int64)
        for column, place in enumerate(self.features.places.values()):
            found[place] = 1 + column
        return found

    def factors(self, records: Tensor) -> Tensor:
        """Z of rows (n, record size) of values 0..1, as they would be read back, (n, k).

        Of each column of categories, rows have one.
        """
        features = self.features
        places = [place for place, _ in features.numbers]
        levels = (records[:, places].clamp(0, 1) * features.levels).round()
        numbers = levels.div(TO_STEPS, rounding_mode="floor") * 2 - STEPS
        for number, (_, missing) in enumerate(features.numbers):
            if missing >= 0:
                numbers[records[:, missing] * features.levels >= 0.5, number] = 0.0
        having = [
            place for first, count in features.categories for place in range(first, first + count)
        ]
        categories = (records[:, having] > 0.5).to(records) * INDICATOR
        constant = torch.full_like(records[:, :1], CONSTANT)
        return torch.cat([constant, numbers, categories], dim=1) * features.times.to(records)


class Correlations:
    """The part of an energy that makes columns go together: y^T A y / 2, A found on the way.

    Args:
        released: of the class.
        records: rows with the columns that all rows will have, (n, record size).
    """

    def __init__(self, released: ReleasedMoments, records: Tensor) -> None:
        self._released = released
        z = released.factors(records).double()
        self._mean, self._scale = z.mean(dim=0), z.std(dim=0, correction=0)
        least = _LEAST_DEVIATION * released.features.times
        varies = self._scale > least
        self._scale = self._scale.clamp(min=least)
        self._mean[0], self._scale[0] = 0.0, 1.0
        self._weight = float((1 / z.square().sum(dim=1)).mean())
        column = released.columns()
        self._free = torch.outer(varies, varies) & (column[:, None] != column)
        # About the rows' means, by the released products with the constant, too: where columns go
        # together, these are others than the rows', as |z|^2 is. Where that is no more than noise
        # explains, half of it is believed: much noise would come with it.
        apart = torch.from_numpy(released.products) - _products(z, z)
        explained = _SURE**2 * released.noise**2 / apart[0].square().clamp(min=_EXACT**2)
        centre = torch.eye(len(z[0]), dtype=torch.float64)
        centre[1:, 0] = -self._mean[1:] / CONSTANT * (1 - explained[1:]).clamp(min=0.5)
        size = torch.outer(self._scale, self._scale) * self._weight
        lacking = centre @ apart @ centre.T
        lacking = (lacking / size).clamp(-1, 1)
        here = self._standard(z)
        self._seen = here + lacking
        longer = centre.square().sum(dim=1)
        noise = released.noise**2 * torch.outer(longer, longer) / size**2
        self._ridge = torch.full_like(noise, torch.inf)
        belongs = torch.nn.functional.one_hot(column).double()
        is_number = (column > 0) & (column <= len(released.features.numbers))
        for numbers in (0, 1, 2):
            kind = self._free & (is_number[:, None].long() + is_number == numbers)
            if kind.any():
                self._ridge = torch.where(kind, _ridge(lacking, noise, kind, belongs), self._ridge)
        # If all numbers were Gaussian and went together in no other way, this would be all. Squares
        # are released, too: rows that are far out weigh less, and go together more.
        squares = here.diagonal() + lacking.diagonal() / (1 + 2 * noise.diagonal() / _SQUARES**2)
        scale = squares.clamp(min=_LEAST_SQUARE).rsqrt()
        believed = (self._seen * torch.outer(scale, scale)).clamp(-1, 1) / (1 + self._ridge)
        among = self._free & is_number[:, None] & is_number
        likely = _as_correlations(torch.where(among, believed, 0.0).fill_diagonal_(1.0))
        self._theta = torch.where(among, -torch.linalg.inv(likely), 0.0)

    def _standard(self, z: Tensor) -> Tensor:
        """What products of standardised numbers and indicators are, weighed as released ones."""
        y = (z - self._mean) / self._scale
        return _products(z, y) / self._weight

    def standardised(self, records: Tensor) -> Tensor:
        """Numbers and indicators of mean 0 and variance 1, float32 (n, k)."""
        return ((self._released.factors(records) - self._mean) / self._scale).float()

    def learn(self, records: Tensor) -> None:
        """Change the energy by what the products of rows, as they stand, still lack."""
        missing = self._seen - self._standard(self._released.factors(records).double())
        # The ridge counts at the new coefficients: else a large one would make the steps diverge.
        longer = self._theta + _RATE * missing
        self._theta = torch.where(self._free, longer / (1 + _RATE * self._ridge), 0.0)

    def pull(self, records: Tensor) -> ProductPull:
        """What exchanges between the first half of some rows and the other one change."""
        places = self._released.features.places
        return ProductPull(self.standardised(records), self._theta.float(), places)


class ProductPull:
    """By how much the energy grows if two rows exchange their values of a column.

    Args:
        numbers: standardised, (2 n, k); row i may exchange values with row n + i.
        coefficients: symmetric, 0 for two numbers of a column, (k, k).
        places: of each column, by where its part of a record begins.

    Attributes:
        coefficients: as above.
    """

    def __init__(self, numbers: Tensor, coefficients: Tensor, places: dict[int, slice]) -> None:
        half = len(numbers) // 2
        self.coefficients = coefficients
        self._places = places
        self._apart = numbers[:half] - numbers[half:]
        self._towards = self._apart @ coefficients

    def gain(self, block: Block) -> Tensor | float:
        """Of each pair of rows, if they exchange their values of a column, (n,).

        With rows x and y the energy is x^T A x / 2 + y^T A y / 2, and x_j and y_j have no square in
        it: it changes by (y_j - x_j) (A (x - y))_j.
        """
        place = self._place(block)
        if place is None:
            return 0.0
        gain: Tensor = -torch.linalg.vecdot(self._apart[:, place], self._towards[:, place])
        return gain

    def exchanged(self, block: Block, chosen: Tensor) -> None:
        """Some pairs, int64 (m,), have exchanged their values of a column."""
        place = self._place(block)
        if place is None:
            return
        twice = 2 * self._apart[chosen, place]
        self._apart[chosen, place] -= twice
        self._towards[chosen] -= twice @ self.coefficients[place]

    def _place(self, block: Block) -> slice | None:
        return self._places.get(block.first)


def _products(z: Tensor, y: Tensor) -> Tensor:
    """The mean of y y^T / |z|^2, (k, k)."""
    found: Tensor = (y / z.square().sum(dim=1, keepdim=True)).T @ y / len(y)
    return found


def _ridge(seen: Tensor, noise: Tensor, free: Tensor, belongs: Tensor) -> Tensor:
    """What holds each coefficient back: the noise's variance over that of what goes together.

    The latter is what the released products leave when the noise is taken off, each weighing as
    it is known (empirical Bayes): with nothing left no product is believed. A pair of columns has a
    variance of its own, as far as it has many products; for the rest, that of all pairs.

    Args:
        seen: noisy, (k, k).
        noise: variance of the noise on each, (k, k).
        free: which there are, bool (k, k).
        belongs: to which column each of z does, (k, columns), 0 or 1.
    """
    weights = free / noise.clamp(min=_EXACT).square()
    left = weights * (seen.square() - noise)
    of_all = left.sum() / weights.sum()
    cells = belongs.T @ free.double() @ belongs
    total = (belongs.T @ weights @ belongs).clamp(min=_EXACT)
    like_all = _LIKE_OTHERS / cells.clamp(min=1)
    own = (belongs.T @ left @ belongs / total + like_all * of_all) / (1 + like_all)
    variance = belongs @ own @ belongs.T
    return noise / variance.clamp(min=_EXACT)


def _as_correlations(noisy: Tensor) -> Tensor:
    """A matrix near to some noisy correlations that some numbers have, positive definite."""
    values, vectors = torch.linalg.eigh(noisy)
    matrix = vectors @ torch.diag(values.clamp(min=_LEAST_EIGENVALUE)) @ vectors.T
    scale = matrix.diagonal().rsqrt()
    found: Tensor = matrix * torch.outer(scale, scale)
    return found
