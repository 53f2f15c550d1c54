"""What rows of a class should have: its mean feature, and what else is released of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from torch import Tensor

from ....common.runtime.threads import Each
from ....common.schema.encoding import Block
from .departures import Departure, ReleasedMoments
from .relu_features import ReluFeatures
from .table_departures import ReleasedCounts, TableDeparture, shares_among

STRENGTH: Final = 0.01
"""Prior mean of how much of the variance of rows with independent columns is due to how columns go
together: on tables of people it is about this much (docs/design/table-generator.md)."""
_DEVIATION: Final = 0.005
"""How far from that it usually is."""
_LEAST_STRENGTH: Final = 1e-5
_LEAST_VARIANCE: Final = 0.05
"""The part of that variance which single columns are never taken to explain."""
_ROWS: Final = 1_000
"""How many of these rows are looked at to tell what single columns explain."""
_COLUMNS_A_ROUND: Final = 0.3
_LEAST_COLUMNS: Final = 3


@dataclass(frozen=True, eq=False)
class Departures:
    """By how much columns of a class go together more than independent ones.

    Attributes:
        products: what products of columns say of that; None if there are none.
        tables: what tables of columns do; None likewise.
    """

    products: Departure | None
    tables: TableDeparture | None


@dataclass(frozen=True, eq=False)
class Goal:
    """What the mean feature of rows should be.

    Attributes:
        tangents: the features.
        blocks: the columns of the rows.
        mean: (d,), noisy.
        noise: standard deviation of the noise on an entry of it.
        moments: what products of their numbers should be; None if that is not known.
        counts: how often cells of several columns should be; None likewise.
    """

    tangents: ReluFeatures
    blocks: tuple[Block, ...]
    mean: Tensor
    noise: float
    moments: ReleasedMoments | None = None
    counts: ReleasedCounts | None = None

    def departures(self, independent: Tensor) -> Departures:
        """How columns go together, as far as anything but the tangent features says.

        Args:
            independent: rows with the columns of the class, each by itself, (n, record size).
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
        """What the noise alone adds to a squared distance from the mean, in expectation."""
        return self.noise**2 * len(self.mean)

    def ridge(self, independent: Tensor, each: Each = map) -> float:
        """The ridge on theta, which says how columns go together.

        Let rows P be the independent ones P_0 with random weights, of variance s a priori. The most
        likely P is then P_0 tilted by theta = (mu - E_P phi) / ridge, because minus the logarithm
        of its probability is || mu - E_P phi ||^2 / (2 noise^2) + KL(P || P_0) / s, up to constants
        and to the second order. And s follows from how far mu is from E_{P_0} phi (`strength`), in
        relation to the variance of features under P_0 that single columns do not explain: weights
        leave single columns as they are. What these do explain is estimated by rows that share one
        column and no other (Sobol 1993). But s is at most the usual strength: where columns go
        together more than that, the energies of products and of tables of pairs ask for it.

        Args:
            independent: rows of P_0, (n, record size), values 0..1.
            each: shares the work.
        """
        mean = self.tangents.mean(independent, each)
        variance = 1 - float(mean.square().sum())  # features have length 1
        left = float((self.mean - mean).square().sum()) - variance / len(independent)
        some = independent[:_ROWS]
        explained = self.tangents.alike(some, some.roll(len(some) // 2, dims=0), self.blocks)
        unexplained = max(variance - float(explained.sum()), _LEAST_VARIANCE * variance)
        found = strength(left, unexplained, self.noise, len(self.mean))
        return self.noise**2 / max(min(found, STRENGTH), _LEAST_STRENGTH)

    def some_columns(self, random: np.random.Generator) -> list[Block]:
        """Columns for a round, in random order."""
        taken = max(_LEAST_COLUMNS, round(_COLUMNS_A_ROUND * len(self.blocks)))
        return [self.blocks[column] for column in random.permutation(len(self.blocks))[:taken]]


def strength(square: float, variance: float, noise: float, dimension: int) -> float:
    """How strongly columns go together: between what is seen and `STRENGTH`, the prior mean.

    Args:
        square: squared length of what is left of a mean feature that independent rows do not have.
        variance: of the features of these, less what single columns explain.
        noise: on an entry.
        dimension: number of entries.

    Returns:
        The variance of weights that independent rows would need, 0 or more.
    """
    if variance <= 0:
        return 0.0
    seen = (square - noise**2 * dimension) / variance
    doubt = noise**2 * math.sqrt(2 * dimension) / variance
    believed = 1 / (1 + (doubt / _DEVIATION) ** 2)
    return max(0.0, believed * seen + (1 - believed) * STRENGTH)
