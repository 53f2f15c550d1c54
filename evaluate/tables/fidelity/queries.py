"""Errors of the answers to typical queries on a table."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..table import Table
from .metric import Metric

_QUERIES: Final = 1_000
_MOST_COLUMNS: Final = 3


def query_error(table: Table, other: Table) -> float:
    """Mean absolute error of the shares of rows that fulfil 1,000 random conditions.

    A condition involves one to three columns: a number lies in an interval, or a category is a
    given one. The interval ends and categories come from random rows of `other`, so that conditions
    are realistic; they are always the same.

    Args:
        table: rows under a schema.
        other: real rows under the same schema.
    """
    random = np.random.default_rng(0)
    columns = table.schema.columns
    errors = []
    for _ in range(_QUERIES):
        size = int(random.integers(1, min(_MOST_COLUMNS, len(columns)) + 1))
        holds = [np.ones(len(one), dtype=np.bool_) for one in (table, other)]
        for index in random.choice(len(columns), size, replace=False):
            name = columns[index].name
            ends = other.columns[name][random.integers(len(other), size=2)]
            for rows, one in zip(holds, (table, other), strict=True):
                rows &= _between(one.columns[name], *ends, numeric=columns[index].kind.numeric)
        errors.append(abs(holds[0].mean() - holds[1].mean()))
    return float(np.mean(errors))


def _between(
    values: NDArray[np.float64] | NDArray[np.int64], first: float, last: float, *, numeric: bool
) -> NDArray[np.bool_]:
    """Whether each value is in the interval, or is the category; or is missing, if an end is."""
    if not numeric:
        return np.asarray(values == first)
    if np.isnan(first) or np.isnan(last):
        return np.isnan(values)
    return (values >= min(first, last)) & (values <= max(first, last))


QUERIES: Final = Metric(
    "queries off by",
    f"mean absolute error of the shares of rows for which {_QUERIES:,} random conditions on one to "
    f"{_MOST_COLUMNS} columns hold: a number is between those of two random real rows, a category "
    "is that of a random real row; the conditions are the same for all tables",
    query_error,
    digits=4,
)
