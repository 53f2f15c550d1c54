"""The texts of a column's values in a CSV file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ....common.schema.columns.column import Column
from ....common.schema.columns.lookup import LookupColumn
from ....common.schema.columns.made import MadeColumn
from ....common.schema.columns.unread import UnreadColumn
from ....common.schema.csv_format import POINT, CsvFormat

if TYPE_CHECKING:
    import pyarrow as pa


def texts_of(values: pa.ChunkedArray, column: Column | UnreadColumn, form: CsvFormat) -> list[str]:
    """The texts of a column's values, as its source would write them.

    Args:
        values: of the column's type.
        column: its description.
        form: how the file writes numbers and missing values.
    """
    from pyarrow import types

    if isinstance(column, MadeColumn):
        return [str(value) for value in values.to_pylist()]
    if column.numbers:
        by_number = dict(zip(column.numbers, column.categories, strict=True))
        said = [None if number is None else by_number[number] for number in values.to_pylist()]
    elif isinstance(column, LookupColumn):
        said = _plain(values)
    elif types.is_temporal(values.type):
        said = _times(values, column)
    elif types.is_floating(values.type) and column.granule is not None and column.granule.digits:
        digits = column.granule.digits  # adding 0.0 removes the sign of a zero
        said = [None if x is None else f"{x + 0.0:.{digits}f}" for x in values.to_pylist()]
    else:
        said = _plain(values)
    if types.is_floating(values.type):
        said = [None if text is None else text.replace(POINT, form.decimal) for text in said]
    return [form.missing[0] if text is None else text for text in said]


def _times(values: pa.ChunkedArray, column: Column) -> list[str | None]:
    import pyarrow

    dates = column.kind.temporal
    kind = pyarrow.timestamp("s") if dates else pyarrow.duration("s")
    seconds = values.cast(kind).cast(pyarrow.int64()).fill_null(0).to_numpy().astype(np.int64)
    texts = (column.date_format if dates else column.duration_format).write(seconds)
    there = values.is_valid().to_pylist()
    return [text if known else None for text, known in zip(texts, there, strict=True)]


def _plain(values: pa.ChunkedArray) -> list[str | None]:
    import pyarrow
    from pyarrow import compute, types

    if types.is_float32(values.type):  # the shortest float32 text may lie beyond a bound
        values = values.cast(pyarrow.float64())
    plain = values.cast(pyarrow.string())
    if types.is_floating(values.type):  # a reader would take 3 for an integer
        whole = compute.invert(compute.match_substring_regex(plain, "[.einf]"))
        plain = compute.if_else(whole, compute.binary_join_element_wise(plain, ".0", ""), plain)
    texts: list[str | None] = plain.to_pylist()
    return texts
