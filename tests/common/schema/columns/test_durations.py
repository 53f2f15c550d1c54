"""Durations: read, written, bounded, and refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from dpntk.common.errors import DataError, SchemaError
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.durations import LONGEST, DurationFormat, seconds_of_duration
from dpntk.common.schema.columns.kinds import ColumnKind
from dpntk.common.schema.csv_format import CsvFormat
from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources.tables.table import TableSource
from dpntk.embed.inference.schema import draft_schema
from dpntk.generate.tables.rows.texts import texts_of
from dpntk.generate.tables.rows.values import table_of

DAY = 86_400
STAY = Column.from_json(
    {"name": "stay", "kind": "duration", "dtype": "duration[ms]", "unit": "hour",
     "lower": "PT0S", "upper": "P60D", "missing": "indicator", "transform": "log1p"}
)  # fmt: skip
SCAN = Column.from_json(
    {"name": "scan", "kind": "duration", "dtype": "string", "format": "%H:%M:%S",
     "lower": "-PT1H", "upper": "PT100H"}
)  # fmt: skip
SCHEMA = TableSchema((STAY, SCAN))
CSV = """stay,scan
P3DT4H59M59S,99:59:59
,-0:30:00
P1000D,00:00:01
"""


@pytest.mark.parametrize(
    ("form", "text", "wanted"),
    [
        ("", "P3DT4H", 3 * DAY + 4 * 3600),
        ("", "P2W", 14 * DAY),
        ("", "-PT1M30.9S", -90),
        ("", "PT36H", 36 * 3600),
        ("", " P0D ", 0),
        ("", "P", None),
        ("", "PT", None),
        ("", "P1M", None),
        ("", "P1Y", None),
        ("", "3 days", None),
        ("%H:%M:%S", "49:00:01", 49 * 3600 + 1),
        ("%H:%M:%S", "-1:02:03", -3723),
        ("%H:%M:%S", "1:60:00", None),
        ("%H:%M:%S", "1:00:60", None),
        ("%H:%M:%S", "1:00", None),
        ("%H:%M:%S", "1:00:00.5", None),
        ("%H:%M:%S.%f", "1:00:00.987654321", 3600),
        ("%d days %H:%M:%S", "3 days 04:00:00", 3 * DAY + 4 * 3600),
        ("%d days %H:%M:%S", "3 days 24:00:00", None),
        ("%M min", "90 min", 5400),
    ],
)
def test_texts_are_durations_or_none(form: str, text: str, wanted: int | None) -> None:
    (found,) = DurationFormat(form).parse(pa.array([text]))
    assert np.isnan(found) if wanted is None else found == wanted


@given(st.lists(st.integers(-LONGEST, LONGEST), max_size=5))
def test_what_is_written_is_read(seconds: list[int]) -> None:
    for text in ("", "%H:%M:%S.%f", "%d days %H:%M:%S", "%M'%S''"):
        form = DurationFormat(text)
        written = form.write(np.array(seconds, dtype=np.int64))
        assert np.array_equal(form.parse(pa.array(written, pa.string())), seconds)
        if not text:
            assert [seconds_of_duration(one) for one in written] == seconds


@pytest.mark.parametrize("text", ["%Y", "%H:%S", "%M:%H", "%f", "hours", "%", "%H" * 2, "x" * 41])
def test_formats_that_are_none(text: str) -> None:
    with pytest.raises(SchemaError, match="format"):
        DurationFormat(text)


def test_a_table_is_read_and_comes_back(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    found = TableSource.open(tmp_path / "a.csv", SCHEMA).values()
    np.testing.assert_array_equal(found["stay"], [76, np.nan, 1440])
    np.testing.assert_array_equal(found["scan"], [359_999, -1800, 1])
    table = table_of(SCHEMA, found)
    assert table.schema.field("stay").type == pa.duration("ms")
    assert table.column("scan").to_pylist() == ["99:59:59", "-00:30:00", "00:00:01"]
    assert table.column("stay").to_pandas()[0] == pd.Timedelta(hours=76)
    parquet.write_table(table, tmp_path / "a.parquet")
    again = TableSource.open(tmp_path / "a.parquet", SCHEMA).values()
    for name, values in found.items():
        np.testing.assert_array_equal(again[name], values)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_what_is_finer_is_cut_towards_nothing(tmp_path: Path, unit: str) -> None:
    """From texts and from Arrow's types alike, on both sides of 0."""
    column = Column("d", ColumnKind.DURATION, f"duration[{unit}]", -9, 9)
    seconds = [-3, -2, -1, 0, 1, 2]
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    more = per_second - 1
    parts = [s * per_second + (more if s > 0 else -more if s < 0 else 0) for s in seconds]
    parquet.write_table(pa.table({"d": pa.array(parts, pa.duration(unit))}), tmp_path / "a.parquet")
    found = TableSource.open(tmp_path / "a.parquet", TableSchema((column,))).values()
    np.testing.assert_array_equal(found["d"], seconds)


def test_what_is_no_duration_is_refused_with_its_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("stay,scan\nP1D,1:00:00\n7 days,1:00:00\n")
    expected = r"a\.csv: row 2, column 'stay': the value is not a duration like P3DT4H5M"
    with pytest.raises(DataError, match=expected):
        TableSource.open(tmp_path / "a.csv", SCHEMA).values()


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"lower": "2000-01-01"}, "lower is a duration as in P60D or PT12H30M"),
        ({"lower": 0}, "lower is a duration as in"),
        ({"lower": "PT90M"}, "lower is not a whole hour"),
        ({"upper": "P20000000D"}, "at most 10,000,000 days"),
        ({"dtype": "int64"}, "known are string, duration"),
        ({"dtype": "timestamp[ms]"}, "known are string, duration"),
        ({"dtype": "duration[ns]", "upper": "P200000D"}, "292 years"),
        ({"step": 2}, "no step or decimals"),
        ({"unit": "second", "format": "%H:%M"}, "does not write its unit"),
        ({"format": "%Y"}, "format '%Y'"),
    ],
)
def test_columns_that_cannot_be(entries: dict[str, Any], words: str) -> None:
    document = STAY.to_json() | entries
    with pytest.raises(SchemaError, match=words):
        Column.from_json(document)


def test_json_and_toml_say_the_same(tmp_path: Path) -> None:
    assert STAY.to_json()["upper"] == "P60D"
    assert SCAN.to_json()["lower"] == "-PT1H"
    assert TableSchema.from_json(SCHEMA.to_json()) == SCHEMA
    assert Draft.from_toml(Draft(SCHEMA).to_toml(), "it").schema == SCHEMA


def test_drafts_recognise_durations(tmp_path: Path) -> None:
    hours = np.arange(300) % 90
    frame = pd.DataFrame(
        {
            "clock": [f"{h}:30:00" for h in hours],
            "iso": [f"P{h}D" for h in hours],
            "stored": pd.to_timedelta(hours, unit="h"),
            "days": pd.to_timedelta(hours, unit="D"),
            "name": [f"{h}:x" for h in range(300)],
        }
    )
    frame["pandas"] = frame.stored.astype(str)
    frame.to_csv(tmp_path / "a.csv", index=False)
    drafted = {c.name: c for c in draft_schema(tmp_path / "a.csv").schema.columns}
    assert {name: column.format for name, column in drafted.items()} == {
        "clock": "%H:%M:%S", "iso": "", "stored": "%d days %H:%M:%S", "pandas": "%d days %H:%M:%S",
        "days": "%d days",
    }  # fmt: skip
    assert (drafted["iso"].bound_text(int(drafted["iso"].upper or 0))) == "P89D"
    (tmp_path / "a.csv").unlink()
    frame[["stored"]].to_parquet(tmp_path / "a.parquet")
    (stored,) = draft_schema(tmp_path / "a.parquet").schema.columns
    assert (stored.kind, stored.dtype[:9]) == (ColumnKind.DURATION, "duration[")
    assert stored.seconds == 3600
    assert stored.upper == 89


def test_rules_compare_durations_with_dates_and_days() -> None:
    dates = [
        Column("came", ColumnKind.DATE, "date32", 0, 20_000),
        Column("left", ColumnKind.DATE, "date32", 0, 20_000),
    ]
    schema = TableSchema((*dates, STAY), constraints=("stay = left - came", "stay <= 2.5"))
    values = {"came": [10.0, 10, 10, 10], "left": [12.0, 12, 11, 13], "stay": [48.0, 47, 24, 72]}
    found = {name: np.array(numbers) for name, numbers in values.items()}
    equal, short = (rule.truth(found).fails.tolist() for rule in schema.rules)
    assert equal == [False, True, False, False]
    assert short == [False, False, False, True]


def test_what_is_written_into_csv_files() -> None:
    values = {"stay": np.array([76.0, np.nan]), "scan": np.array([-90.0, 360_000.0])}
    table = table_of(SCHEMA, values)
    written = [texts_of(table.column(c.name), c, CsvFormat()) for c in SCHEMA.columns]
    assert written == [["P3DT4H", ""], ["-00:01:30", "100:00:00"]]
