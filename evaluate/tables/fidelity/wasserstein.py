"""Wasserstein distances of numeric columns."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy import stats

from ....common.schema.columns.column import Column
from ..table import Table
from .metric import Metric


def wasserstein_distance(table: Table, other: Table) -> float | None:
    """Mean Wasserstein distance of numeric columns; None if none can be compared.

    Args:
        table: rows under a schema.
        other: rows under the same schema.
    """
    found = [
        distance
        for column in table.schema.columns
        if (distance := _of_column(table, other, column)) is not None
    ]
    return float(np.mean(found)) if found else None


def _of_column(table: Table, other: Table, column: Column) -> float | None:
    """The distance over the declared range; None for categories, or if all are missing."""
    if not column.kind.numeric:
        return None
    lower, upper = column.bounds
    values = [one.columns[column.name] for one in (table, other)]
    there = [np.clip(some[~np.isnan(some)], lower, upper) for some in values]
    if not all(map(len, there)):
        return None
    return float(stats.wasserstein_distance(*there)) / (upper - lower)


WASSERSTEIN: Final = Metric(
    "Wasserstein distance",
    "mean, over numeric columns, of the 1-Wasserstein distance of their values, clipped to the "
    "schema's bounds and divided by the distance of these; without missing values",
    wasserstein_distance,
    digits=4,
)
