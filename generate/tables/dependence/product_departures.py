"""The departure of released products of columns from independence.

A release with products of columns (`dpntk.common.features.moments`) holds E z z^T / |z|^2 of each
class, with noise. Rows with the right but independent columns have other such products. The
difference is the evidence of dependence between columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....common.features.joint import Parts
from ....common.features.moments import (
    CONSTANT,
    INDICATOR,
    LEAST_DEVIATION,
    STEPS,
    TO_STEPS,
    MomentFeatures,
    noise_variances,
)

EXACT: Final = 1e-12
_SURE: Final = 2.0
"""Differences beyond this many standard deviations of the noise are significant."""
_ORDERS: Final = tuple(10.0 ** (power / 4) for power in range(-24, 1))
"""Candidates for a variance: differences are at most about 1."""
_EXPONENTS: Final = (-2, -1, 0, 1)
"""Candidates for the power of what is typical that variances are a multiple of."""


@dataclass(frozen=True, eq=False)
class ReleasedMoments:
    """The released mean of z z^T / |z|^2 of one class.

    Attributes:
        features: the features that they are the mean of.
        products: noisy, float64 (k, k), symmetric, projected to what records can have.
        noise: standard deviation of the noise on each off-diagonal product, as released; the
            projection leaves less of it.
    """

    features: MomentFeatures
    products: NDArray[np.float64]
    noise: float

    @classmethod
    def of(cls, parts: Parts, mean: NDArray[np.float32], noise: float) -> ReleasedMoments | None:
        """Extract the products from a class's mean feature; None if it holds none.

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
        possible = moments.possible.numpy()
        products: NDArray[np.float64] = possible @ (twice + twice.T) @ possible / 2
        # Each product of two factors appears twice, with independent noise.
        return cls(moments, products, noise / parts.moment_weight / np.sqrt(2))

    def factors(self, records: Tensor) -> Tensor:
        """The vectors z, (n, k), of rows (n, record size), values 0..1, as read back.

        Rows have one category of each column of categories.
        """
        features, marked = self.features, self._marked
        read = records.index_select(1, self._places)
        several = len(features.numbers)
        numbers, marks, categories = read.tensor_split([several, several + len(marked)], dim=1)
        z = torch.empty(len(records), features.factors, dtype=records.dtype)
        z[:, 0] = CONSTANT
        levels = numbers.clamp_(0, 1).mul_(features.levels).round_()
        z[:, 1 : 1 + several] = levels.div_(TO_STEPS).floor_().mul_(2).sub_(STEPS)
        for number, mark in zip(marked, marks.unbind(1), strict=True):
            z[:, 1 + number].masked_fill_(mark * features.levels >= 0.5, 0.0)
        z[:, 1 + several :] = (categories > 0.5) * INDICATOR
        return z.mul_(features.times)

    @cached_property
    def _marked(self) -> list[int]:
        """The numbers that may be missing."""
        return [number for number, (_, mark) in enumerate(self.features.numbers) if mark >= 0]

    @cached_property
    def _places(self) -> Tensor:
        """Where numbers, marks of missing ones and categories are in a record, int64 (k,)."""
        numbers = self.features.numbers
        places = [place for place, _ in numbers] + [numbers[number][1] for number in self._marked]
        for first, count in self.features.categories:
            places += range(first, first + count)
        return torch.tensor(places, dtype=torch.int64)


@dataclass(frozen=True, eq=False)
class Departure:
    """How the products of a class differ from those of independent columns.

    Attributes:
        mean: mean of z in rows of independent columns, float64 (k,); 0 for the constant.
        scale: its standard deviation there, (k,); 1 for the constant.
        weight: mean of 1 / |z|^2 there.
        difference: released products of standardised numbers and indicators minus those of
            independent rows, (k, k).
        noise: variance of the noise on each of these, (k, k).
        projection_factor: factor by which that variance would be larger without the projection,
            (k, k).
        changeable: which products swaps can change, bool (k, k).
        typical: how large squares of differences usually are, up to a factor for each pair of
            columns, (k, k): those of rare categories are smaller.
        column: the column of each entry of z, int64 (k,).
        is_number: which entries are numbers, bool (k,).
    """

    mean: Tensor
    scale: Tensor
    weight: float
    difference: Tensor
    noise: Tensor
    projection_factor: Tensor
    changeable: Tensor
    typical: Tensor
    column: Tensor
    is_number: Tensor

    @classmethod
    def of(cls, released: ReleasedMoments, records: Tensor) -> Departure:
        """The departure of a class.

        Args:
            released: products of the class.
            records: rows with its columns, independent of one another, (n, record size).
        """
        z = released.factors(records).double()
        mean, scale = z.mean(dim=0), z.std(dim=0, correction=0)
        least = LEAST_DEVIATION * released.features.times
        varies, scale = scale > least, scale.clamp(min=least)
        mean[0], scale[0] = 0.0, 1.0
        weight = float((1 / z.square().sum(dim=1)).mean())
        # Centre at the rows' means, and also by the released products with the constant: where
        # columns depend on each other, these differ from the rows', as |z|^2 does. If noise
        # explains the difference, only half of it is used, because it would bring much noise.
        apart = torch.from_numpy(released.products) - mean_products(z, z)
        possible, variance = released.features.possible, released.noise**2
        of_constant = variance * (possible[0, 0] * possible.diagonal() + possible[0].square())
        explained = _SURE**2 * of_constant / apart[0].square().clamp(min=EXACT**2)
        centre = torch.eye(len(mean), dtype=torch.float64)
        centre[1:, 0] = -mean[1:] / CONSTANT * (1 - explained[1:]).clamp(min=0.5)
        size = torch.outer(scale, scale) * weight
        difference = (centre @ apart @ centre.T / size).clamp(-1, 1)
        of_noise = centre @ possible @ centre.T
        left = noise_variances(of_noise)
        longer = centre.square().sum(dim=1)
        column, numbers = released.features.column, len(released.features.numbers)
        # Between that of equal products of indicators and that of equal ratios of shares.
        usual = torch.where(column > numbers, scale / INDICATOR, 1.0)
        return cls(
            mean,
            scale,
            weight,
            difference,
            noise=variance * left / size.square(),
            projection_factor=torch.outer(longer, longer) / left,
            changeable=torch.outer(varies, varies) & (column[:, None] != column),
            typical=torch.outer(usual, usual),
            column=column,
            is_number=(column > 0) & (column <= numbers),
        )

    @cached_property
    def belongs(self) -> Tensor:
        """The column of each entry of z, one-hot, float64 (k, columns)."""
        return torch.nn.functional.one_hot(self.column).double()

    @cached_property
    def freedom(self) -> Tensor:
        """Degrees of freedom of each column's entries, whose sum is known if it has categories."""
        count = self.belongs.sum(dim=0)
        return torch.where(count > 1, count - 1, count)

    @cached_property
    def numbers(self) -> Tensor:
        """How many factors of each product are numbers, int64 (k, k)."""
        return self.is_number[:, None].long() + self.is_number

    def pairs(self, kind: Tensor) -> Tensor:
        """The pairs of columns that have some products, each once, bool (columns, columns).

        Args:
            kind: the products, bool (k, k).
        """
        found: Tensor = (self.belongs.T @ kind.double() @ self.belongs).triu() > 0
        return found

    def expanded(self, pairs: Tensor, values: Tensor) -> Tensor:
        """Values of pairs of columns, for each of their products, (k, k); 0 for others.

        Args:
            pairs: each once, bool (columns, columns).
            values: of these, float64 (pairs,).
        """
        of_pairs = torch.zeros(pairs.shape, dtype=torch.float64)
        of_pairs[pairs] = values
        return self.belongs @ (of_pairs + of_pairs.T) @ self.belongs.T

    def variances(self) -> Iterator[Tensor]:
        """Candidates for the prior variances of all differences, float64 (k, k) each."""
        for exponent in _EXPONENTS:
            usual = self.typical**exponent
            yield from (order * usual for order in _ORDERS)

    @cached_property
    def likelihoods(self) -> Tensor:
        """`log_likelihoods` under each candidate, float32 (pairs with categories, candidates).

        Kept, because each class is compared with all others.
        """
        pairs = self.pairs_with_categories
        found = [self.log_likelihoods(variance)[pairs].float() for variance in self.variances()]
        return torch.stack(found, dim=1)

    @cached_property
    def pairs_with_categories(self) -> Tensor:
        """The pairs of columns of which at most one is a number, bool (columns, columns)."""
        return self.pairs((self.numbers < 2) & (self.column[:, None] != self.column))

    def log_likelihoods(self, variance: Tensor) -> Tensor:
        """Log-likelihood of each pair's noisy differences, up to a constant, (columns, columns).

        Args:
            variance: prior variance of each difference, positive, (k, k).
        """
        together = self.noise.clamp(min=EXACT) + variance
        logs = -(together.log() + self.difference.square() / together) / 2
        of_pairs = self.belongs.T @ torch.where(self.changeable, logs, 0.0) @ self.belongs
        free = self.freedom / self.belongs.sum(dim=0).clamp(min=1)
        found: Tensor = torch.outer(free, free) * of_pairs
        return found

    def standardised(self, z: Tensor) -> Tensor:
        """Numbers and indicators, standardised by rows of independent columns, (n, k)."""
        return (z - self.mean.to(z)) / self.scale.to(z)

    def products(self, z: Tensor) -> Tensor:
        """Products of the rows' standardised values, weighted as the released ones are, (k, k)."""
        return mean_products(z, self.standardised(z)) / self.weight


def mean_products(z: Tensor, y: Tensor) -> Tensor:
    """The mean of y y^T / |z|^2, (k, k)."""
    found: Tensor = (y / z.square().sum(dim=1, keepdim=True)).T @ y / len(y)
    return found
