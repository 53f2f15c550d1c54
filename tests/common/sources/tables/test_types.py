"""The type of a column, which a program chooses by all of its values, changes how no row is read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import compute, parquet

from dpntk.common.errors import DataError, DpntkError, SchemaError
from dpntk.common.schema.column import Column, ColumnKind, Missing, Transform
from dpntk.common.schema.dates import Unit
from dpntk.common.schema.encoding import MISSING
from dpntk.common.schema.table import CsvFormat, TableSchema
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.common.sources.tables import frames, rows
from dpntk.common.sources.tables.categories import CategoryFinder

Read = Callable[[list[Any], TableSchema, Path], NDArray[np.uint8]]
BIG = 2**53 + 1


def schema_of(column: Column, form: CsvFormat | None = None) -> TableSchema:
    return TableSchema((column, Column.integer("row", 0, 255)), csv=form or CsvFormat())


def frame_of(values: list[Any], **how: Any) -> pd.DataFrame:
    return pd.DataFrame({"x": pd.Series(values, **how), "row": range(len(values))})


def records(data: Any, schema: TableSchema) -> NDArray[np.uint8]:
    found = open_source(data, SourceOptions(schema=schema)).batches(100)
    return np.concatenate([batch.records for batch in found])


def read_as_pandas_has_it(values: list[Any], schema: TableSchema, _: Path) -> NDArray[np.uint8]:
    return records(frame_of(values), schema)


def read_objects(values: list[Any], schema: TableSchema, _: Path) -> NDArray[np.uint8]:
    return records(frame_of(values, dtype=object), schema)


def read_pandas_categories(values: list[Any], schema: TableSchema, _: Path) -> NDArray[np.uint8]:
    return records(frame_of(values, dtype="category"), schema)


def read_best_types(values: list[Any], schema: TableSchema, _: Path) -> NDArray[np.uint8]:
    return records(frame_of(values).convert_dtypes(), schema)


def read_numpy(values: list[Any], schema: TableSchema, _: Path) -> NDArray[np.uint8]:
    """As NumPy makes an array of all: truth values become numbers, and numbers texts."""
    return records(frame_of(np.array(values)), schema)


def read_arrow(values: list[Any], schema: TableSchema, _: Path) -> NDArray[np.uint8]:
    return records(pa.table({"x": pa.array(values), "row": range(len(values))}), schema)


def read_csv(values: list[Any], schema: TableSchema, folder: Path) -> NDArray[np.uint8]:
    frame_of(values).to_csv(folder / "a.csv", index=False)
    return records(folder / "a.csv", schema)


def read_csv_as_pandas_does(
    values: list[Any], schema: TableSchema, folder: Path
) -> NDArray[np.uint8]:
    frame_of(values).to_csv(folder / "a.csv", index=False)
    return records(pd.read_csv(folder / "a.csv"), schema)


def read_parquet(values: list[Any], schema: TableSchema, folder: Path) -> NDArray[np.uint8]:
    frame_of(values).to_parquet(folder / "a.parquet")
    return records(folder / "a.parquet", schema)


WAYS: tuple[Read, ...] = (
    read_as_pandas_has_it, read_objects, read_pandas_categories, read_best_types, read_numpy,
    read_arrow, read_csv, read_csv_as_pandas_does, read_parquet,
)  # fmt: skip


def choices(*categories: str, dtype: str = "string") -> Column:
    return Column(
        "x", ColumnKind.CATEGORICAL, dtype, categories=(*categories, "0"), other="0",
        missing=Missing.CATEGORY,
    )  # fmt: skip


def amounts(**more: Any) -> Column:
    return Column(
        "x", ColumnKind.CONTINUOUS, "float64", -1e6, 1e6, missing=Missing.INDICATOR, **more
    )


TRUTH = Column.boolean("x", missing=True)
DAYS = Column(
    "x", ColumnKind.DATE, "date32", 0, 30_000, missing=Missing.INDICATOR
)  # fmt: skip
TIMES = Column(
    "x", ColumnKind.DATETIME, "timestamp[us]", 0, 50_000_000, unit=Unit.MINUTE,
    missing=Missing.INDICATOR,
)  # fmt: skip
STAYS = Column(
    "x", ColumnKind.DURATION, "duration[us]", -10_000, 10_000, unit=Unit.SECOND,
    missing=Missing.INDICATOR,
)  # fmt: skip
NUMBERS = [
    None, float("nan"), pd.NA, 0, 1, 1.0, 2.5, -7, True, Decimal("1"), Decimal("0.001"),
    Decimal("1e-20"), Decimal("1e30"), np.float32(0.1), np.int8(1), 2**53, BIG, 2**63, 2**64, 1e300,
    float("inf"), "1", "1.0", "x", "", b"1",
]  # fmt: skip
MOMENTS = [
    None, pd.NaT, dt.date(2020, 2, 3), dt.datetime(2020, 2, 3, 4, 5), dt.datetime(1500, 1, 1),
    dt.datetime(9999, 1, 1), dt.datetime(2020, 2, 3, 4, 5, tzinfo=dt.UTC),
    pd.Timestamp("2020-02-03 04:05:06.123456789"), np.datetime64("2020-02-03"), "2020-02-03", "x", 1,
]  # fmt: skip
LENGTHS = [
    None, pd.NaT, dt.timedelta(days=200_000), dt.timedelta(microseconds=1), pd.Timedelta(1, "ns"),
    np.timedelta64(3, "ns"), 5, "P1D",
]  # fmt: skip
COLUMNS: dict[str, tuple[Column, list[Any], list[Any]]] = {
    "numbers as texts": (choices("1", "2", "7"), [1, 2, 7, 2], NUMBERS),
    "codes as texts": (choices("01", "2", "1.50"), [1, 2, 1, 2], NUMBERS),
    "whole numbers": (choices("1", "2", "12", dtype="int64"), [1, 2, 12, 5], NUMBERS),
    "floats": (choices("0.1", "2", "12.25", dtype="float64"), [0.1, 2.0, 12.25, 5.5], NUMBERS),
    "short floats": (choices("0.1", "2", dtype="float32"), [np.float32(0.1), 2, 7, 2], NUMBERS),
    "large numbers": (choices(str(BIG), "7", dtype="int64"), [BIG, 7, BIG - 1, 7], NUMBERS),
    "large numbers as texts": (choices(str(BIG), "7"), [BIG, 7, BIG - 1, BIG + 1], NUMBERS),
    "large floats": (choices(str(BIG), "7", dtype="float64"), [BIG, 7, BIG - 1, 7], NUMBERS),
    "decimals": (choices("1", "0.5", "0.25"), [*map(Decimal, ("1", "0.5", "0.25", "3"))], NUMBERS),
    "truth": (TRUTH, [True, False, True, False], [*NUMBERS[:6], "true", "True", "false"]),
    "truth as numbers": (choices("1", "7"), [True, False, True, False], NUMBERS),
    "texts": (choices("a", "1", "true"), ["a", "1", "true", "1.0"], NUMBERS),
    "amounts": (amounts(), [1, 2, -5, 999], NUMBERS),
    "decimal amounts": (
        amounts(transform=Transform.SIGNED_LOG),
        [*map(Decimal, ("0.1", "2.3", "-7.77", "1234.567"))],
        NUMBERS,
    ),
    "days": (DAYS, [dt.date(2000 + k, 1, 1) for k in range(4)], MOMENTS),
    "times": (TIMES, [dt.datetime(2000 + k, 1, 1, 7, 9) for k in range(4)], MOMENTS),
    "stays": (STAYS, [dt.timedelta(hours=k, seconds=9) for k in range(-2, 2)], LENGTHS),
}


def changed(name: str, read: Read, folder: Path) -> tuple[list[str], int]:
    """Replacements of one row after which another is read in another way, and how many were read.

    What is refused changes nothing: there is no embedding then.
    """
    column, values, replacements = COLUMNS[name]
    schema, found, read_at_all = schema_of(column), [], 0
    for place in (0, 2):
        others = [row for row in range(len(values)) if row != place]
        seen: NDArray[np.uint8] | None = None
        for value in [values[place], *replacements]:
            try:
                encoded = read([*values[:place], value, *values[place + 1 :]], schema, folder)
            except (DpntkError, ValueError, TypeError, OverflowError, pa.ArrowException):
                continue  # the latter three are of pandas, NumPy and Arrow, before we get anything
            read_at_all += 1
            seen = encoded if seen is None else seen
            if not np.array_equal(encoded[others], seen[others]):
                found.append(f"{value!r} in row {place}")
    return found, read_at_all


@pytest.mark.parametrize("read", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
def test_one_row_changes_how_no_other_is_read(name: str, read: Read, tmp_path: Path) -> None:
    found, read_at_all = changed(name, read, tmp_path)
    assert not found
    assert read_at_all >= 2
