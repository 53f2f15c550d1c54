"""Estimate the departure of a class's tables from independence, using all classes.

As with products of columns (`product_pooling`), tables of one class depart from independence much
as those of other classes do: a priori by g + d, where g is common to the classes. Each table has
its own variances of g and d, estimated from its cells (empirical Bayes), minus what noise alone
would exceed one time in six.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .product_pooling import pool_observations
from .table_departures import TableDeparture

_EXACT: Final = 1e-9
"""Floor for variances of departures."""
_NO_NOISE: Final = 1e-12
"""Floor for variances of the noise."""


@dataclass(frozen=True, eq=False)
class PooledTables:
    """The pooled evidence on a class's tables, as one equivalent noisy observation.

    Attributes:
        difference: see `TableDeparture`, float64 (cells,).
        noise: variance of the noise on each, (cells,).
        ridge: noise variance over the prior variance of the departure, (cells,).
    """

    difference: Tensor
    noise: Tensor
    ridge: Tensor

    def shares(self, own: TableDeparture) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
        """Convert to noisy shares of cells.

        Args:
            own: departure of the class.

        Returns:
            Shares of the cells of each table, (cells of that,); and a standard deviation for each
            table, (tables,): that of independent noise which would make its cells equally
            informative.
        """
        shares = own.expected + self.difference * own.scale
        variance = own.of_tables(self.noise * own.expected * own.observed) / own.of_tables(
            own.observed
        )
        return [each.numpy() for each in own.tables_of(shares)], (
            own.tied * variance
        ).sqrt().numpy()


def pooled_tables(own: TableDeparture, others: Sequence[TableDeparture]) -> PooledTables:
    """Pool the table departures of all classes for one class.

    Args:
        own: departure of the class.
        others: departures of the others.
    """
    looks = [own, *others]
    seen = [each.difference for each in looks]
    noises = [each.noise.clamp(min=_NO_NOISE) for each in looks]
    weights = [own.observed / noise.square() for noise in noises]
    squares = [each.square() - noise for each, noise in zip(seen, noises, strict=True)]
    of_class = _surely(own, squares[:1], weights[:1]).maximum(_surely(own, squares, weights))
    of_class = of_class.clamp(_EXACT, 1.0)
    pairs = list(itertools.combinations(range(len(looks)), 2))
    if not pairs:
        return PooledTables(own.difference, own.noise, own.noise / of_class)
    products = [seen[one] * seen[other] for one, other in pairs]
    by_both = [own.observed / (noises[one] * noises[other]) for one, other in pairs]
    in_common = _mean(own, products, by_both).clamp(min=_EXACT).minimum(of_class)
    precisions = [1 / (noise + of_class - in_common) for noise in noises[1:]]
    difference, noise = pool_observations(
        seen[0], noises[0], seen[1:], precisions, of_class, in_common
    )
    return PooledTables(difference, noise, noise / of_class)


def _mean(own: TableDeparture, numbers: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    """The weighted mean over all classes and a table's cells, expanded to cells, (cells,)."""
    nothing = torch.zeros_like(own.expected)
    total = sum((one * by for one, by in zip(numbers, weights, strict=True)), nothing)
    return own.each(own.of_tables(total) / own.of_tables(sum(weights, nothing)))


def _surely(own: TableDeparture, squares: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    """The same mean of squares minus its standard deviation due to noise, (cells,).

    Weights are one over the squared noise variance.
    """
    weight = own.of_tables(sum(weights, torch.zeros_like(own.expected)))
    return _mean(own, squares, weights) - own.each((2 * own.tied / weight).sqrt())
