"""The targets for rows of a class: its mean feature, products and tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from torch import Tensor

from ....common.runtime.threads import Each
from ....common.schema.encoding import Block
from ..dependence.product_departures import Departure, ReleasedMoments
from ..dependence.table_departures import ReleasedCounts, TableDeparture, shares_among
from .relu_features import ReluFeatures

STRENGTH: Final = 0.01
"""Prior mean of the strength of dependence, the variance of the weights that turn independent rows
into real ones. Tables of people have about this much (docs/design/table-generator.md)."""
_DEVIATION: Final = 0.005
"""Prior standard deviation of the strength."""
_LEAST_STRENGTH: Final = 1e-5
_LEAST_VARIANCE: Final = 0.05
"""Part of the features' variance that single columns are never taken to explain."""
_ROWS: Final = 1_000
"""Number of rows that estimate what single columns explain."""
_COLUMNS_A_ROUND: Final = 0.3
_LEAST_COLUMNS: Final = 3


@dataclass(frozen=True, eq=False)
class Departures:
    """How columns of a class depart from independence.

    Attributes:
        products: the departure of products of columns; None if there are none.
        tables: the departure of tables of columns; None if there are none.
    """

    products: Departure | None
    tables: TableDeparture | None


@dataclass(frozen=True, eq=False)
class Goal:
    """The targets for the rows of a class.

    Attributes:
        tangents: the features.
        blocks: the columns of the rows.
        mean: target of the mean feature, (d,), noisy.
        noise: standard deviation of the noise on an entry of it.
        moments: targets of products of numbers; None if unknown.
        counts: targets of tables of columns; None if unknown.
        only_class: whether there are no other classes.
    """

    tangents: ReluFeatures
    blocks: tuple[Block, ...]
    mean: Tensor
    noise: float
    moments: ReleasedMoments | None = None
    counts: ReleasedCounts | None = None
    only_class: bool = False

    def departures(self, independent: Tensor) -> Departures:
        """How columns depart from independence, by everything but the tangent features.

        Args:
            independent: rows of independent columns of the class, (n, record size).
        """
        products = tables = None
        if self.moments is not None:
            products = Departure.of(self.moments, independent)
        if self.counts is not None:
            shares_of = shares_among(independent, self.counts.levels)
            tables = TableDeparture.of(self.counts, shares_of)
        return Departures(products, tables)

    @property
    def floor(self) -> float:
        """Expected contribution of the noise to a squared distance from the mean."""
        return self.noise**2 * len(self.mean)

    def ridge(self, independent: Tensor, each: Each = map) -> float:
        """The ridge on theta, which models the dependence of columns.

        Let P be independent rows P_0 with random weights of prior variance s. The most probable P
        is P_0 tilted by theta = (mu - E_P phi) / ridge, because its negative log posterior is
        || mu - E_P phi ||^2 / (2 noise^2) + KL(P || P_0) / s, up to constants and to second order.
        The strength s is estimated from the distance between mu and E_{P_0} phi (`strength`),
        relative to the variance of features under P_0 that single columns do not explain, since
        weights leave single columns as they are. What these do explain is estimated by rows that
        share exactly one column (Sobol 1993). s is at most its prior mean: stronger dependence is
        left to the energies of products and of tables of pairs.

        Args:
            independent: rows of P_0, (n, record size), values 0..1. They need not be independent:
                theta tilts whatever they are.
            each: distributes the work.
        """
        mean = self.tangents.mean(independent, each)
        variance = 1 - float(mean.square().sum())  # features have length 1
        left = float((self.mean - mean).square().sum()) - variance / len(independent)
        some = independent[:_ROWS]
        explained = self.tangents.similarity_by_column(
            some, some.roll(len(some) // 2, dims=0), self.blocks
        )
        unexplained = max(variance - float(explained.sum()), _LEAST_VARIANCE * variance)
        found = strength(left, unexplained, self.noise, len(self.mean))
        return self.noise**2 / max(min(found, STRENGTH), _LEAST_STRENGTH)

    def some_columns(self, random: np.random.Generator) -> list[Block]:
        """A random subset of columns for a round, in random order."""
        taken = max(_LEAST_COLUMNS, round(_COLUMNS_A_ROUND * len(self.blocks)))
        return [self.blocks[column] for column in random.permutation(len(self.blocks))[:taken]]


def strength(square: float, variance: float, noise: float, dimension: int) -> float:
    """The posterior mean of the strength of dependence, whose prior mean is `STRENGTH`.

    Args:
        square: squared distance of the mean feature from that of independent rows.
        variance: variance of these rows' features that single columns do not explain.
        noise: standard deviation of the noise on an entry.
        dimension: number of entries.

    Returns:
        The variance of the weights that independent rows would need, 0 or more.
    """
    if variance <= 0:
        return 0.0
    seen = (square - noise**2 * dimension) / variance
    doubt = noise**2 * math.sqrt(2 * dimension) / variance
    believed = 1 / (1 + (doubt / _DEVIATION) ** 2)
    return max(0.0, believed * seen + (1 - believed) * STRENGTH)
