"""Total variation distances of marginals of one, two and three columns."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ....common.schema.columns.codes import UNLISTED
from ....common.schema.columns.column import Column
from ..table import Table
from .combinations import MOST_PAIRS, MOST_TRIPLES, some_combinations
from .metric import Metric

BINS: Final = 20
FINE_BINS: Final = 100
_MOST: Final = {1: MOST_PAIRS, 2: MOST_PAIRS, 3: MOST_TRIPLES}
"""Largest number of marginals to compare, by the number of their columns."""
_OVER: Final = {
    1: "Mean over columns",
    2: f"Mean over pairs of columns ({MOST_PAIRS:,} drawn at random where there are more)",
    3: f"Mean over triples of columns ({MOST_TRIPLES:,} drawn at random where there are more)",
}


def marginal_distance(table: Table, other: Table, ways: int, bins: int = BINS) -> float | None:
    """Mean total variation distance of the marginals of some columns.

    Args:
        table: rows under a schema.
        other: rows under the same schema.
        ways: columns in a marginal.
        bins: that numeric columns are cut into.

    Returns:
        0 (alike) to 1; None if there are fewer columns.
    """
    columns = table.schema.columns
    parts = [_occurring(*(binned(one, column, bins) for one in (table, other)))
             for column in columns]  # fmt: skip
    found = []
    for chosen in some_combinations(len(columns), ways, _MOST[ways]):
        first, second, size = parts[chosen[0]]
        for column in chosen[1:]:
            more, further, cells = parts[column]
            first, second, size = first * cells + more, second * cells + further, size * cells
        found.append(total_variation(first, second, size))
    return math.fsum(found) / len(found) if found else None


def column_distances(table: Table, other: Table) -> dict[str, float]:
    """The total variation distance of each column's marginal.

    Args:
        table: rows under a schema.
        other: rows under the same schema.
    """
    return {
        column.name: total_variation(
            binned(table, column), binned(other, column), _cells(column, BINS)
        )
        for column in table.schema.columns
    }


def total_variation(first: NDArray[np.int64], second: NDArray[np.int64], size: int) -> float:
    """Half the sum of absolute differences of frequencies.

    Args:
        first: int64 (n,), values 0..size-1.
        second: int64 (m,), likewise.
        size: number of possible values.
    """
    if size > len(first) + len(second):  # more cells than rows: count only those that occur
        first, second, size = _occurring(first, second)
    frequencies = (np.bincount(part, minlength=size) / len(part) for part in (first, second))
    return float(np.abs(next(frequencies) - next(frequencies)).sum()) / 2


def binned(table: Table, column: Column, bins: int = BINS) -> NDArray[np.int64]:
    """A column as integers 0.., the last of which stands for a missing value.

    The one before it stands for categories that are not listed.
    """
    values = table.columns[column.name]
    if not column.kind.numeric:
        beyond = len(column.categories) - UNLISTED + values
        return np.where(values < 0, beyond, values).astype(np.int64)
    lower, upper = column.bounds
    share = (np.nan_to_num(values) - lower) / (upper - lower)
    found = np.clip(np.floor(share * bins), 0, bins - 1).astype(np.int64)
    return np.where(np.isnan(values), bins, found)


def _occurring(
    first: NDArray[np.int64], second: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Renumber both by the values that occur, from 0, and count these."""
    values, places = np.unique(np.concatenate([first, second]), return_inverse=True)
    return places[: len(first)], places[len(first) :], len(values)


def _cells(column: Column, bins: int) -> int:
    return bins + 1 if column.kind.numeric else len(column.categories) + 2


def _metric(ways: int, bins: int) -> Metric:
    name = f"TVD {ways}-way" if bins == BINS else f"TVD {ways}-way, {bins} bins"
    method = (
        "half the sum of absolute differences of frequencies. Numeric columns, clipped to the "
        f"schema's bounds, are cut into {bins} bins of equal width between them, on the scale on "
        "which they are written; categories are taken as they are; a missing value is a bin of its "
        "own, and so are together those that the schema does not list. The label counts as a "
        f"column. {_OVER[ways]}"
    )
    return Metric(name, method, partial(marginal_distance, ways=ways, bins=bins))


MARGINALS: Final = tuple(_metric(ways, bins) for bins in (BINS, FINE_BINS) for ways in _OVER)
