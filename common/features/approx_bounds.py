"""Counting the magnitudes of a column's numbers, to find bounds with differential privacy.

A column without known bounds is divided into 128 cells on a logarithmic scale, between the widest
bounds that its kind and type allow. The numbers of records in the cells are a marginal
(`dpntk.common.features.marginals`), which a release gives with noise.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..schema import Schema
from ..schema.columns.column import Column
from ..schema.columns.kinds import ColumnKind
from ..schema.drafts.private_bounds import KNOTS
from ..schema.encoding import NumericEncoding
from ..schema.table import LEVELS, TableSchema
from .base import FeatureMap
from .marginals.cells import MOST_CELLS, nearest_cell
from .marginals.map import MarginalFeatures


def approx_bounds_map(schema: TableSchema) -> MarginalFeatures:
    """Make the feature map that counts magnitudes.

    Args:
        schema: the schema from `approx_bounds_schema`.
    """
    return MarginalFeatures.of(schema, MOST_CELLS)


def is_approx_bounds(schema: Schema, feature_map: FeatureMap) -> bool:
    """Whether sums under a schema and a map are counts of magnitudes."""
    return (
        isinstance(schema, TableSchema)
        and all(column.kind.numeric for column in schema.columns)
        and feature_map == approx_bounds_map(schema)
    )


def bounds_from(
    column: Column, counts: NDArray[np.float64], least: float, rows: float
) -> tuple[float, float] | None:
    """The bounds of the cells that have enough records.

    None if there is no such cell, or if most numbers seem to lie beyond the bounds.

    Args:
        column: the column, as in `approx_bounds_schema`.
        counts: approximate number of records in each cell, float64 (at least 128,); missing values
            follow the cells.
        least: the number of records that is enough.
        rows: approximate number of records, including those whose value is missing.
    """
    enough = np.flatnonzero(counts[:MOST_CELLS] >= least)
    if not len(enough):
        return None
    numbers = rows - counts[MOST_CELLS:].sum()
    if 2 * counts[enough[0] : enough[-1] + 1].sum() < numbers:
        return None
    level = np.arange(LEVELS + 1)
    cell = nearest_cell(level, MOST_CELLS)
    inside = level[(cell >= enough[0]) & (cell <= enough[-1])]
    ends = np.array([inside[0] - 0.5, inside[-1] + 0.5]) / LEVELS
    encoding = NumericEncoding(column, KNOTS)
    low, high = encoding.at(ends.clip(0, 1)).tolist()
    if inside[0] == 0:  # the exact bound, without rounding by logarithms
        low = encoding.bounds[0]
    if inside[-1] == LEVELS:
        high = encoding.bounds[1]
    if column.kind is not ColumnKind.INTEGER:
        return low, high
    lower, upper = math.ceil(low), math.floor(high)
    if lower >= upper:  # only one number, such as 0
        upper = lower + 1
    return lower, upper
