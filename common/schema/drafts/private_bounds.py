"""The schema for finding bounds with differential privacy: `bounds = "private"`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from ...errors import SchemaError
from ..columns.column import Column
from ..columns.dtypes import LARGEST, range_of_integers
from ..columns.granule import granule_of
from ..columns.kinds import ColumnKind, Transform
from ..origin import Origin
from ..table import TableSchema

KNOTS = 2
"""Knots of the encoding, which give one step for each level of the value."""


def widest_bounds(
    kind: ColumnKind,
    dtype: str,
    transform: Transform,
    step: float | None = None,
    decimals: int | None = None,
) -> tuple[float, float]:
    """Bounds that no value of a column exceeds; multiples of its step if it has one."""
    lower, upper = -LARGEST, LARGEST
    if "int" in dtype:
        low, high = range_of_integers(dtype)
        lower, upper = max(lower, low), min(upper, high)
    if transform is Transform.LOG1P:
        lower = 0.0
    if (step, decimals) != (None, None):
        number, digits = granule_of(kind, step, decimals) or (1, 0)
        most = int(LARGEST) // number
        steps = [Fraction(bound) * 10**digits / number for bound in (lower, upper)]
        lower = max(-most, math.ceil(steps[0])) * number / 10**digits
        upper = min(most, math.floor(steps[1])) * number / 10**digits
    return (int(lower), int(upper)) if kind is ColumnKind.INTEGER else (float(lower), float(upper))


def with_private_bounds(column: Column, bounds: tuple[float, float]) -> Column:
    """A column with found bounds, widened to multiples of its step.

    Args:
        column: a draft's column, with its widest bounds.
        bounds: the bounds as found.
    """
    lower, upper = bounds
    if (column.step, column.decimals) != (None, None):
        number, digits = column.granule or (1, 0)
        steps = [Fraction(bound) * 10**digits / number for bound in bounds]
        lower, upper = (
            edge * number if column.kind is ColumnKind.INTEGER else edge * number / 10**digits
            for edge in (math.floor(steps[0]), math.ceil(steps[1]))
        )
        least, most = column.bounds
        lower, upper = max(lower, least), min(upper, most)
    return replace(column, lower=lower, upper=upper, values=(), origin=Origin.PRIVATE)


def approx_bounds_schema(schema: TableSchema, names: Iterable[str]) -> TableSchema:
    """The schema for counting magnitudes, which has only the named columns.

    Args:
        schema: the table's schema; the named columns have their widest bounds.
        names: the columns whose bounds are to be found.

    Raises:
        SchemaError: there is no such column.
    """
    chosen = set(names)
    columns = tuple(
        replace(
            column,
            transform=Transform.SIGNED_LOG,
            origin=Origin.DECLARED,
            step=None,
            decimals=None,
            values=(),
        )
        for column in schema.columns
        if column.name in chosen
    )
    for column in columns:
        if column.between:
            raise SchemaError(f"column {column.name!r}: computed from others: declare its bounds")
    if not columns:
        raise SchemaError('no column has bounds = "private": there is nothing to be found')
    left_out = tuple(c.name for c in schema.written if c.name not in chosen)
    left_out = (*left_out, *schema.left_out)
    return TableSchema(columns, None, left_out, KNOTS, schema.csv, privacy_unit=schema.privacy_unit)
