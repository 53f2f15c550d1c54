"""Correlations of numeric columns."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..table import Table
from .combinations import MOST_PAIRS, some_combinations
from .metric import Metric

Numbers = NDArray[np.float64]


def correlation_error(table: Table, other: Table) -> float | None:
    """Mean absolute difference of rank correlations; None if there are not two numeric columns.

    Args:
        table: rows under a schema.
        other: rows under the same schema.
    """
    names = [column.name for column in table.schema.columns if column.kind.numeric]
    pairs = [(names[i], names[j]) for i, j in some_combinations(len(names), 2, MOST_PAIRS)]
    if not pairs:
        return None
    first, second = (rank_correlations(one, pairs) for one in (table, other))
    return float(np.abs(first - second).mean())


def rank_correlations(table: Table, pairs: list[tuple[str, str]]) -> Numbers:
    """Spearman's correlation of each pair over rows where neither is missing; 0 if one is constant.

    Args:
        table: rows under a schema.
        pairs: names of numeric columns.

    Returns:
        float64 (len(pairs),), -1 to 1.
    """
    names = {name for pair in pairs for name in pair}
    absent = {name: np.isnan(table.columns[name]) for name in names}
    ranks = {name: _ranks(table.columns[name]) for name in names if not absent[name].any()}
    found = []
    for pair in pairs:
        if all(name in ranks for name in pair):
            one, other = (ranks[name] for name in pair)
        else:
            there = ~(absent[pair[0]] | absent[pair[1]])
            one, other = (_ranks(table.columns[name][there]) for name in pair)
        found.append(float(one @ other))
    return np.array(found)


def _ranks(values: Numbers) -> Numbers:
    """Ranks, centred and scaled to length 1; all 0 if the values are equal."""
    ranks = np.asarray(stats.rankdata(values), dtype=np.float64) - (len(values) + 1) / 2
    return ranks / (np.linalg.norm(ranks) or 1.0)


CORRELATIONS: Final = Metric(
    "rank correlations off by",
    "mean, over pairs of numeric columns, of the absolute difference of their Spearman rank "
    "correlations, each over the rows in which neither is missing; 0 where a column is constant",
    correlation_error,
)
