"""How columns are looked at whose bounds are to be found: `bounds = "private"`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..errors import SchemaError
from .column import LARGEST, ColumnKind, Transform, range_of_integers
from .origin import Origin
from .table import TableSchema

KNOTS = 2
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


def approx_bounds_schema(schema: TableSchema, names: Iterable[str]) -> TableSchema:
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
    return TableSchema(columns, None, (*left_out, *schema.left_out), KNOTS, schema.csv)
