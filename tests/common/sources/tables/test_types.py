"""The type of a column, which programs choose by all of its values, changes how no row is read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import compute, csv

from dpntk.common.errors import DataError, DpntkError, SchemaError
from dpntk.common.schema.columns.codes import MISSING
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.dates import TimeUnit
from dpntk.common.schema.columns.kinds import ColumnKind, Missing
from dpntk.common.schema.csv_format import CsvFormat
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.common.sources.tables import categories, frames, rows
from dpntk.common.sources.tables.categories import CategoryFinder, StandIns
from dpntk.common.sources.tables.frames import FrameSource
from dpntk.common.sources.tables.table import TableSource
from dpntk.embed import draft_schema

Store = Callable[[list[Any], Path], pd.DataFrame | pa.Table | Path]
BIG = 2**53 + 1
LAST = 2**63 - 1


def schema_of(column: Column, form: CsvFormat | None = None) -> TableSchema:
    return TableSchema((column, Column.integer("row", 0, 255)), csv=form or CsvFormat())


def frame_of(values: Sequence[Any] | NDArray[Any], dtype: str | None = None) -> pd.DataFrame:
    return pd.DataFrame({"x": pd.Series(values, dtype=dtype), "row": range(len(values))})


def read(data: pd.DataFrame | pa.Table | Path, schema: TableSchema) -> NDArray[Any]:
    """What is encoded of a column, each row by itself."""
    source = open_source(data, SourceOptions(schema=schema))
    assert isinstance(source, TableSource | FrameSource)
    return source.values()["x"]


def as_pandas_has_it(values: list[Any], _: Path) -> pd.DataFrame:
    return frame_of(values)


def as_objects(values: list[Any], _: Path) -> pd.DataFrame:
    return frame_of(values, "object")


def as_pandas_categories(values: list[Any], _: Path) -> pd.DataFrame:
    return frame_of(values, "category")


def as_nullable(values: list[Any], _: Path) -> pd.DataFrame:
    return frame_of(values).convert_dtypes()


def through_numpy(values: list[Any], _: Path) -> pd.DataFrame:
    """Truth values become numbers there, and numbers beside texts become texts."""
    return frame_of(np.array(values))


def as_arrow(values: list[Any], _: Path) -> pa.Table:
    return pa.table({"x": pa.array(values), "row": range(len(values))})


def in_csv(values: list[Any], folder: Path) -> Path:
    frame_of(values).to_csv(folder / "a.csv", index=False)
    return folder / "a.csv"


def in_csv_read_by_pandas(values: list[Any], folder: Path) -> pd.DataFrame:
    return pd.read_csv(in_csv(values, folder))


def in_csv_read_by_arrow(values: list[Any], folder: Path) -> pa.Table:
    return csv.read_csv(in_csv(values, folder))


def in_parquet(values: list[Any], folder: Path) -> Path:
    frame_of(values).to_parquet(folder / "a.parquet")
    return folder / "a.parquet"


WAYS: tuple[Store, ...] = (
    as_pandas_has_it, as_objects, as_pandas_categories, as_nullable, through_numpy, as_arrow,
    in_csv, in_csv_read_by_pandas, in_csv_read_by_arrow, in_parquet,
)  # fmt: skip
FILES = (in_csv, in_csv_read_by_pandas, in_csv_read_by_arrow, in_parquet)


def choices(*categories: str, dtype: str = "string") -> Column:
    return Column(
        "x", ColumnKind.CATEGORICAL, dtype, categories=(*categories, "0"), other="0",
        missing=Missing.CATEGORY,
    )  # fmt: skip


AMOUNT = Column("x", ColumnKind.CONTINUOUS, "float64", -1e6, 1e6, missing=Missing.INDICATOR)

TRUTH = Column.boolean("x", missing=True)
DAYS = Column(
    "x", ColumnKind.DATE, "date32", 0, 30_000, missing=Missing.INDICATOR
)  # fmt: skip
TIMES = Column(
    "x", ColumnKind.DATETIME, "timestamp[us]", 0, 50_000_000, unit=TimeUnit.MINUTE,
    missing=Missing.INDICATOR,
)  # fmt: skip
STAYS = Column(
    "x", ColumnKind.DURATION, "duration[us]", -10_000, 10_000, unit=TimeUnit.SECOND,
    missing=Missing.INDICATOR,
)  # fmt: skip
LATEST = "2051-01-01 00:00:00"
NEVER = "2050-01-01T00:00:00", "2049-01-01 00:00"
NUMBERS = [
    None, float("nan"), pd.NA, 0, 1, 1.0, 2.5, -7, True, Decimal("1"), Decimal("0.001"),
    Decimal("1e-20"), Decimal("1e30"), np.float32(0.1), np.float16(0.1), np.longdouble(1),
    np.int8(1), 2**53, BIG, 2**63, 2**64, 1e300, float("inf"), "1", "1.0", "x", "", b"1",
]  # fmt: skip
MOMENTS = [
    None, pd.NaT, dt.date(2020, 2, 3), dt.datetime(2020, 2, 3, 4, 5), dt.datetime(1500, 1, 1),
    dt.datetime(9999, 1, 1), dt.datetime(2020, 2, 3, 4, 5, tzinfo=dt.UTC),
    pd.Timestamp("2020-02-03 04:05:06.123456789"), np.datetime64("2020-02-03"), "x", 1,
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
    "large numbers that floats hold": (
        choices(str(BIG - 1), "7"),
        [BIG - 1, 7, BIG, BIG + 1],
        NUMBERS,
    ),
    "large floats": (choices(str(BIG), "7", dtype="float64"), [BIG, 7, BIG - 1, 7], NUMBERS),
    "decimals": (choices("1", "0.5", "0.25"), [*map(Decimal, ("1", "0.5", "0.25", "3"))], NUMBERS),
    "truth": (TRUTH, [True, False, True, False], [*NUMBERS[:6], "true", "True", "false"]),
    "truth as numbers": (choices("1", "7"), [True, False, True, False], NUMBERS),
    "texts": (choices("a", "1", "true"), ["a", "1", "true", "1.0"], NUMBERS),
    "amounts": (AMOUNT, [1, 2, -5, 999], NUMBERS),
    "decimal amounts": (
        AMOUNT,
        [*map(Decimal, ("0.1", "2.3", "-7.77", "1234.567"))],
        NUMBERS,
    ),
    "days": (DAYS, [dt.date(2000 + k, 1, 1) for k in range(4)], MOMENTS),
    "times": (TIMES, [dt.datetime(2000 + k, 1, 1, 7, 9) for k in range(4)], MOMENTS),
    "stays": (STAYS, [dt.timedelta(hours=k, seconds=9) for k in range(-2, 2)], LENGTHS),
    "parts of a stay": (STAYS, [pd.Timedelta(-999_999_999 - k, "ns") for k in range(4)], LENGTHS),
    "amounts, some missing": (AMOUNT, [-9.9, 2.0, -9.9, 999.0], NUMBERS),
    "amounts, some missing by a large number": (AMOUNT, [LAST, 2, LAST, 999], NUMBERS),
    "codes, some missing": (choices("1", "2"), [-9.9, 2.0, -9.9, 1.0], NUMBERS),
    "codes, some missing by a large number": (choices("1", "2"), [LAST, 2, LAST, 1], NUMBERS),
    # Texts that other programs take for numbers, truth values or times, if all of them can be.
    "signs": (choices("+1", "7"), ["+1", "7", "+1", "2"], NUMBERS),
    "signs of others": (choices("1", "7"), ["+1", "7", "+1", "2"], NUMBERS),
    "points": (choices(".5", "7."), [".5", "7.", ".5", "2"], NUMBERS),
    "points of others": (choices("0.5", "7"), [".5", "7.", ".5", "2"], NUMBERS),
    "many digits": (choices("0.1", "7"), ["0.1000000000000000055", "7", "0.1", "2"], NUMBERS),
    "infinity": (choices("inf", "7"), ["inf", "7", "inf", "2"], NUMBERS),
    "too large": (choices("1e400", "7"), ["1e400", "7", "inf", "2"], NUMBERS),
    "blanks": (choices(" 1", "7"), [" 1", "7", " 1", "2"], NUMBERS),
    "signs of amounts": (AMOUNT, ["+1", ".5", "5.", "2"], NUMBERS),
    "signs, some missing": (choices("1", "7"), ["+8", "7", "8.0", "1"], NUMBERS),
    "signs of amounts, some missing": (AMOUNT, ["+8", "7", "8.0", "1"], NUMBERS),
    "infinity, some missing": (choices("1", "7"), ["inf", "7", "inf", "1"], NUMBERS),
    "truth, some missing": (choices("true"), ["False", "true", "false", "True"], NUMBERS),
    "days, some missing": (DAYS, [LATEST, "2001-01-01", LATEST, "2003-02-01"], MOMENTS),
    "times, some missing": (TIMES, [*NEVER, "2001-01-01 05:06:07", NEVER[0]], MOMENTS),
}
MISSING_TEXTS = ("", "-9.9", str(LAST), "+8", "inf", "False", LATEST, *NEVER)


def changed(name: str, store: Store, folder: Path) -> tuple[list[str], int]:
    """Replacements of one row after which another is read in another way, and how many were read.

    What is refused changes nothing: there is no embedding then.
    """
    column, values, replacements = COLUMNS[name]
    form = CsvFormat(missing=MISSING_TEXTS) if "missing" in name else None
    schema, found, times = schema_of(column, form), [], 0
    for place in (0,) if store in FILES else (0, 2):  # Arrow goes by the first value of a kind
        others = [row for row in range(len(values)) if row != place]
        seen: NDArray[Any] | None = None
        for value in [values[place], *replacements]:
            try:
                data = store([*values[:place], value, *values[place + 1 :]], folder)
            except (ValueError, TypeError, OverflowError, pa.ArrowException):
                continue  # pandas, NumPy or Arrow do not hold it
            try:
                numbers = read(data, schema)[others]
            except DpntkError:
                continue
            times += 1
            seen = numbers if seen is None else seen
            if not np.array_equal(numbers, seen, equal_nan=True):
                found.append(f"{value!r} in row {place}")
    return found, times


@pytest.mark.parametrize("store", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
def test_one_row_changes_how_no_other_is_read(name: str, store: Store, tmp_path: Path) -> None:
    if "stay" in name and store in (in_csv, in_csv_read_by_pandas, in_csv_read_by_arrow):
        pytest.skip("pandas writes durations that are negative as nobody else does")
    if name == "parts of a stay" and store is as_objects:
        pytest.skip("they are all refused")
    if name.startswith("large numbers") and store in (as_nullable, in_csv):
        pytest.skip("pandas has made floats of them before, and says whole numbers or texts")
    found, times = changed(name, store, tmp_path)
    assert not found
    assert times >= 2


@pytest.mark.parametrize(
    ("others", "one", "dtype"),
    [
        ([np.float16(0.1), np.float16(0.7)], 1, "object"),  # Arrow would make whole numbers of all
        ([np.longdouble(0.1), np.longdouble(0.7)], 1, "object"),
        ([5, 7], dt.date(2000, 1, 1), "object"),  # days since 1970, beside a time microseconds
        ([5, 7], pd.Timedelta(1, "s"), "object"),
        ([np.array(5), np.array(7)], dt.date(2000, 1, 1), "object"),
        ([np.timedelta64(5, "ns")] * 2, dt.date(2000, 1, 1), "object"),  # days, too
        ([True, False], 0.5, "object"),
        ([0.5, 0.25], True, "object"),  # a number, beside other truth values none
        ([np.uint64(2**64 - 1)] * 2, 0.5, "object"),  # -1
        ([np.datetime64("NaT"), np.float32(0.5)], np.float32(0.7), "object"),  # Arrow crashes
        ([5, 7], dt.date(2000, 1, 1), "category"),
        ([dt.date(2000, 1, 1)] * 2, np.True_, "object"),  # days; behind NumPy's times Arrow crashes
    ],
)
def test_objects_that_arrow_reads_by_what_others_are_are_refused(
    others: list[Any], one: object, dtype: str
) -> None:
    column = DAYS if isinstance(one, dt.date) else AMOUNT
    values = pd.Series([*others, one], dtype="object").astype(dtype)
    data = pd.DataFrame({"x": values, "row": range(3)})
    with pytest.raises(DataError, match="column 'x' holds values of several kinds"):
        read(data, schema_of(column))


@pytest.mark.parametrize("dtype", ["object", "category"])
@pytest.mark.parametrize("first", [dt.date(2000, 1, 1), dt.datetime(2000, 1, 1)])
def test_a_time_with_a_zone_is_refused_beside_dates_and_times_without_one(
    first: dt.date, dtype: str
) -> None:
    """Behind a date Arrow makes them days on their own clock, behind a time days in Greenwich."""
    zone = dt.timezone(dt.timedelta(hours=5))
    zoned = [dt.datetime(2000, 1, day, 1, tzinfo=zone) for day in (2, 3)]
    values = pd.Series([first, *zoned], dtype="object").astype(dtype)
    data = pd.DataFrame({"x": values, "row": range(3)})
    with pytest.raises(DataError, match="column 'x' holds values of several kinds"):
        read(data, schema_of(DAYS))


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
def test_mutants_that_go_by_the_type_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def categories_as_texts(self: CategoryFinder, values: pa.Array, _: str) -> NDArray[np.int64]:
        listed = pa.array(self._column.categories)
        codes = compute.index_in(values.cast(pa.string()), value_set=listed).fill_null(MISSING)
        return np.array(codes, np.int64)

    with monkeypatch.context() as mutant:
        mutant.setattr(CategoryFinder, "codes", categories_as_texts)
        for name in ("decimals", "truth as numbers", "large numbers", "codes as texts"):
            assert any(changed(name, store, tmp_path)[0] for store in WAYS), name
    with monkeypatch.context() as mutant:
        mutant.setattr(frames, "_is_day", lambda _: False)  # a day among times makes days of all
        assert not changed("times", as_objects, tmp_path)[0]  # which are refused
        mutant.setattr(rows, "DAY", 60)  # dates are taken for times of every unit
        assert changed("times", as_objects, tmp_path)[0]
    with monkeypatch.context() as mutant:
        mutant.setattr(categories, "_MOST_EXACT", dict.fromkeys((16, 32, 64), float("inf")))
        assert changed("large numbers", as_pandas_has_it, tmp_path)[0]
    with monkeypatch.context() as mutant:
        mutant.setattr(StandIns, "_as_float", lambda _, number: number)
        for name in (name for name in COLUMNS if "missing by a large number" in name):
            assert changed(name, as_pandas_has_it, tmp_path)[0], name


def test_decimals_are_the_nearest_floats_whatever_digits_others_have() -> None:
    """What Arrow makes of them depends on the scale of their column, in every third case."""
    amounts = [Decimal(n * 487).scaleb(-(n % 9)) for n in range(1, 2000)]
    assert max(amounts) < 10**6
    wanted = [float(amount) for amount in amounts]
    for first in (Decimal("0.000000001"), Decimal("1e-20"), Decimal("1e-30")):
        found = read(frame_of([first, *amounts], "object"), schema_of(AMOUNT))
        assert found[1:].tolist() == wanted


@pytest.mark.parametrize(
    "values",
    [
        [1, 7], [1.0, 7.0], [Decimal("1.00"), Decimal(7)], ["1", "7"], ["1.0", " 7"], ["1e0", "07"],
        np.array([1, 7], np.uint8), np.array([1, 7], np.float16), np.array([1, 7], np.float32),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["string", "int64", "float32", "float64"])
def test_a_number_is_the_same_category_however_it_is_stored(
    values: Sequence[Any], dtype: str
) -> None:
    schema = schema_of(choices("5", "7", "1", dtype=dtype))
    assert read(frame_of(values), schema).tolist() == [2, 1]


@pytest.mark.parametrize(
    "values", [[False, True], [0, 1], [0.0, 1.0], ["False", "TRUE"], ["0", "1"]]
)
@pytest.mark.parametrize("names", [("false", "true"), ("0", "1"), ("False", "True")])
def test_truth_is_the_same_category_however_it_is_stored(
    values: Sequence[Any], names: tuple[str, ...]
) -> None:
    assert read(frame_of(values), schema_of(Column.boolean("x", names))).tolist() == [0, 1]


def test_texts_that_are_categories_are_nothing_else() -> None:
    codes = choices("01", "1", "1.0", "true", "True")
    texts = ["01", "1", "1.0", "true", "True", "1.00", "TRUE", "one"]
    assert read(frame_of(texts), schema_of(codes)).tolist() == [0, 1, 2, 3, 4, 1, 1, 5]


@pytest.mark.parametrize("one", [1, 1.0, Decimal("1.0"), np.float32(1), True])
@pytest.mark.parametrize("texts", [("01", "1"), ("1", "1.0"), ("true", "1"), ("True", "true")])
def test_a_number_that_may_have_been_texts_of_several_categories_is_refused(
    one: object, texts: tuple[str, ...]
) -> None:
    """A program makes numbers of all texts, or of none where one text is no number."""
    schema = schema_of(choices(*texts, "7"))
    assert read(frame_of([*texts, "7", "x"]), schema).tolist() == [0, 1, 2, 3]
    if one is True or texts != ("True", "true"):
        with pytest.raises(SchemaError, match="several of its categories are the same number"):
            read(frame_of([one, one]), schema)
    assert read(frame_of([7, 7]), schema).tolist() == [2, 2]


def test_floats_do_not_hold_large_categories() -> None:
    schema = schema_of(choices(str(BIG), "7"))
    assert read(frame_of([BIG, BIG - 1, None], "Int64"), schema).tolist() == [0, 2, MISSING]
    with pytest.raises(SchemaError, match="rounds numbers as large as its categories"):
        read(frame_of([7, None]), schema)
    huge = schema_of(choices("1e300", "7", dtype="float64"))
    assert read(frame_of([1e300, 7, None]), huge).tolist() == [0, 1, MISSING]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        *(("-9", [nine, 5]) for nine in (-9, -9.0, Decimal(-9))),
        *(("-9", [nine, "5"]) for nine in ("-9", "-9.0")),
        *(("-9.9", [tenths, 5]) for tenths in (-9.9, Decimal("-9.90"))),
        ("-9.9", ["-9.90", "5"]),
        ("-9.9", np.array([-9.9, 5], np.float32)),
        *((str(LAST), [last, 5]) for last in (LAST, float(LAST), Decimal(LAST))),
    ],
)
@pytest.mark.parametrize("column", [AMOUNT, choices("5")], ids=["amount", "category"])
def test_a_number_that_stands_for_missing_does_however_it_is_stored(
    text: str, values: Sequence[Any], column: Column
) -> None:
    found = read(frame_of(values), schema_of(column, CsvFormat(missing=("", text))))
    assert np.isnan(found[0]) if column.kind.numeric else found[0] == MISSING
    assert found[1] == (5 if column.kind.numeric else 0)


@pytest.mark.parametrize(
    ("column", "text", "lacking", "there"),
    [
        (DAYS, "1999-09-09", dt.date(1999, 9, 9), dt.date(1999, 9, 10)),
        (DAYS, "1999-09-09", dt.datetime(1999, 9, 9), dt.datetime(1999, 9, 10)),
        (DAYS, "1999-09-09", "1999-9-9", "1999-09-10"),
        (TIMES, "1999-09-09 09:09:00", dt.datetime(1999, 9, 9, 9, 9), dt.datetime(1999, 9, 9)),
        (TIMES, "1999-09-09", dt.datetime(1999, 9, 9), dt.datetime(1999, 9, 9, 9)),
        (TIMES, "1999-09-09", "1999-09-09 00:00:00", "1999-09-09 09:00:00"),
        (STAYS, "-PT1S", dt.timedelta(seconds=-1), dt.timedelta(seconds=1)),
        (STAYS, "-PT1S", "-PT0H1S", "PT1S"),
    ],
)
def test_a_time_that_stands_for_missing_does_however_it_is_stored(
    column: Column, text: str, lacking: object, there: object
) -> None:
    form = CsvFormat(missing=("", text))
    found = read(frame_of([lacking, there]), schema_of(column, form))
    assert np.isnan(found).tolist() == [True, False]


def test_dates_that_stand_for_missing_are_read_alike_where_one_text_is_no_date(
    tmp_path: Path,
) -> None:
    """Of a column pandas makes times of all texts, or of none."""
    form = CsvFormat(missing=("", "1999-09-09", "unknown"))
    read_so = {}
    for last in ("2001-01-01", "unknown"):
        file = tmp_path / "a.csv"
        file.write_text(f"x,row\n1999-09-09,0\n2000-02-02,1\n{last},2\n")
        frame = pd.read_csv(file, parse_dates=["x"])
        read_so[str(frame["x"].dtype)[:8]] = read(frame, schema_of(DAYS, form))[:2]
    as_dates, as_texts = read_so["datetime"], read_so.get("str", read_so.get("object"))
    assert as_texts is not None
    assert np.array_equal(as_dates, as_texts, equal_nan=True)


def test_short_floats_are_the_same_from_texts_and_memory(tmp_path: Path) -> None:
    column = Column("x", ColumnKind.CONTINUOUS, "float32", -10.0, 10.0)
    frame = pd.DataFrame({"x": np.array([0.1, 2.7, 1e-9], np.float32), "row": range(3)})
    frame.to_csv(tmp_path / "a.csv", index=False)
    found = read(tmp_path / "a.csv", schema_of(column))
    assert found.tolist() == read(frame, schema_of(column)).tolist() == frame["x"].tolist()


def test_a_decimal_that_signals_is_one_line() -> None:
    """Python raises an error of its own wherever such a number is compared."""
    frame = pd.DataFrame({"x": pd.Series([Decimal(1), Decimal("sNaN")], dtype=object)})
    with pytest.raises(DataError, match="column 'x' holds values of several kinds"):
        open_source(frame, SourceOptions(schema=TableSchema((Column.integer("x", 0, 5),))))


@pytest.mark.parametrize("dtype", ["string", "int64"])
def test_a_large_number_is_in_no_category_of_its_neighbour(dtype: str) -> None:
    """Which is the nearest float to both: a code that is not listed is another one."""
    finder = CategoryFinder(choices(str(BIG - 1), dtype=dtype), CsvFormat())
    for values in ([BIG - 1, BIG, BIG + 1], [str(BIG - 1), str(BIG), str(BIG + 1)]):
        assert finder.codes(pa.array(values), "here").tolist() == [0, MISSING, MISSING]
    assert finder.codes(pa.array([Decimal(BIG - 1), Decimal(BIG)]), "here").tolist() == [0, MISSING]


def test_large_numbers_are_drafted_as_they_are() -> None:
    rows = pd.DataFrame({"x": [BIG - 1, BIG] * 50, "y": [1, 2] * 50})
    (found, _) = draft_schema(rows).stated.columns
    assert found.categories == (str(BIG - 1), str(BIG))
