"""How large the numbers of a column are, to find its bounds with differential privacy.

A column without known bounds is cut into 128 cells on a logarithmic scale, between the widest
bounds that its kind and type allow. How many records are in each cell is a marginal
(`dpntk.common.features.marginals`), which a release gives with noise.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..schema import Schema
from ..schema.columns.column import Column
from ..schema.columns.kinds import ColumnKind
from ..schema.encoding import NumericEncoding
from ..schema.private_bounds import KNOTS
from ..schema.table import LEVELS, TableSchema
from .base import FeatureMap
from .marginals.cells import MOST_CELLS, nearest_cell
from .marginals.map import MarginalFeatures


def approx_bounds_map(schema: TableSchema) -> MarginalFeatures:
    """The feature map that counts magnitudes.

    Args:
        schema: as `approx_bounds_schema` makes it.
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
    """Bounds that the cells with enough records are between.

    None if there is no such cell, or if most of the numbers seem to be beyond them.

    Args:
        column: as in `approx_bounds_schema`.
        counts: how many records are in each cell, about, float64 (at least 128,); what follows are
            missing values.
        least: how many are enough.
        rows: how many records there are, about, those whose value is missing included.
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
    if inside[0] == 0:  # as it was declared, without the way there and back through logarithms
        low = encoding.bounds[0]
    if inside[-1] == LEVELS:
        high = encoding.bounds[1]
    if column.kind is not ColumnKind.INTEGER:
        return low, high
    lower, upper = math.ceil(low), math.floor(high)
    if lower >= upper:  # a single number, such as 0 alone
        upper = lower + 1
    return lower, upper
