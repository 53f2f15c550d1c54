"""Rows in memory are DataFrames with the types that the schema declares."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpntk.common.errors import GeneratorError
from dpntk.common.schema.columns.dtypes import DTYPES
from dpntk.embed import Column, SourceOptions, TableSchema, TangentOptions, embed
from dpntk.generate.tables.rows.dataframe import to_dataframe

NULLABLE = {
    "int8": "Int8", "int16": "Int16", "int32": "Int32", "int64": "Int64",
    "uint8": "UInt8", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
    "float32": "float32", "float64": "float64", "bool": "boolean",
}  # fmt: skip


def column_of(dtype: str, name: str, *, missing: bool) -> Column:
    match dtype:
        case "string":
            return Column.categorical(name, ["a", "b"], missing=missing)
        case "bool":
            return Column.boolean(name, missing=missing)
        case "float32" | "float64":
            return Column.continuous(name, 0, 9, dtype=dtype, missing=missing)
        case _:
            return Column.integer(name, 0, 9, dtype=dtype, missing=missing)


def rows_of(schema: TableSchema, *, lacking: bool) -> pa.Table:
    """Three rows; the second lacks whatever may be missing, if any does."""
    values = {"string": ["a", "b", "a"], "bool": [True, False, True]}
    columns = {}
    for column in schema.columns:
        kind = pa.type_for_alias(column.dtype)
        there = pa.array(values.get(column.dtype, [1, 2, 9])).cast(kind)
        mask = np.array([False, lacking and column.name.endswith("?"), False])
        columns[column.name] = pa.array(there.to_pylist(), kind, mask=mask)
    return pa.table(columns)


SCHEMA = TableSchema(
    (
        *(column_of(dtype, dtype, missing=False) for dtype in DTYPES),
        *(column_of(dtype, f"{dtype}?", missing=True) for dtype in DTYPES),
    )
)


@pytest.mark.parametrize("lacking", [True, False])
def test_columns_have_the_declared_types_whatever_the_rows_are(lacking: bool) -> None:
    rows = rows_of(SCHEMA, lacking=lacking)
    frame = to_dataframe(rows, SCHEMA)
    assert list(frame.columns) == [column.name for column in SCHEMA.columns]
    for dtype in DTYPES:
        if dtype == "string":
            assert pd.api.types.is_string_dtype(frame["string"].dtype)
        else:
            assert frame[dtype].dtype == np.dtype(dtype)
            assert str(frame[f"{dtype}?"].dtype) == NULLABLE[dtype]
        assert frame[dtype].isna().sum() == 0
        assert frame[f"{dtype}?"].isna().sum() == int(lacking)
        there = frame[f"{dtype}?"].dropna().tolist()
        assert there == rows.column(f"{dtype}?").drop_null().to_pylist()


def test_rows_in_memory_can_be_embedded_as_they_are() -> None:
    rows = rows_of(SCHEMA, lacking=True)
    narrow, source = TangentOptions(width="5"), SourceOptions(schema=SCHEMA)
    there = embed(rows, narrow, source)
    back = embed(to_dataframe(rows, SCHEMA), narrow, source)
    assert np.array_equal(back.sums, there.sums)


def test_without_pandas_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(GeneratorError, match="pip install pandas") as caught:
        to_dataframe(rows_of(SCHEMA, lacking=False), SCHEMA)
    assert "\n" not in str(caught.value)
