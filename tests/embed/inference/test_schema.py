"""What a draft says to its owner of the table that it is of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpntk.common.errors import DataError, SchemaError
from dpntk.common.schema.columns.kinds import ColumnKind, Missing, Transform
from dpntk.common.schema.csv_format import CsvFormat
from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.schema.privacy_unit import PrivacyUnit
from dpntk.common.sources.tables.frames import FrameSource
from dpntk.common.sources.tables.table import TableSource
from dpntk.embed import SourceOptions, TangentOptions, draft_schema, embed
from dpntk.embed.inference.schema import ANY_MISSING
from dpntk.generate.tables.rows.dataframe import to_dataframe
from dpntk.generate.tables.sampling import to_table
from tests.conftest import Command


@pytest.mark.parametrize(
    ("gaps", "said"),
    [
        (("NA",), "missing values are written NA there, and '' in generated files: draft with "
         "--missing NA, or"),
        (("nan", "NA"), "draft with --missing NA --missing nan, or"),
        (("NA", ""), ""),
        ((), ""),
    ],
)  # fmt: skip
def test_how_missing_values_are_written_is_said_and_not_drafted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gaps: tuple[str, ...], said: str
) -> None:
    """One row may decide it, so it is for the owner to write it into a schema that goes out."""
    numbers = [*map(str, range(30)), *gaps]
    table = tmp_path / "a.csv"
    # A column that is left out is not generated.
    table.write_text(
        "x,y\n" + "".join(f"{x},{('NULL', f't{i}')[i > 0]}\n" for i, x in enumerate(numbers))
    )
    draft = draft_schema(table)
    assert draft.schema.left_out == ("y",)
    assert draft.schema.csv.missing[0] == ""
    notices = capsys.readouterr().err
    assert said in notices
    assert ("missing values are written" in notices) == bool(said)


def test_why_columns_are_left_out_is_said_of_each_kind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    days = pa.array(range(30), pa.int64())
    columns = {
        "age": days,
        "name": [f"p{number}" for number in range(30)],
        "zoned": days.cast(pa.timestamp("us", "UTC")),
        "other": days.cast(pa.timestamp("ms", "+02:00")),
        "nothing": pa.nulls(30),
        "none": pa.nulls(30, pa.float64()),
        "once": pa.array([0] * 30, pa.timestamp("us")),
        "tags": pa.array([["a"]] * 30),
        "pay": [f"{number},5" for number in range(30)],
    }
    draft = draft_schema(pa.table(columns))
    assert draft.schema.left_out == tuple(list(columns)[1:])
    said = capsys.readouterr().err
    for reason, names in (
        ("durations, nor a few texts", "name, tags, pay"),
        ("time zone (store those of one zone without it)", "zoned, other"),
        ("no row has a value", "nothing, none"),
        ("all dates, times or durations in them are the same", "once"),
    ):
        assert f"{reason}: {names}\n" in said


def test_a_table_without_rows_is_refused_as_that(tmp_path: Path) -> None:
    (tmp_path / "header.csv").write_text("age,ill\n")
    for nothing in (tmp_path / "header.csv", pa.table({"age": pa.array([], pa.int64())})):
        with pytest.raises(DataError, match="there are no records in it"):
            draft_schema(nothing)
    assert draft_schema(pa.table({"age": [1, 2], "none": pa.nulls(2)})).schema.left_out == ("none",)
    with pytest.raises(SchemaError, match="no column has numbers"):
        draft_schema(pa.table({"none": pa.nulls(2)}))


def test_columns_may_be_chosen_by_an_index_beside_a_unit() -> None:
    visits = pd.DataFrame({"who": [1, 1, 2, 2], "age": [30, 31, 40, 41], "pay": [1, 2, 3, 4]})
    unit = PrivacyUnit("who", rows=2)
    draft = draft_schema(visits, columns=visits.columns[1:2], privacy_unit=unit)
    assert [column.name for column in draft.schema.columns] == ["age"]


def test_what_may_be_an_identifier_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    rank = np.random.default_rng(0).permutation(40_000) + 1  # in several batches
    again = rank.copy()
    again[-1] = again[0]
    columns = {"rank": rank, "again": again, "pay": rank / 4}
    draft = draft_schema(pa.table(columns))
    said = capsys.readouterr().err
    assert "rank: every row has another number: if it is an identifier" in said
    assert said.count("every row") == 1
    assert draft.schema.left_out == ()  # which is for the owner to say
    draft_schema(pa.table({"age": range(20)}))
    draft_schema(pa.table({"age": [None, *range(100), 0]}))
    assert "every row" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("patient_id", [1, 2, 2, 3], True),
        ("id", [10, 20, 10, 30] * 100, True),
        ("patientID", [*map(str, range(600)), "7"], True),
        ("Tuna.id", [None, 1, 1, 2], True),
        ("patient_id", [1, 2, 3, 4], False),
        ("id", ["a", "b", "c", "d"], False),
        ("paid", [1, 2, 2, 3], False),
        ("idle", [1, 2, 2, 3], False),
    ],
)
def test_rows_of_one_person_are_said_to_need_a_unit(
    capsys: pytest.CaptureFixture[str], name: str, values: list[object], said: bool
) -> None:
    draft_schema(pa.table({"pay": np.arange(len(values)) % 3, name: values}))
    assert (
        f"'dpntk embed --unit {name}' protects them together" in capsys.readouterr().err
    ) == said


@pytest.mark.parametrize(
    ("classes", "rows", "said"),
    [
        (15, 1_499, "x: 15 classes for 1,499 rows: rare ones will be noise"),
        (15, 1_500, ""),
        (2, 30, ""),
    ],
)
def test_a_label_with_many_classes_is_said(
    capsys: pytest.CaptureFixture[str], classes: int, rows: int, said: str
) -> None:
    labels = [f"c{number % classes}" for number in range(rows)]
    draft_schema(pa.table({"x": labels, "y": np.zeros(rows)}), "x")
    found = capsys.readouterr().err
    assert said in found
    assert ("classes" in found) == bool(said)


def test_a_label_that_is_missing_in_some_rows_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "a.csv"
    table.write_text("x,lg\n" + "".join(f"{i},{('AL', 'NL', 'NA')[i % 3]}\n" for i in range(30)))
    draft_schema(table, "lg")
    assert "lg: without a value in 10 rows, and a record needs a label" in capsys.readouterr().err
    draft_schema(table)
    assert "lg" not in capsys.readouterr().err

    (folder := tmp_path / "parts").mkdir()
    for name, labels in (("a", pa.nulls(7)), ("b", pa.array(["u", "v", None]))):
        rows = {"x": pa.array(range(len(labels))), "lg": labels}
        parquet.write_table(pa.table(rows), folder / f"{name}.parquet")
    draft_schema(folder, "lg")
    assert "lg: without a value in 8 rows" in capsys.readouterr().err


def _drafted(tmp_path: Path, values: list[str], form: CsvFormat = ANY_MISSING) -> Draft:
    table = tmp_path / "codes.csv"
    rows = (f'{number},"{value}"\n' for number, value in enumerate(values))
    table.write_text("n,x\n" + "".join(rows))
    return draft_schema(table, csv=form)


def test_codes_with_zeros_before_them_are_texts(tmp_path: Path) -> None:
    """As numbers they would lose the zeros, and there would be codes between them."""
    postal = ["01067", "80331", "", "10115"] * 50
    (column,) = _drafted(tmp_path, postal).schema.columns[1:]
    assert (column.kind, column.dtype) == (ColumnKind.CATEGORICAL, "string")
    assert column.categories == ("01067", "10115", "80331")
    assert column.missing is Missing.CATEGORY
    for numbers in (["0", "10", "5"], ["01.5", "2", "3"], ["0.5", "00.25", "1"]):
        (column,) = _drafted(tmp_path, numbers * 50).schema.columns[1:]
        assert column.kind.numeric


def test_codes_that_are_too_many_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draft = _drafted(tmp_path, [f"{number:05d}" for number in range(40_000)])
    assert draft.schema.left_out == ("x",)
    assert not draft.left_out_confirmed
    assert "with zeros before them, and are too many to list" in capsys.readouterr().err


def test_numbers_with_texts_beside_them_are_no_categories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The draft would list every measurement as a category."""
    measured = [f"{0.5 + number / 100:.2f}" for number in range(60)] * 3 + ["<0.5"] * 50
    assert _drafted(tmp_path, measured).schema.left_out == ("x",)
    said = capsys.readouterr().err
    assert "hold many numbers and a few texts" in said
    assert "name them with missing, and all others" in said
    (column,) = _drafted(tmp_path, measured, CsvFormat(missing=("<0.5",))).schema.columns[1:]
    assert (column.lower, column.upper, column.decimals) == (0.5, 1.09, 2)
    assert column.missing is Missing.INDICATOR
    (column,) = _drafted(tmp_path, [*map(str, range(18, 65)), "65+"] * 3).schema.columns[1:]
    assert column.kind is ColumnKind.CATEGORICAL


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["1/9/23", "12/30/99", "3/2/23 6:39 PM"], "dates with a year of two digits"),
        (["02.05.23", "31.12.99"], "dates with a year of two digits"),
        (["3/2/2023 6:39 PM", "1/28/2023 11:12 a.m."], "times with AM and PM"),
        (["42,953", "68,016"], "decimal=','; if it is between thousands, write 12345 for 12,345)"),
        (["42,95", "68,016"], "with a decimal comma (if they are, say decimal=',')"),
    ],
)
def test_what_a_person_reads_otherwise_is_no_category(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], values: list[str], said: str
) -> None:
    assert _drafted(tmp_path, values * 9).schema.left_out == ("x",)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("values", [["45.13.20", "1.2.34"], ["6:39 PMs", "7:00 PM"], ["1-2-345"]])
def test_codes_that_are_only_like_dates_stay_categories(tmp_path: Path, values: list[str]) -> None:
    (column,) = _drafted(tmp_path, [*values, "x", "y"] * 9).schema.columns[1:]
    assert column.kind is ColumnKind.CATEGORICAL


def test_thousands_that_are_read_as_fractions_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    form, note = CsvFormat(decimal=","), "every number has three digits behind its comma"
    thousands = ["42,953", "68,016", "10,001"]
    for values, said in ((thousands, True), ([*thousands, "68,01"], False)):
        _drafted(tmp_path, values * 9, form)
        assert (note in capsys.readouterr().err) == said


@pytest.mark.parametrize("written", ["1,{:03d}.50", "${:d}", "{:d} %", "{:d}'000"])
def test_numbers_with_signs_in_them_are_no_categories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], written: str
) -> None:
    amounts = [written.format(number) for number in range(60)] * 3
    assert _drafted(tmp_path, amounts).schema.left_out == ("x",)
    assert "look like numbers with signs in them" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([250, 3_000, 4_100, 99_999], True),
        ([-1, 0, 20, 40], True),
        ([-9, 1, 2, 3], True),
        ([18, 60, 75, 99], False),
        ([-20, -1, 0, 20], False),
        ([-1, 0.5], False),
        ([-2, 0, 1, 3], False),
        ([0, 10, 500, 9_999.5], False),
        ([1, 2, 3, 4, 5, 98, 99], True),
        ([1, 2, 3, 997, 998, 999], True),
        ([90, 92, 95, 98, 99], False),
        ([1, 2, 50, 98, 99], False),
    ],
)
def test_a_number_that_may_stand_for_a_missing_value_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], values: list[float], said: bool
) -> None:
    _drafted(tmp_path, [*map(str, values)] * 9_000)  # in several blocks
    found = capsys.readouterr().err
    assert ("looks like a code, as 999 and -1 are" in found) == said
    assert "99999" not in found


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (range(3_000, 9_000, 23), True),  # as merchants' categories
        (range(3_000, 9_000, 173), False),  # so few that they are listed
        (range(200, 900), False),  # all of them
        (range(1_000, 9_000, 100), False),  # multiples of a step
        (range(3, 9_000, 23), False),  # of one digit or four
        (range(18, 99, 4), False),  # ages
    ],
)
def test_whole_numbers_that_may_be_codes_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], values: range, said: bool
) -> None:
    """Rows that are put together from cells of numbers would have any code between them."""
    _drafted(tmp_path, [*map(str, values)] * 12)
    found = " ".join(capsys.readouterr().err.split())
    assert ("if they are codes, list them as categories" in found) == said
    _drafted(tmp_path, [*map(str, values)])  # each only once
    assert "if they are codes" not in " ".join(capsys.readouterr().err.split())


def test_a_number_that_stands_for_a_missing_value_does_so_however_it_is_stored(
    tmp_path: Path,
) -> None:
    form = CsvFormat(missing=("-9",))
    numbers = [float(number) for number in range(40)] + [-9.0]
    texts = _drafted(tmp_path, [*map(str, numbers)], form)
    for draft in (texts, draft_schema(pa.table({"n": numbers, "x": numbers}), csv=form)):
        column = draft.schema.by_name["x"]
        assert (column.lower, column.missing) == (0, Missing.INDICATOR)


def test_an_ordered_type_says_all_categories_in_their_order() -> None:
    levels = ["none", "mild", "severe", "fatal"]
    codes = pa.array([1, 0, None, 2, 1] * 8, pa.int8())
    ordered = pa.DictionaryArray.from_arrays(codes, levels, ordered=True)
    draft = draft_schema(pa.table({"x": ordered, "y": pa.array(range(40))}))
    column = draft.schema.by_name["x"]
    assert (column.kind, column.categories) == (ColumnKind.ORDINAL, tuple(levels))
    assert column.missing is Missing.CATEGORY
    assert "x" in draft.unconfirmed
    assert draft.schema.from_data

    other = pa.DictionaryArray.from_arrays(codes, [*levels[1:], "none"], ordered=True)
    plain = pa.DictionaryArray.from_arrays(codes, levels)
    for parts in ([ordered, other], [plain]):
        table = pa.table({"x": pa.chunked_array(parts), "y": pa.array(range(40 * len(parts)))})
        assert draft_schema(table).schema.by_name["x"].kind is ColumnKind.CATEGORICAL


def test_bounds_of_single_precision_hold_what_is_stored(capsys: pytest.CaptureFixture[str]) -> None:
    values = np.array([-3.2389345, 0.1, 3.9455497], dtype=np.float32)
    halves = np.array([0.5, 0.1, 0.3], dtype=np.float32)
    table = pa.table({"x": values, "tenths": halves})
    schema = draft_schema(table).settled(accept_from_data=True)
    x, tenths = schema.columns
    assert (x.lower, x.upper) == (float(values[0]), float(values[2]))
    assert (tenths.lower, tenths.upper, tenths.decimals) == (0.1, 0.5, 1)
    capsys.readouterr()
    embed(table, TangentOptions(width=20), SourceOptions(schema=schema))
    assert "beyond its bounds" not in capsys.readouterr().err


def test_numbers_with_a_mean_below_a_tenth_of_the_range_are_on_a_logarithmic_scale() -> None:
    for mean, scale in ((90, Transform.LOG1P), (110, Transform.NONE)):
        numbers = np.r_[np.full(999, (1000 * mean - 1000) / 999), 1000.0, 0.0]
        assert numbers.mean() == pytest.approx(mean, abs=1)
        (column,) = draft_schema(pa.table({"x": numbers})).schema.columns
        assert column.transform is scale


def test_errors_of_what_computed_numbers_are_no_decimals(tmp_path: Path) -> None:
    """One such number made a draft say that rows have 16 digits, and bounds nobody would write."""
    tenths = [0.1 + 0.2, *(number / 10 for number in range(3, 60)), 2 * 3.35 - 1e-15]
    assert str(tenths[0]) == "0.30000000000000004"
    (column,) = _drafted(tmp_path, [*map(repr, tenths)] * 2).schema.columns[1:]
    assert (column.lower, column.upper, column.decimals) == (0.3, 6.7, 1)
    (column,) = draft_schema(
        pa.table({"x": [-3 * 0.7 * number for number in range(9)]})
    ).schema.columns
    assert (column.lower, column.upper, column.decimals) == (-16.8, 0.0, 1)
    (column,) = _drafted(tmp_path, ["0.25", "1.75", "1.7500001"] * 9).schema.columns[1:]
    assert (column.upper, column.decimals, column.step) == (1.7500001, None, None)


def test_categories_that_may_be_the_same_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _drafted(tmp_path, ["PASS", "Pass ", "FAIL"] * 9)
    assert "x: some categories differ by capitals or blanks alone" in capsys.readouterr().err
    _drafted(tmp_path, ["PASS", "FAIL", "pas s"] * 9)
    assert "capitals" not in capsys.readouterr().err


@pytest.mark.parametrize("held", [False, True])
def test_whose_rows_are_protected_together_is_drafted_unread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], held: bool
) -> None:
    columns = {"pay": [*range(40)], "patient_id": [1, 1] * 20, "sex": ["f", "m"] * 20}
    table = tmp_path / "a.parquet"
    parquet.write_table(pa.table(columns), table)
    unit = PrivacyUnit("patient_id", rows=2)
    draft = draft_schema(pa.table(columns) if held else table, "sex", privacy_unit=unit)
    assert draft.schema.privacy_unit == unit
    assert draft.schema.left_out == ("patient_id",)
    assert draft.left_out_confirmed  # the owner has said so, and not the data
    assert draft.unconfirmed == ("pay", "sex")
    assert "patient_id" not in capsys.readouterr().err
    assert Draft.from_toml(draft.to_toml(), "a").stated == draft.stated
    for label, chosen, said in (
        ("patient_id", None, "so it is in no record"),
        (None, ["pay", "patient_id"], "so it is in no record"),
    ):
        with pytest.raises(SchemaError, match=said):
            draft_schema(table, label, columns=chosen, privacy_unit=unit)
    with pytest.raises(SchemaError, match=r"privacy_unit='person': .* has no such column"):
        draft_schema(table, privacy_unit=PrivacyUnit("person", 2))


def test_a_drafted_unit_is_embedded_without_an_option(dpntk: Command, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("who,x\n" + "".join(f"{n // 3},{n}\n" for n in range(60)))
    said = dpntk("schema", "a.csv", "--unit", "who")
    assert said.code == 1
    assert "--unit who: declare with --rows-per-unit" in said.stderr
    assert not (tmp_path / "schema.toml").exists()
    assert dpntk("schema", "a.csv", "--unit", "who", "--rows-per-unit", 2).code == 0
    embedded = dpntk("embed", "a.csv", "--schema", "schema.toml", "--accept-from-data")
    assert "embedded 40 rows" in embedded.stderr
    assert "--adjacency add-remove" in embedded.stderr


def test_texts_for_missing_values_take_the_place_of_the_usual_ones(
    dpntk: Command, tmp_path: Path
) -> None:
    """So the empty text becomes a category, which help and notices say beforehand."""
    table = tmp_path / "a.csv"
    table.write_text("hours,job\n" + "40,a\n20,b\n-1,\n30,c\n" * 9)
    assert "and replaces the default" in " ".join(dpntk("schema", "--help").stdout.split())
    said = dpntk("schema", table).stderr
    assert "name it with --missing, and all other texts that do" in said
    for texts, categories in ((("-1",), 4), (("-1", ""), 3)):
        form = CsvFormat(missing=texts)
        assert len(draft_schema(table, csv=form).schema.by_name["job"].categories) == categories
        assert draft_schema(table, csv=form).schema.by_name["hours"].lower == 20


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("kept_in", ["pandas", "parquet", "arrow"])
def test_times_of_all_units_and_views_of_texts_are_drafted(
    kept_in: str, unit: str, tmp_path: Path
) -> None:
    at = pa.array([-3_599, 3_600, None, 7_201], pa.int64()).cast("timestamp[s]")
    town = pa.array(["Ulm", "Bonn", None, "Ulm"], pa.string_view())
    data: Any = pa.table({"at": at.cast(f"timestamp[{unit}]"), "town": town})
    stored = unit
    if kept_in == "pandas":
        data = pd.DataFrame(
            {
                "at": data.column("at").to_pandas(),
                "town": pd.Series(town, dtype=pd.ArrowDtype(pa.string_view())),
            }
        )
        assert data["at"].dtype == f"M8[{unit}]"
    elif kept_in == "parquet":
        parquet.write_table(data, tmp_path / "a.parquet")
        data = tmp_path / "a.parquet"
        stored = "ms" if unit == "s" else unit  # Parquet has no seconds
    schema = draft_schema(data, csv=CsvFormat()).schema
    assert schema.left_out == ()
    seen, towns = schema.columns
    assert (seen.dtype, seen.unit, seen.lower, seen.upper) == (
        f"timestamp[{stored}]", None, -3_599, 7_201,
    )  # fmt: skip
    assert (towns.dtype, towns.categories) == ("string", ("Bonn", "Ulm"))
    source = (
        TableSource.open(data, schema) if kept_in == "parquet" else FrameSource.open(data, schema)
    )
    (batch,) = source.batches(9)
    values = source.values()
    assert np.array_equal(values["at"], [-3_599, 3_600, np.nan, 7_201], equal_nan=True)
    assert values["town"].tolist() == [1, 0, -1, 1]
    made = to_dataframe(
        to_table(schema, (batch.records / 255).astype(np.float32), batch.labels), schema
    )
    assert made["at"].dtype == f"M8[{stored}]"


def test_times_beyond_the_calendar_are_not_taken_for_others() -> None:
    """In seconds a column holds times that no number of microseconds does."""
    at = pa.array([0, 2**62, 2**61]).cast("timestamp[s]")
    schema = draft_schema(pa.table({"at": at, "x": pa.array([1, 2, 4])}), csv=CsvFormat()).schema
    assert schema.left_out == ("at",)


def test_categories_are_drafted_in_one_order_whatever_their_texts_could_be() -> None:
    """Neither nan, which has no place among numbers, nor 1_000, which Python takes for one."""
    texts = ["Nan", "b", "10", "9", "1_000", "inf", "a"]
    orders = set()
    for first in range(len(texts)):
        some = texts[first:] + texts[:first]
        (column,) = draft_schema(pd.DataFrame({"x": some * 12})).schema.columns
        orders.add(column.categories)
    assert orders == {("9", "10", "1_000", "Nan", "a", "b", "inf")}


def test_a_step_that_may_be_chance_is_not_drafted() -> None:
    """The last digits of three numbers are even by chance once in eight tables."""
    for even, step in ((3, None), (9, 0.02)):
        numbers = np.arange(100.0, 200.0)
        numbers[:even] += 0.02 * np.arange(1, even + 1)
        (column,) = draft_schema(pd.DataFrame({"x": numbers})).schema.columns
        assert column.step == step


@pytest.mark.parametrize("levels", [[3, 1, 2], [0.5, 0.25, 2.0]])
def test_ordered_numbers_keep_the_order_of_their_type(levels: list[float]) -> None:
    values = pd.Categorical(levels * 12, categories=levels, ordered=True)
    frame = pd.DataFrame({"x": values, "y": range(36)})
    draft = draft_schema(frame)
    column = draft.schema.by_name["x"]
    assert column.kind is ColumnKind.ORDINAL
    assert [float(text) for text in column.categories] == levels
    source = FrameSource.open(frame, draft.settled(accept_from_data=True))
    assert source.values()["x"][:3].tolist() == [0, 1, 2]


def test_floats_of_16_bits_are_drafted_as_they_are_read() -> None:
    frame = pd.DataFrame({"x": (np.arange(60) / 8).astype(np.float16), "y": range(60)})
    draft = draft_schema(frame)
    column = draft.schema.by_name["x"]
    assert (column.kind, column.dtype, column.lower) == (ColumnKind.CONTINUOUS, "float32", 0.0)
    source = FrameSource.open(frame, draft.settled(accept_from_data=True))
    assert source.values()["x"].tolist() == frame.x.tolist()


def test_a_column_with_an_infinite_number_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    many = np.append(np.random.default_rng(0).random(600), -np.inf)
    frame = pd.DataFrame({"x": [1.5] * 600 + [np.inf], "y": range(601), "z": many})
    assert draft_schema(frame).schema.left_out == ("x", "z")
    assert "they hold infinite numbers" in capsys.readouterr().err
