"""How columns of a class go together by a release, compared with rows of independent columns.

A release with products of columns (`dpntk.common.features.moments`) holds E z z^T / |z|^2 of each
class, with noise. Rows with the right columns that are independent of one another have other such
products. What they lack is how columns go together.
"""

from __future__ import annotations

from dataclasses import dataclass
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
"""More standard deviations of the noise than this are not explained by noise."""


@dataclass(frozen=True, eq=False)
class ReleasedMoments:
    """The released mean of z z^T / |z|^2 of one class.

    Attributes:
        features: of which they are the mean.
        products: noisy, float64 (k, k), symmetric, and such as those of records can be.
        noise: standard deviation of the noise on each of them but the diagonal, as released; what
            products cannot be is taken off, which leaves less of it.
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
        possible = moments.possible.numpy()
        products: NDArray[np.float64] = possible @ (twice + twice.T) @ possible / 2
        # Each product of two factors is there twice, with noise of its own.
        return cls(moments, products, noise / parts.moment_weight / np.sqrt(2))

    def columns(self) -> Tensor:
        """Which column each of z belongs to, numbers first; the constant's is 0. int64 (k,)."""
        found = torch.zeros(self.features.factors, dtype=torch.int64)
        for column, place in enumerate(self.features.places.values()):
            found[place] = 1 + column
        return found

    def factors(self, records: Tensor) -> Tensor:
        """The vectors z of rows (n, record size), values 0..1, as they would be read back, (n, k).

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


@dataclass(frozen=True, eq=False)
class Departure:
    """By how much columns of a class go together more than independent ones would.

    Attributes:
        mean: of z in rows of independent columns, float64 (k,); 0 of the constant.
        scale: its standard deviation there, and 1 of the constant, (k,).
        weight: mean of 1 / |z|^2 there.
        lacking: products of standardised numbers and indicators, as released, less those of these
            rows, (k, k).
        noise: variance of the noise on each of these, (k, k).
        taken_off: how many times as large that variance would be if the part that products cannot
            have had not been taken off, (k, k).
        free: which products rows can change by exchanging values, bool (k, k).
    """

    mean: Tensor
    scale: Tensor
    weight: float
    lacking: Tensor
    noise: Tensor
    taken_off: Tensor
    free: Tensor

    @classmethod
    def of(cls, released: ReleasedMoments, records: Tensor) -> Departure:
        """The departure of a class.

        Args:
            released: of the class.
            records: rows with its columns, each by itself, (n, record size).
        """
        z = released.factors(records).double()
        mean, scale = z.mean(dim=0), z.std(dim=0, correction=0)
        least = LEAST_DEVIATION * released.features.times
        varies, scale = scale > least, scale.clamp(min=least)
        mean[0], scale[0] = 0.0, 1.0
        weight = float((1 / z.square().sum(dim=1)).mean())
        # About the rows' means, by the released products with the constant, too: where columns go
        # together, these are others than the rows', as |z|^2 is. Where that is no more than noise
        # explains, half of it is believed: much noise would come with it.
        apart = torch.from_numpy(released.products) - mean_products(z, z)
        possible, variance = released.features.possible, released.noise**2
        of_constant = variance * (possible[0, 0] * possible.diagonal() + possible[0].square())
        explained = _SURE**2 * of_constant / apart[0].square().clamp(min=EXACT**2)
        centre = torch.eye(len(mean), dtype=torch.float64)
        centre[1:, 0] = -mean[1:] / CONSTANT * (1 - explained[1:]).clamp(min=0.5)
        size = torch.outer(scale, scale) * weight
        lacking = (centre @ apart @ centre.T / size).clamp(-1, 1)
        of_noise = centre @ possible @ centre.T
        left = noise_variances(of_noise)
        longer = centre.square().sum(dim=1)
        column = released.columns()
        return cls(
            mean,
            scale,
            weight,
            lacking,
            noise=variance * left / size.square(),
            taken_off=torch.outer(longer, longer) / left,
            free=torch.outer(varies, varies) & (column[:, None] != column),
        )

    def standardised(self, z: Tensor) -> Tensor:
        """Numbers and indicators of mean 0 and variance 1 where columns are independent, (n, k)."""
        return (z - self.mean) / self.scale

    def products(self, z: Tensor) -> Tensor:
        """What those of standardised ones are in rows, weighed as released ones are, (k, k)."""
        return mean_products(z, self.standardised(z)) / self.weight


def mean_products(z: Tensor, y: Tensor) -> Tensor:
    """The mean of y y^T / |z|^2, (k, k)."""
    found: Tensor = (y / z.square().sum(dim=1, keepdim=True)).T @ y / len(y)
    return found
