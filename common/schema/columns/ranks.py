"""Ordered categories as numbers: their ranks.

A release measures all pairs of numbers, and dependence on a number takes fewer figures than
dependence on categories. So categories that have an order may be encoded by their ranks
(`TableSchema.with_ranks`). Two categories always have one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import MOST_VALUES
from .codes import MISSING
from .column import Column
from .kinds import ColumnKind, Missing


def has_ranks(column: Column) -> bool:
    """Whether the categories of a column have an order in which each is a number."""
    if column.kind is ColumnKind.ORDINAL:  # another category, for unlisted values, has no rank
        return 2 <= len(column.categories) <= MOST_VALUES and column.other is None
    return len(column.categories) == 2


def ranks_of(column: Column) -> Column:
    """The column of integers that holds the ranks of a column's categories, from 0."""
    missing = column.missing is Missing.CATEGORY
    return Column.integer(column.name, 0, len(column.categories) - 1, missing=missing)


def numbers_of(codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """The ranks of categories' codes, as numbers: NaN where they are missing or unlisted."""
    return np.where(codes < 0, np.nan, codes)


def codes_of(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """The inverse of `numbers_of`, for categories that are listed or missing."""
    return np.where(np.isnan(numbers), MISSING, numbers).astype(np.int64)
