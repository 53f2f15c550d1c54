"""Associations of categorical columns with one another and with numbers."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ....common.schema.columns.column import Column
from ..table import Table
from .combinations import MOST_PAIRS, some_combinations
from .marginals import binned
from .metric import Metric


def association_error(table: Table, other: Table) -> float | None:
    """Mean absolute difference of associations, over pairs with at least one categorical column.

    Args:
        table: rows under a schema.
        other: rows under the same schema.

    Returns:
        0 (alike) to 1; None if there is no such pair.
    """
    columns = table.schema.columns
    pairs = [
        (columns[i], columns[j])
        for i, j in some_combinations(len(columns), 2, MOST_PAIRS)
        if not (columns[i].kind.numeric and columns[j].kind.numeric)
    ]
    differences = [abs(association(table, *pair) - association(other, *pair)) for pair in pairs]
    return float(np.mean(differences)) if differences else None


def association(table: Table, first: Column, second: Column) -> float:
    """Association of two columns, 0 to 1, at least one of which is categorical.

    Args:
        table: rows under a schema.
        first: a column of it.
        second: another.
    """
    if first.kind.numeric:
        first, second = second, first
    codes = binned(table, first)
    if not second.kind.numeric:
        return cramers_v(codes, binned(table, second))
    numbers = table.columns[second.name]
    there = ~np.isnan(numbers)
    return correlation_ratio(codes[there], np.clip(numbers[there], second.lower, second.upper))


def cramers_v(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Cramer's V, corrected for chance (Bergsma 2013); 0 if one is constant.

    Args:
        first: int64 (n,), categories 0.. .
        second: int64 (n,), likewise.
    """
    rows = len(first)
    size = int(second.max(initial=0)) + 1
    table = np.bincount(first * size + second, minlength=size * (int(first.max(initial=0)) + 1))
    counts = table.reshape(-1, size)
    counts = counts[counts.any(axis=1)][:, counts.any(axis=0)]
    if rows < 2 or min(counts.shape) < 2:
        return 0.0
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0))  # scaled by the number of rows
    chance = math.prod(size - 1 for size in counts.shape) / (rows - 1)
    association = max(0.0, float((counts**2 / expected).sum()) - 1 - chance)
    fewer = min(size - (size - 1) ** 2 / (rows - 1) for size in counts.shape)
    return min(1.0, math.sqrt(association / (fewer - 1))) if fewer > 1 else 0.0


def correlation_ratio(categories: NDArray[np.int64], numbers: NDArray[np.float64]) -> float:
    """The correlation ratio: the root of the share of variance that categories explain.

    The share is corrected for chance, as adjusted R2 is for the number of predictors.

    Args:
        categories: int64 (n,), 0.. .
        numbers: float64 (n,).

    Returns:
        0 to 1; 0 if either is constant.
    """
    counts = np.bincount(categories)
    groups, rows = np.count_nonzero(counts), len(numbers)
    if groups < 2 or rows <= groups:
        return 0.0
    centred = numbers - numbers.mean()
    total = float(centred @ centred)
    if total == 0:
        return 0.0
    sums = np.bincount(categories, weights=centred)
    within = total - float((sums**2 / np.maximum(counts, 1)).sum())
    explained = 1 - within / total * (rows - 1) / (rows - groups)
    return math.sqrt(min(1.0, max(0.0, explained)))


ASSOCIATIONS: Final = Metric(
    "associations off by",
    "mean, over pairs of columns of which one at least has categories, of the absolute difference "
    "of their associations: Cramer's V of two columns of categories, the correlation ratio of a "
    "column of categories and a numeric one; both corrected for what chance gives. A missing "
    "category is one of its own; rows without the number are left out",
    association_error,
)
