"""How large the numbers of a column are: what bounds can be found from with differential privacy.

A column of unknown bounds is looked at between the widest bounds that there are, on a logarithmic
scale: in one of 128 cells, whose borders follow from its kind and type alone. How many records are
in each cell is a marginal (`dpntk.common.features.marginals`), which a release gives with noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..errors import SchemaError
from ..schema import Schema
from ..schema.column import LARGEST, Column, ColumnKind, Transform, range_of_integers
from ..schema.encoding import NumericEncoding
from ..schema.image import Origin
from ..schema.table import LEVELS, TableSchema
from .base import FeatureMap
from .marginals import MOST_CELLS, MarginalFeatures

_KNOTS = 2
"""Of the encoding: one step for each level of the value."""


def widest_bounds(kind: ColumnKind, dtype: str, transform: Transform) -> tuple[float, float]:
    """Bounds that no value of a column is beyond."""
    lower, upper = -LARGEST, LARGEST
    if "int" in dtype:
        low, high = range_of_integers(dtype)
        lower, upper = max(lower, low), min(upper, high)
    if transform is Transform.LOG1P:
        lower = 0.0
    return (int(lower), int(upper)) if kind is ColumnKind.INTEGER else (float(lower), float(upper))


def schema_of_magnitudes(schema: TableSchema, names: Iterable[str]) -> TableSchema:
    """The schema under which magnitudes are counted: some columns, without the others.

    Args:
        schema: of the table; the columns named have their widest bounds.
        names: of the columns whose bounds are to be found.

    Raises:
        SchemaError: there is none.
    """
    chosen = set(names)
    columns = tuple(
        replace(column, transform=Transform.SIGNED_LOG, origin=Origin.DECLARED)
        for column in schema.columns
        if column.name in chosen
    )
    if not columns:
        raise SchemaError('no column has bounds = "private": there is nothing to be found')
    left_out = tuple(c.name for c in schema.columns if c.name not in chosen)
    return TableSchema(columns, None, (*left_out, *schema.left_out), _KNOTS, schema.csv)


def magnitudes(schema: TableSchema) -> MarginalFeatures:
    """The feature map that counts magnitudes.

    Args:
        schema: as `schema_of_magnitudes` makes it.
    """
    return MarginalFeatures.of(schema, MOST_CELLS)


def holds_magnitudes(schema: Schema, feature_map: FeatureMap) -> bool:
    """Whether sums under a schema and a map are counts of magnitudes."""
    return (
        isinstance(schema, TableSchema)
        and all(column.kind.numeric for column in schema.columns)
        and feature_map == magnitudes(schema)
    )


def bounds_from(
    column: Column, counts: NDArray[np.float64], least: float
) -> tuple[float, float] | None:
    """Bounds that the cells with enough records are between; None if there is no such cell.

    Args:
        column: as in `schema_of_magnitudes`.
        counts: how many records are in each cell, about, float64 (at least 128,); what follows,
            missing values, is passed over.
        least: how many are enough.
    """
    enough = np.flatnonzero(counts[:MOST_CELLS] >= least)
    if not len(enough):
        return None
    level = np.arange(LEVELS + 1)
    cell = (2 * level * (MOST_CELLS - 1) + LEVELS) // (2 * LEVELS)  # as `MarginalColumn.cell`
    inside = level[(cell >= enough[0]) & (cell <= enough[-1])]
    ends = np.array([inside[0] - 0.5, inside[-1] + 0.5]) / LEVELS
    encoding = NumericEncoding(column, _KNOTS)
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
