"""The departure of released products of columns from independence.

A release with products of columns (`dpntk.common.features.moments`) holds E z z^T / |z|^2 of each
class, with noise. Rows with the right but independent columns have other such products. The
difference is the evidence of dependence between columns.
"""

from __future__ import annotations

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
from .grouped_departures import GroupedDepartures

EXACT: Final = 1e-12
_SURE: Final = 2.0
"""Differences beyond this many standard deviations of the noise are significant."""


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
        frequency: product of the standard deviations of both factors' indicators, (k, k); 1 for a
            factor that is no indicator.
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
    frequency: Tensor
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
        deviation = torch.where(column > numbers, scale / INDICATOR, 1.0)
        return cls(
            mean,
            scale,
            weight,
            difference,
            noise=variance * left / size.square(),
            projection_factor=torch.outer(longer, longer) / left,
            changeable=torch.outer(varies, varies) & (column[:, None] != column),
            frequency=torch.outer(deviation, deviation),
            column=column,
            is_number=(column > 0) & (column <= numbers),
        )

    @cached_property
    def places(self) -> tuple[Tensor, Tensor, Tensor]:
        """Products of two columns: of no number, one, and two; each once, bool (k, k)."""
        numbers = self.is_number[:, None].long() + self.is_number
        once = (self.column[:, None] != self.column).triu()
        return once & (numbers == 0), once & (numbers == 1), once & (numbers == 2)

    @cached_property
    def grouped(self) -> tuple[GroupedDepartures, ...]:
        """The same, by pairs of columns, for each of `places`."""
        return tuple(map(self._grouped, self.places))

    def _grouped(self, place: Tensor) -> GroupedDepartures:
        first, second = (self.column[entries] for entries in place.nonzero(as_tuple=True))
        count = torch.bincount(self.column).double()
        pairs, group = torch.unique(first * len(count) + second, return_inverse=True)
        # The sum of a column's indicators is known, which takes one degree of freedom.
        free = torch.where(count > 1, 1 - 1 / count.clamp(min=1), 1.0)
        return GroupedDepartures(
            difference=self.difference[place],
            noise=self.noise[place].clamp(min=EXACT),
            frequency=self.frequency[place],
            weight=self.changeable[place] * free[first] * free[second],
            group=group,
            groups=len(pairs),
        )

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
