"""How tables of a class differ from independent columns, by what is released of all classes.

As with products of columns (`pooling`), tables of one class differ from independence much as those
of other classes do: a priori by g + d, where g is common to the classes. Each table has its own
variances of g and d. They are estimated from its cells (empirical Bayes), less what noise alone
would add to them one time in six.
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

from .pooling import one_look
from .table_departures import TableDeparture

_EXACT: Final = 1e-9
"""Variances of what goes together are at least that."""
_NO_NOISE: Final = 1e-12
"""Variances of noise are."""


@dataclass(frozen=True, eq=False)
class PooledTables:
    """How tables of a class differ from independent columns, as one noisy look that stands for all.

    Attributes:
        lacking: see `TableDeparture`, float64 (cells,).
        noise: variance of that on each, (cells,).
        ridge: the variance of the noise over that of the difference, (cells,).
    """

    lacking: Tensor
    noise: Tensor
    ridge: Tensor

    def shares(self, own: TableDeparture) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
        """The same as shares of cells with noise.

        Args:
            own: of the class.

        Returns:
            Shares of the cells of each table, (cells of that,); and standard deviations, (tables,),
            by which the cells of each, if noise on these were independent, would say as much as
            they do.
        """
        shares = own.expected + self.lacking * own.scale
        variance = own.of_tables(self.noise * own.expected * own.told) / own.of_tables(own.told)
        return [each.numpy() for each in own.tables_of(shares)], (
            own.as_one * variance
        ).sqrt().numpy()


def pooled_tables(own: TableDeparture, others: Sequence[TableDeparture]) -> PooledTables:
    """What all classes say of the tables of one.

    Args:
        own: of the class.
        others: of the others.
    """
    looks = [own, *others]
    seen = [each.lacking for each in looks]
    noises = [each.noise.clamp(min=_NO_NOISE) for each in looks]
    weights = [own.told / noise.square() for noise in noises]
    squares = [each.square() - noise for each, noise in zip(seen, noises, strict=True)]
    of_class = _surely(own, squares[:1], weights[:1]).maximum(_surely(own, squares, weights))
    of_class = of_class.clamp(_EXACT, 1.0)
    pairs = list(itertools.combinations(range(len(looks)), 2))
    if not pairs:
        return PooledTables(own.lacking, own.noise, own.noise / of_class)
    products = [seen[one] * seen[other] for one, other in pairs]
    by_both = [own.told / (noises[one] * noises[other]) for one, other in pairs]
    in_common = _mean(own, products, by_both).clamp(min=_EXACT).minimum(of_class)
    precisions = [1 / (noise + of_class - in_common) for noise in noises[1:]]
    lacking, noise = one_look(seen[0], noises[0], seen[1:], precisions, of_class, in_common)
    return PooledTables(lacking, noise, noise / of_class)


def _mean(own: TableDeparture, numbers: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    """Over the cells of each table and all classes, of each cell that of its table, (cells,)."""
    nothing = torch.zeros_like(own.expected)
    total = sum((one * by for one, by in zip(numbers, weights, strict=True)), nothing)
    return own.each(own.of_tables(total) / own.of_tables(sum(weights, nothing)))


def _surely(own: TableDeparture, squares: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    """The same less what noise adds to such a mean of squares, its standard deviation, (cells,).

    Weights are one over the square of the noise's variance.
    """
    weight = own.of_tables(sum(weights, torch.zeros_like(own.expected)))
    return _mean(own, squares, weights) - own.each((2 * own.as_one / weight).sqrt())
