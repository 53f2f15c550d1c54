"""From encoded rows to values, and from values to a table in the source's types."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ....common.schema.columns.codes import MISSING
from ....common.schema.columns.column import Column
from ....common.schema.columns.kinds import ColumnKind, Transform
from ....common.schema.columns.lookup import LookupColumn
from ....common.schema.columns.ranks import codes_of, numbers_of
from ....common.schema.encoding import CategoryEncoding, NumericEncoding, blocks_of, to_scale
from ....common.schema.table import LEVELS, TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

Values = dict[str, NDArray[Any]]
"""Values by column name: numbers (float64, NaN where missing), or codes (int64, `MISSING` where
missing)."""

_APART: Final = 2.0**-23
"""Resolution of a record's values 0..1, as a fraction of the range."""
_TINY: Final = 1e-290
"""No digits are dropped in a smaller range: powers of ten that do so are too large for a float."""


def values_of(
    schema: TableSchema,
    records: NDArray[np.float32],
    labels: NDArray[np.int64],
    names: Collection[str] | None = None,
) -> Values:
    """Decode rows to values, each of them valid in its column.

    Args:
        schema: of the table.
        records: float32 (n, record size), values 0..1.
        labels: int64 (n,).
        names: of the wanted columns, beside the label; None for all.
    """
    values: Values = {}
    for block in blocks_of(schema):
        if names is not None and block.column.name not in names:
            continue
        column, part = block.column, records[:, block.place]
        match block.encoding:
            case NumericEncoding():
                share = part[:, 0].astype(np.float64).clip(0, 1)
                numbers = stored(column, _told_apart(block.encoding, block.encoding.at(share)))
                missing = part[:, -1] > 0.5 if block.missing_place else np.zeros(len(part), bool)
                numbers = np.where(missing, np.nan, numbers)
                values[column.name] = codes_of(numbers) if block.by_rank else numbers
            case CategoryEncoding():
                ranked = column.kind is ColumnKind.ORDINAL
                codes = part[:, int(ranked) :].argmax(axis=1)
                values[column.name] = np.where(codes < len(column.categories), codes, MISSING)
    if schema.label_column is not None:
        values[schema.label_column.name] = labels.copy()
    return values


def _told_apart(encoding: NumericEncoding, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Drop digits beyond the resolution of a 32-bit record: 12, not 11.9999997.

    Bounds are kept as they are, and so are numbers that are rounded anyway.
    """
    column, (lower, upper) = encoding.column, encoding.bounds
    if column.is_rounded or lower >= upper:
        return values
    if upper - lower < _TINY:
        return values
    if column.transform is Transform.NONE:
        rounded = values.round(math.floor(-math.log10((upper - lower) * _APART)))
    else:  # equal parts of a logarithmic scale are the longer, the larger the number
        low, high = to_scale(np.array([lower, upper]), column.transform)
        digits = np.floor(-np.log10((high - low) * _APART * (1 + np.abs(values))))
        # As `round` does it: powers of ten are exact, and their inverses are not.
        many, few = 10.0 ** np.maximum(digits, 0), 10.0 ** np.maximum(-digits, 0)
        rounded = np.rint(values * many / few) * few / many
    inside = (lower < values) & (values < upper)
    return np.where(inside, rounded.clip(lower, upper), values)


def records_of(schema: TableSchema, values: Values) -> NDArray[np.float32]:
    """Encode values as rows; the inverse of `values_of`.

    Args:
        schema: of the table.
        values: of all columns but the label.

    Returns:
        float32 (n, record size), values 0..1.
    """
    count = len(values[schema.columns[0].name])
    records = np.zeros((count, schema.record_size), dtype=np.float32)
    for block in blocks_of(schema):
        column, part = block.column, records[:, block.place]
        found = values[column.name]
        found = numbers_of(found) if block.by_rank else found
        match block.encoding:
            case NumericEncoding():
                missing = np.isnan(found)
                there = np.flatnonzero(~missing)
                share = block.encoding.share(found[there]).clip(0, 1)
                part[there, 0] = share
                part[there, 1 : 1 + block.encoding.knots] = block.encoding.bins(share)
                if block.missing_place:
                    part[missing, -1] = 1
            case CategoryEncoding():
                part[:] = block.encode(found) / np.float32(LEVELS)
                if column.kind is ColumnKind.ORDINAL:  # a rank may be finer than 255 levels
                    last = max(1, len(column.categories) - 1)
                    part[:, 0] = np.where(found == MISSING, 0, found) / last
    return records


def stored(column: Column, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest numbers that a column can hold, by its step and its type."""
    values = column.rounded(values)
    if column.dtype != "float32":
        return values
    lower, upper = column.bounds
    # Rounding to 32 bits may leave the bounds.
    narrow = values.astype(np.float32)
    wide = narrow.astype(np.float64)
    narrow = np.where(wide > upper, np.nextafter(narrow, np.float32(-np.inf)), narrow)
    narrow = np.where(wide < lower, np.nextafter(narrow, np.float32(np.inf)), narrow)
    return narrow.astype(np.float64)


def table_of(schema: TableSchema, values: Values) -> pa.Table:
    """Build a table with the source's column names, order and types.

    Args:
        schema: of the table.
        values: of all columns that are used; those that are not read are added here.
    """
    import pyarrow

    columns: dict[str, pa.Array] = {
        column.name: (_numbers if column.kind.numeric else _categories)(column, values[column.name])
        for column in schema.stored
    }
    count = len(values[schema.columns[0].name])
    for made in schema.made:
        if isinstance(made, LookupColumn):
            codes = made.looked_up(schema.by_name[made.of], values[made.of])
            columns[made.name] = _categories(made, codes)
        else:
            kind = pyarrow.type_for_alias(made.dtype)
            columns[made.name] = pyarrow.array(made.values(count), kind)
    return pyarrow.table({column.name: columns[column.name] for column in schema.written})


def _numbers(column: Column, values: NDArray[np.float64]) -> pa.Array:
    import pyarrow

    missing = np.isnan(values)
    kind = pyarrow.type_for_alias(column.dtype)
    if pyarrow.types.is_floating(kind):
        return pyarrow.array(values, mask=missing).cast(kind)
    whole = np.where(missing, 0, values).astype(np.int64)
    if not column.kind.timed:
        return pyarrow.array(whole, mask=missing).cast(kind)
    seconds = whole * column.seconds
    if column.dtype == "string":
        form = column.date_format if column.kind.temporal else column.duration_format
        texts = np.array(form.write(seconds), dtype=object)
        return pyarrow.array(texts, kind, mask=missing)
    times = seconds.astype("M8[s]" if column.kind.temporal else "m8[s]")
    return pyarrow.array(times, mask=missing).cast(kind)


def _categories(column: Column | LookupColumn, codes: NDArray[np.int64]) -> pa.Array:
    import pyarrow
    from pyarrow import compute

    missing = codes == MISSING
    texts = pyarrow.array(column.categories, pyarrow.string())
    taken = texts.take(pyarrow.array(np.where(missing, 0, codes), mask=missing))
    if column.dtype == "bool":
        return compute.equal(taken, "true")
    return taken.cast(pyarrow.type_for_alias(column.dtype))
