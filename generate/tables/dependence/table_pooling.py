"""Estimate the departure of a class's tables from independence from all classes (`pooling`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .group_variances import certain_variances, group_variances
from .pooling import pooled
from .table_departures import TableDeparture


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
    difference, noise, ridge = (torch.zeros_like(own.expected) for _ in range(3))
    for kind, (place, mine) in enumerate(zip(own.places, own.grouped, strict=True)):
        variances = certain_variances if kind else group_variances
        found = pooled(mine, [other.grouped[kind] for other in others], variances)
        difference[place], noise[place] = found.difference, found.noise
        ridge[place] = found.noise / found.variance
    return PooledTables(difference, noise, ridge)
