"""The time between two dates is a column that no file holds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpntk.common.errors import DataError, SchemaError
from dpntk.common.schema.columns.dates import TimeUnit
from dpntk.common.schema.columns.kinds import Missing
from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.schema.drafts.private_bounds import approx_bounds_schema
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import (
    Column,
    PrivacyUnit,
    TableSchema,
    TangentOptions,
    draft_schema,
    embed,
    load_embedding,
    save_embedding,
)
from dpntk.evaluate.tables.table import read_real_table
from dpntk.generate import generate
from dpntk.release import PrivacyParameters, release

STAY = Column.duration("stay", "P0D", "P60D", unit="day", between=("begin", "end"))
SCHEMA = TableSchema(
    (
        Column.date("begin", "2020-01-01", "2023-12-31", dtype="string", format="%d.%m.%Y"),
        Column.continuous("bill", 0.0, 60_000.0),
        Column.date("end", "2020-01-01", "2023-12-31", dtype="string", format="%d.%m.%Y"),
        STAY,
    ),
    left_out=("name",),
)


def stays(count: int, seed: int = 0) -> pd.DataFrame:
    """Stays of 0 to 60 days, about 4 on average, whose bills follow from them."""
    random = np.random.default_rng(seed)
    days = random.gamma(1.0, 4.0, count).astype(int).clip(0, 60)
    begin = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 1400, count), "D")
    bill = 900.0 * days + random.uniform(0, 300, count)
    return pd.DataFrame(
        {
            "name": [f"n{number}" for number in range(count)],
            "begin": begin.strftime("%d.%m.%Y"),
            "bill": bill.round(2),
            "end": (begin + pd.to_timedelta(days, "D")).strftime("%d.%m.%Y"),
        }
    )


def days_in(rows: pd.DataFrame) -> pd.Series[float]:
    begin, end = (pd.to_datetime(rows[name], format="%d.%m.%Y") for name in ("begin", "end"))
    return (end - begin).dt.days


def test_stays_come_back_as_long_as_they_were_and_with_their_bills(tmp_path: Path) -> None:
    """Of dates alone, whose cells are weeks wide, neither does."""
    real = stays(4_000)
    save_embedding(embed(real, TangentOptions(width=50), SourceOptions(SCHEMA)), tmp_path / "e.h5")
    release(tmp_path / "e.h5", tmp_path / "r.h5", PrivacyParameters(10.0, 1e-5))
    made = generate(tmp_path / "r.h5", tmp_path / "s").records()
    assert list(made.columns) == ["begin", "bill", "end"]  # as in the data
    days = days_in(made)
    assert days.min() >= 0
    assert abs(days.median() - days_in(real).median()) <= 1
    assert days.corr(made["bill"], method="spearman") > 0.8
    again = read_real_table(tmp_path / "s" / "table.csv", "test", SCHEMA)
    np.testing.assert_array_equal(again.columns["stay"], days)


def test_it_follows_from_the_row_alone_in_files_and_in_memory(tmp_path: Path) -> None:
    rows = stays(50)
    rows.to_csv(tmp_path / "a.csv", index=False)
    rows.to_parquet(tmp_path / "a.parquet", index=False)
    options = SourceOptions(SCHEMA)
    sources = [
        open_source(each, options)
        for each in (rows, tmp_path / "a.csv", tmp_path / "a.parquet", rows.iloc[::-1])
    ]
    first, *others, turned = (
        np.concatenate([batch.records for batch in source.batches(7)]) for source in sources
    )
    for other in others:
        np.testing.assert_array_equal(first, other)
    np.testing.assert_array_equal(first[::-1], turned)
    table = read_real_table(tmp_path / "a.csv", "test", SCHEMA)
    np.testing.assert_array_equal(table.columns["stay"], days_in(rows).clip(0, 60))


def test_a_missing_date_makes_it_missing(tmp_path: Path) -> None:
    columns = [
        Column.from_json({**column.to_json(), "missing": "indicator"})
        for column in SCHEMA.columns[2:]
    ]
    schema = replace(SCHEMA, columns=(*SCHEMA.columns[:2], *columns))
    rows = stays(5)
    rows.loc[2, "end"] = None
    rows.to_csv(tmp_path / "a.csv", index=False)
    read = read_real_table(tmp_path / "a.csv", "test", schema).columns["stay"]
    assert np.isnan(read).tolist() == [False, False, True, False, False]
    with pytest.raises(SchemaError, match="'end' may be missing, so it may be: say missing"):
        replace(SCHEMA, columns=(*SCHEMA.columns[:2], columns[0], STAY))


def test_rules_that_fill_a_date_in_do_not_make_stays_that_nobody_had(tmp_path: Path) -> None:
    """Where both dates are there, a missing time between them would keep no bound."""
    real = stays(400).drop(columns="name")
    left = np.random.default_rng(3).random(400) > 0.3
    real["left"] = np.where(left, "yes", "no")
    real.loc[~left, "end"] = None
    begin, bill, end = SCHEMA.columns[:3]
    missing = Missing.INDICATOR
    schema = TableSchema(
        (begin, bill, replace(end, missing=missing), replace(STAY, missing=missing),
         Column.boolean("left", ["no", "yes"])),
        constraints=("end is missing only if left = no", "if left = no then end is missing"),
    )  # fmt: skip
    save_embedding(embed(real, TangentOptions(width=5), SourceOptions(schema)), tmp_path / "e.h5")
    release(tmp_path / "e.h5", tmp_path / "r.h5", PrivacyParameters(0.5, 1e-5))
    made = generate(tmp_path / "r.h5", tmp_path / "s", count=1_000).records()
    days = days_in(made).dropna()
    assert len(days) > 400
    assert days.between(0, 60).all()


def test_times_have_their_unit(tmp_path: Path) -> None:
    times = [
        Column.datetime(name, "2020-01-01", "2020-12-31T23:59:00", unit="minute")
        for name in ("came", "left")
    ]
    waited = Column.duration("waited", "PT0S", "PT12H", unit="minute", between=("came", "left"))
    rows = pd.DataFrame({"came": ["2020-03-01 22:50:59"], "left": ["2020-03-02 00:10:00"]})
    rows = rows.astype("datetime64[us]")
    rows.to_parquet(tmp_path / "a.parquet")
    schema = TableSchema((*times, waited))
    read = read_real_table(tmp_path / "a.parquet", "test", schema).columns["waited"]
    assert read.tolist() == [80.0]
    hours = Column.duration("waited", "PT0S", "PT12H", unit="hour", between=("came", "left"))
    with pytest.raises(SchemaError, match="'came' has another unit: say unit = \"minute\""):
        TableSchema((*times, hours))


def test_schemas_with_it_are_read_back_and_may_be_in_any_order() -> None:
    made = {"name": "id", "kind": "made", "pattern": "P{number}"}
    entries = [column.to_json() for column in SCHEMA.columns]
    document = {"columns": [entries[3], entries[0], made, entries[1], entries[2]]}
    schema = TableSchema.of_entries(document)
    assert [column.name for column in schema.written] == ["begin", "id", "bill", "end"]
    assert [column.name for column in schema.stored] == ["begin", "bill", "end"]
    assert TableSchema.from_json(json.loads(json.dumps(schema.to_json()))) == schema
    assert Draft.from_toml(Draft(schema).to_toml(), "schema.toml").stated == schema
    assert schema.rule_texts == ("`end` = `begin` + `stay`",)


def test_its_place_among_the_columns_means_nothing(tmp_path: Path) -> None:
    """What is written says it last, so it is last: another order would be of other columns."""
    begin, bill, end, stay = SCHEMA.columns
    first = replace(SCHEMA, columns=(stay, begin, bill, end))
    assert first == SCHEMA
    made = embed(stays(50), TangentOptions(width=5), SourceOptions(first))
    save_embedding(made, tmp_path / "e.h5")
    assert load_embedding(tmp_path / "e.h5").schema == made.schema


def test_it_tells_nobodys_rows() -> None:
    with pytest.raises(SchemaError, match="'stay' is computed from others: no file holds it"):
        SCHEMA.with_privacy_unit(PrivacyUnit("stay", 2))
    with pytest.raises(SchemaError, match="the schema describes no column 'begin'"):
        SCHEMA.with_privacy_unit(PrivacyUnit("begin", 2))


@pytest.mark.parametrize("between", [3, "be", ("begin", 1), (["begin"], ["end"]), ["begin", "end"]])
def test_between_is_a_tuple_of_names(between: object) -> None:
    with pytest.raises(SchemaError, match="between"):
        replace(STAY, between=between)  # type: ignore[arg-type]


def test_names_that_are_too_long_for_a_rule_are_refused_or_passed_over() -> None:
    names = ["a" * 400, "b" * 400]
    ends = [Column.date(name, "2020-01-01", "2023-12-31") for name in names]
    stay = Column.duration("c" * 300, "P0D", "P60D", unit="day", between=(names[0], names[1]))
    with pytest.raises(SchemaError, match="and those of its dates are too long together"):
        TableSchema((*ends, stay))
    rows = stays(500)[["begin", "end"]].apply(pd.to_datetime, format="%d.%m.%Y")
    rows.columns = pd.Index(["a" * 480, "b" * 480])
    drafted = draft_schema(rows, constraints=True).stated
    assert not any(column.between for column in drafted.columns)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"between": ["begin"]}, "between names two other columns"),
        ({"between": ["begin", "begin"]}, "between names two other columns"),
        ({"between": ["stay", "end"]}, "between names two other columns"),
        ({"between": "begin"}, "between is a list of two columns"),
        ({"between": ["begin", "died"]}, "the schema describes no column 'died'"),
        ({"between": ["begin", "bill"]}, "'bill' is continuous, no date or time"),
        ({"unit": "hour", "upper": "P60D"}, "'begin' has another unit: say unit = \"day\""),
        ({"format": "%H"}, "no file holds it, so it has no format|does not write its unit"),
        ({"kind": "integer", "dtype": "int64", "lower": 0, "upper": 60, "unit": None},
         'between is of a duration: kind = "duration"'),
    ],
)  # fmt: skip
def test_what_cannot_be_computed_is_refused(change: dict[str, object], message: str) -> None:
    entries = {**STAY.to_json(), **change}
    entries = {name: value for name, value in entries.items() if value is not None}
    columns = [column.to_json() for column in SCHEMA.columns[:3]]
    with pytest.raises(SchemaError, match=message):
        TableSchema.of_entries({"columns": [*columns, entries]})


def test_bounds_that_no_row_can_keep_are_refused() -> None:
    later = Column.duration("stay", "P2000D", "P3000D", unit="day", between=("begin", "end"))
    with pytest.raises(SchemaError, match=r"no (row|values) between the bounds"):
        replace(SCHEMA, columns=(*SCHEMA.columns[:3], later))


def test_its_bounds_are_not_found_privately() -> None:
    with pytest.raises(SchemaError, match="'stay': computed from others: declare its bounds"):
        approx_bounds_schema(SCHEMA, ["stay"])


def test_data_that_have_such_a_column_are_refused(tmp_path: Path) -> None:
    rows = stays(5)
    rows["stay"] = days_in(rows)
    rows.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises((DataError, SchemaError), match="the schema computes column 5 from others"):
        open_source(tmp_path / "a.csv", SourceOptions(SCHEMA))


def test_it_is_drafted_where_one_date_is_never_before_another() -> None:
    rows = stays(500).drop(columns="name")
    draft = draft_schema(rows, constraints=True)
    stay = draft.stated.by_name["begin to end"]
    assert stay.between == ("begin", "end")
    assert (stay.lower, stay.upper, stay.unit) == (0, days_in(rows).max(), TimeUnit.DAY)
    assert stay.missing is Missing.REFUSED
    assert draft.stated.constraints == ()
    assert "begin to end" in draft.unconfirmed
    rows.loc[3, "end"] = None
    lacking = draft_schema(rows, constraints=True).stated.by_name["begin to end"]
    assert lacking.missing is Missing.INDICATOR
    later = pd.to_datetime(stays(500)["end"], format="%d.%m.%Y")
    many = pd.DataFrame({f"d{n}": later + pd.Timedelta(n, "D") for n in range(5)})
    found = draft_schema(many, constraints=True).stated
    assert sum(bool(column.between) for column in found.columns) <= 5
    rows["nights"] = days_in(rows)
    tied = draft_schema(rows.dropna(), constraints=True).stated
    assert all(not column.between for column in tied.columns)
    assert "end = begin + nights" in tied.constraints or "nights = end - begin" in tied.constraints


def test_a_time_and_a_day_have_no_unit_in_common() -> None:
    """To follow a message that names the unit of one, one would be told that of the other."""
    came = Column.datetime("came", "2020-01-01", "2020-12-31", unit="minute")
    left = Column.date("left", "2020-01-01", "2020-12-31")
    for unit in ("day", "minute"):
        stay = Column.duration("stay", "P0D", "P60D", unit=unit, between=("came", "left"))
        with pytest.raises(SchemaError, match="'came' and 'left' have different units: describe"):
            TableSchema((came, left, stay))
