"""Dates and times: read, written, bounded, and refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from dpntk.common.errors import DataError, SchemaError
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.dates import DateFormat, TimeUnit
from dpntk.common.schema.columns.kinds import ColumnKind, Missing
from dpntk.common.schema.csv_format import CsvFormat
from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources.tables.table import TableSource
from dpntk.embed.inference.schema import draft_schema
from dpntk.generate.tables.sampling import to_table

BORN = Column.from_json(
    {"name": "born", "kind": "date", "dtype": "date32", "format": "%d.%m.%Y",
     "lower": "1900-01-01", "upper": "2030-12-31", "missing": "indicator"}
)  # fmt: skip
SEEN = Column.from_json(
    {"name": "seen", "kind": "datetime", "dtype": "timestamp[us]", "unit": "hour",
     "lower": "2020-01-01T00:00:00", "upper": "2021-01-01"}
)  # fmt: skip
SCHEMA = TableSchema((BORN, SEEN))
CSV = """born,seen
29.02.2000,2020-01-01 00:59:59
,2020-12-31 23:00:00
1.1.1800,2020-03-01 07:30:00
"""


def seconds(text: str) -> float:
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1)).total_seconds()


@pytest.mark.parametrize(
    ("form", "text", "wanted"),
    [
        ("%Y-%m-%d", "2000-02-29", "2000-02-29"),
        ("%Y-%m-%d", "1900-02-29", None),
        ("%Y-%m-%d", "2000-13-01", None),
        ("%Y-%m-%d", "2000-00-01", None),
        ("%Y-%m-%d", "2000-01-00", None),
        ("%Y-%m-%d", "0000-01-01", None),
        ("%Y-%m-%d", "2000-01-01x", None),
        ("%d.%m.%Y", " 1.2.1969 ", "1969-02-01"),
        ("%d %b %Y", "31 DEC 1999", "1999-12-31"),
        ("%d %b %Y", "31 Dez 1999", None),
        ("%Y%m%d", "20240229", "2024-02-29"),
        ("(%Y) %m+%d", "(2024) 02+29", "2024-02-29"),
        ("%Y-%m-%d %H:%M:%S", "1969-12-31 23:59:59", "1969-12-31T23:59:59"),
        ("%Y-%m-%dT%H:%M:%S.%fZ", "2000-01-01T10:00:00.987Z", "2000-01-01T10:00:00"),
        ("%Y-%m-%d %H:%M", "2000-01-01 24:00", None),
        ("%Y-%m-%d %H:%M", "2000-01-01 10:00+02:00", None),
    ],
)
def test_texts_are_dates_or_none(form: str, text: str, wanted: str | None) -> None:
    (found,) = DateFormat(form).parse(pa.array([text]))
    assert np.isnan(found) if wanted is None else found == seconds(wanted)


@given(st.lists(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)), max_size=5))
def test_what_is_written_is_read(times: list[datetime]) -> None:
    whole = [time.replace(microsecond=0) for time in times]
    numbers = np.array([int((t - datetime(1970, 1, 1)) / timedelta(seconds=1)) for t in whole])
    for text in ("%d-%b-%Y %H:%M:%S.%f", "%% %Y/%m/%dT%H:%M:%S"[3:]):
        form = DateFormat(text)
        found = form.parse(pa.array(form.write(numbers.astype(np.int64)), pa.string()))
        assert np.array_equal(found, numbers)


@pytest.mark.parametrize(
    "text", ["", "%Y-%m", "%Y-%m-%d %z", "%Y-%m-%d%", "%Y-%m-%d %Y", "%y-%m-%d", "%Y-%b-%m-%d",
             "%Y-%m-%d %M", "%Y-%m-%d %H:%S", "%Y-%m-%d" + "x" * 40, "%Y-%m-%d\n"],
)  # fmt: skip
def test_other_formats_are_refused(text: str) -> None:
    with pytest.raises(SchemaError, match="format"):
        DateFormat(text)


@pytest.mark.parametrize(
    "change",
    [
        {"lower": "2031-01-01"},
        {"lower": "yesterday"},
        {"lower": "1900-01-01T10:00:00"},
        {"lower": "1900-01-01T00:00:00+01:00"},
        {"lower": 0},
        {"dtype": "timestamp[us]"},
        {"dtype": "int64"},
        {"unit": "hour"},
        {"unit": "fortnight"},
        {"step": 2},
        {"decimals": 1},
        {"transform": "log1p"},
        {"missing": "category"},
        {"format": "%d.%m.%Y %H:%M"},
        {"format": 3},
        {"categories": ["a"]},
    ],
)
def test_other_columns_of_dates_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match="column 'born'"):
        Column.from_json({**BORN.to_json(), **change})
    with pytest.raises(SchemaError, match="column 'seen': lower is not a whole hour"):
        Column.from_json({**SEEN.to_json(), "lower": "2020-01-01T00:30:00"})
    with pytest.raises(SchemaError, match="years 1678 to 2261"):
        Column.from_json({**SEEN.to_json(), "dtype": "timestamp[ns]", "upper": "2300-01-01"})


def test_json_and_toml_give_back_dates() -> None:
    assert TableSchema.from_json(SCHEMA.to_json()) == SCHEMA
    text = Draft(SCHEMA).to_toml()
    assert 'lower = "1900-01-01"\n' in text
    assert Draft.from_toml(text, "it").schema == SCHEMA
    of_toml = text.replace('"1900-01-01"', "1900-01-01").replace(
        '"2020-01-01T00:00:00"', "2020-01-01T00:00:00"
    )
    assert Draft.from_toml(of_toml, "it").schema == SCHEMA
    private = text.replace('lower = "1900-01-01"\nupper = "2030-12-31"', 'bounds = "private"')
    with pytest.raises(
        SchemaError, match='columns with bounds = "private" are numeric, and no dates'
    ):
        Draft.from_toml(private, "it")


def values(path: Path, schema: TableSchema = SCHEMA) -> dict[str, list[float]]:
    return {name: v.tolist() for name, v in TableSource.open(path, schema).values().items()}


def test_dates_are_steps_and_come_back_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    read = values(tmp_path / "a.csv")
    days = np.array([seconds("2000-02-29") / 86_400, np.nan, BORN.lower], dtype=float)  # clipped
    hours = [seconds(f"2020-{text}:00") / 3600 for text in ("01-01T00", "12-31T23", "03-01T07")]
    assert np.array_equal(read["born"], days, equal_nan=True)
    assert read["seen"] == hours

    stored = pa.table(
        {
            "born": pa.array([datetime(2000, 2, 29), None, datetime(1800, 1, 1)]).cast("date32"),
            "seen": pa.array([int(3600 * h) * 10**6 + 5 for h in hours]).cast("timestamp[us]"),
        }
    )
    parquet.write_table(stored, tmp_path / "a.parquet")
    assert np.array_equal(values(tmp_path / "a.parquet")["born"], days, equal_nan=True)
    assert values(tmp_path / "a.parquet")["seen"] == hours

    source = TableSource.open(tmp_path / "a.csv", SCHEMA)
    (batch,) = source.batches(9)
    made = to_table(SCHEMA, (batch.records / 255).astype(np.float32), batch.labels)
    assert [str(kind) for kind in made.schema.types] == ["date32[day]", "timestamp[us]"]
    assert made.column("born").to_pylist()[1] is None
    made_hours = made.column("seen").cast("int64").to_numpy() / 3600e6
    assert np.abs(made_hours - hours).max() < 8784 / 255
    assert np.array_equal(made_hours, np.rint(made_hours))
    texts = replace(SEEN, dtype="string", unit=TimeUnit.DAY, lower=18262, upper=18628)
    as_texts = to_table(TableSchema((texts,)), np.full((1, 21), 0, np.float32), batch.labels[:1])
    assert as_texts.column("seen").to_pylist() == ["2020-01-01 00:00:00"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("29.02.2000", "30.02.2000", "row 1, column 'born': the value is not a date like 31.01.19"),
        ("29.02.2000", "2000-02-29", "row 1, column 'born': the value is not a date like"),
        ("07:30", "27:30", "row 3, column 'seen': the value is not a datetime like 1970-01-31 12:"),
        ("2020-12-31 23:00:00", "", "row 2, column 'seen': there is no value: .*indicator"),
    ],
)
def test_what_is_no_date_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(CSV.replace(old, new))
    with pytest.raises(DataError, match=f"a.csv: {message}") as caught:
        values(tmp_path / "a.csv")
    assert not new or new not in str(caught.value)  # which is told to nobody but the owner
    assert caught.value.value is None or caught.value.value.count(new)


def test_times_before_1970_are_cut_to_the_step_before(tmp_path: Path) -> None:
    moment = replace(SEEN, unit=None, lower=-100, upper=100)
    times = pa.array([-1, -1_000_000, -1_000_001, 999_999]).cast(pa.timestamp("us"))
    parquet.write_table(pa.table({"seen": times}), tmp_path / "a.parquet")
    assert values(tmp_path / "a.parquet", TableSchema((moment,)))["seen"] == [-1, -1, -2, 0]


def test_time_zones_are_refused(tmp_path: Path) -> None:
    times = pa.array([0, 1]).cast(pa.timestamp("s", tz="UTC"))
    parquet.write_table(pa.table({"seen": times}), tmp_path / "a.parquet")
    with pytest.raises(
        SchemaError, match="column 'seen' has a time zone: store the times without one"
    ):
        values(tmp_path / "a.parquet", TableSchema((SEEN,)))
    parquet.write_table(pa.table({"seen": times, "n": [1, 2]}), tmp_path / "b.parquet")
    drafted = draft_schema(tmp_path / "b.parquet", csv=CsvFormat())
    assert drafted.schema.left_out == ("seen",)


def test_the_draft_recognises_dates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        f"{d}.02.2001,{d:02}/0{1 + d % 9}/2001,2001-02-{d:02} 0{d % 10}:30,0{d} Feb 2001,{d}"
        for d in range(1, 10)
    ]
    (tmp_path / "a.csv").write_text("\n".join(["born,us,seen,made,n", *rows, ",,,,3"]) + "\n")
    columns = draft_schema(tmp_path / "a.csv", csv=CsvFormat()).schema.columns
    assert [(c.kind, c.dtype, c.format, c.unit) for c in columns[:4]] == [
        (ColumnKind.DATE, "date32", "%d.%m.%Y", None),
        (ColumnKind.DATE, "date32", "%d/%m/%Y", None),
        (ColumnKind.DATETIME, "timestamp[ms]", "%Y-%m-%d %H:%M", TimeUnit.MINUTE),
        (ColumnKind.DATE, "date32", "%d %b %Y", None),
    ]
    assert columns[0].to_json()["lower"] == "2001-02-01"
    assert columns[0].missing is Missing.INDICATOR
    assert "us: day or month first? The draft says %d/%m/%Y" in capsys.readouterr().err
    # The first and the last day are the same ones in either order.
    ends = ["01/01/2001", "02/05/2001", "12/12/2001"]
    (tmp_path / "a.csv").write_text("\n".join(["us,n", *(f"{end},1" for end in ends)]) + "\n")
    draft_schema(tmp_path / "a.csv", csv=CsvFormat())
    assert "us: day or month first?" in capsys.readouterr().err

    times = pa.array([0, 3_600_000, 7_200_000]).cast("timestamp[ms]")
    stored = pa.table({"born": pa.array([0, 5, 9]).cast("int32").cast("date32"), "at": times})
    parquet.write_table(stored, tmp_path / "a.parquet")
    born, at = draft_schema(tmp_path / "a.parquet", csv=CsvFormat()).schema.columns
    assert (born.dtype, born.lower, born.upper) == ("date32", 0, 9)
    assert (at.dtype, at.unit, at.upper) == ("timestamp[ms]", TimeUnit.HOUR, 2)
