"""How far two tables are apart, column by column and pair by pair of columns."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ...common.schema.column import Column
from ...common.schema.encoding import MISSING
from .table import Table

BINS: Final = 20
_MOST_PAIRS: Final = 5_000
METHOD: Final = (
    f"half the sum of absolute differences of frequencies. Numeric columns, clipped to the "
    f"schema's bounds, are cut into {BINS} bins of equal width between them, on the scale on which "
    "they are written; categories are taken as they are; a missing value is a bin of its own. The "
    "label counts as a column. one-way: mean over columns; two-way: mean over pairs of columns"
    f" (over {_MOST_PAIRS:,} pairs drawn at random where there are more)"
)
"""What the distances are, for whoever reads the figures."""
CORRELATION_METHOD: Final = (
    "mean, over pairs of numeric columns, of the absolute difference of their Spearman rank "
    "correlations, each over the rows in which neither is missing; 0 where a column is constant"
)
"""What the correlation error is."""


@dataclass(frozen=True)
class Distances:
    """How far two tables are apart: total variation distances, 0 (alike) to 1, and correlations.

    Attributes:
        one_way: mean over columns.
        two_way: mean over pairs of columns; None if there is one column only.
        columns: column to its own distance.
        correlations: mean absolute difference of rank correlations, 0 (alike) to 2; None if there
            are not two numeric columns.
    """

    one_way: float
    two_way: float | None
    columns: dict[str, float]
    correlations: float | None


def distances(table: Table, other: Table) -> Distances:
    """One- and two-way marginals and correlations: see `METHOD` and `CORRELATION_METHOD`.

    Args:
        table: rows under a schema.
        other: rows under the same schema.
    """
    columns = table.schema.columns
    first, second = ([binned(one, column) for column in columns] for one in (table, other))
    sizes = [_bins(column) for column in columns]
    single = [total_variation(a, b, size) for a, b, size in zip(first, second, sizes, strict=True)]
    double = [
        total_variation(
            first[i] * sizes[j] + first[j], second[i] * sizes[j] + second[j], sizes[i] * sizes[j]
        )
        for i, j in _pairs(len(columns))
    ]
    return Distances(
        one_way=float(np.mean(single)),
        two_way=float(np.mean(double)) if double else None,
        columns={column.name: value for column, value in zip(columns, single, strict=True)},
        correlations=correlation_error(table, other),
    )


def correlation_error(table: Table, other: Table) -> float | None:
    """Mean absolute difference of rank correlations; None if there are not two numeric columns.

    Args:
        table: rows under a schema.
        other: rows under the same schema.
    """
    names = [column.name for column in table.schema.columns if column.kind.numeric]
    differences = [
        abs(_rank_correlation(table, *pair) - _rank_correlation(other, *pair))
        for pair in ((names[i], names[j]) for i, j in _pairs(len(names)))
    ]
    return float(np.mean(differences)) if differences else None


def _rank_correlation(table: Table, first: str, second: str) -> float:
    """Spearman's, over the rows where neither is missing; 0 if one is constant there."""
    one, other = table.columns[first], table.columns[second]
    there = ~(np.isnan(one) | np.isnan(other))
    if any(len(np.unique(values[there])) < 2 for values in (one, other)):
        return 0.0
    return float(stats.spearmanr(one[there], other[there]).statistic)


def total_variation(first: NDArray[np.int64], second: NDArray[np.int64], size: int) -> float:
    """Half the sum of absolute differences of frequencies.

    Args:
        first: int64 (n,), values 0..size-1.
        second: int64 (m,), likewise.
        size: number of values that there can be.
    """
    if size > len(first) + len(second):  # more cells than rows: look at those that occur
        _, places = np.unique(np.concatenate([first, second]), return_inverse=True)
        first, second = places[: len(first)], places[len(first) :]
        size = int(places.max()) + 1
    frequencies = (np.bincount(part, minlength=size) / len(part) for part in (first, second))
    return float(np.abs(next(frequencies) - next(frequencies)).sum()) / 2


def binned(table: Table, column: Column) -> NDArray[np.int64]:
    """A column as whole numbers 0.., the last of which stands for a missing value."""
    values = table.columns[column.name]
    if column.lower is None or column.upper is None:
        return np.where(values == MISSING, len(column.categories), values).astype(np.int64)
    share = (np.nan_to_num(values) - column.lower) / (column.upper - column.lower)
    bins = np.clip(np.floor(share * BINS), 0, BINS - 1).astype(np.int64)
    return np.where(np.isnan(values), BINS, bins)


def _bins(column: Column) -> int:
    return (BINS if column.kind.numeric else len(column.categories)) + 1


def _pairs(columns: int) -> list[tuple[int, int]]:
    pairs = list(itertools.combinations(range(columns), 2))
    if len(pairs) <= _MOST_PAIRS:
        return pairs
    chosen = np.random.default_rng(0).choice(len(pairs), _MOST_PAIRS, replace=False)
    return [pairs[index] for index in sorted(chosen.tolist())]
