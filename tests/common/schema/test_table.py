"""What is publicly known of a table: written, read back, and refused when it makes no sense."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import SchemaError
from dpntk.common.ledger import Entry
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind, Missing, Transform
from dpntk.common.schema.csv_format import CsvFormat
from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.schema.drafts.toml import read_schema
from dpntk.common.schema.origin import Origin
from dpntk.common.schema.table import TableSchema
from dpntk.embed.inference.schema import draft_schema

AGE = Column("age", ColumnKind.INTEGER, "int64", 0, 12)
GAIN = Column(
    "gain", ColumnKind.CONTINUOUS, "float64", 0.0, 1e5,
    transform=Transform.LOG1P, missing=Missing.INDICATOR,
)  # fmt: skip
GRADE = Column("grade", ColumnKind.ORDINAL, "string", categories=("low", "mid", "high"))
TOWN = Column(
    'to"wn\n', ColumnKind.CATEGORICAL, "string", categories=("Ulm", "other", ""), other="other",
    missing=Missing.CATEGORY, origin=Origin.FROM_DATA,
)  # fmt: skip
PAID = Column("paid", ColumnKind.BOOLEAN, "bool", categories=("false", "true"))
SCHEMA = TableSchema(
    (AGE, GAIN, GRADE, TOWN, PAID), "paid", ("id",), 7, CsvFormat(";", "latin-1", ("", "NA"))
)


def test_json_and_toml_give_back_the_schema(tmp_path: Path) -> None:
    assert TableSchema.from_json(SCHEMA.to_json()) == SCHEMA
    file = tmp_path / "schema.toml"
    file.write_text(Draft(SCHEMA).to_toml())
    assert read_schema(file) == SCHEMA


def test_lists_of_columns_make_the_same_schema_as_tuples() -> None:
    column, rule = Column.integer("age", 0, 120), "age >= 18"
    from_lists = TableSchema([column], left_out=["name"], constraints=[rule])  # type: ignore[arg-type]
    from_tuples = TableSchema((column,), left_out=("name",), constraints=(rule,))
    assert from_lists == from_tuples
    assert hash(from_lists) == hash(from_tuples)


def test_a_record_has_one_value_for_each_number_bin_and_category() -> None:
    # age: 0..12 are more than 7 bins; gain says that it is missing; grade also says its rank
    assert [SCHEMA.width(column) for column in SCHEMA.features] == [1 + 7, 1 + 7 + 1, 3 + 1, 3 + 1]
    assert SCHEMA.record_size == 25
    few = TableSchema((Column("n", ColumnKind.INTEGER, "int8", 3, 5),))
    assert few.knots(few.columns[0]) == 3
    assert few.classes == ("all",)
    assert SCHEMA.classes == ("false", "true")


def test_what_is_not_confirmed_is_refused_or_marked(tmp_path: Path) -> None:
    file = tmp_path / "schema.toml"
    file.write_text(Draft(SCHEMA, ("age", "grade")).to_toml())
    with pytest.raises(SchemaError, match=r"schema.toml: not confirmed: age, grade: replace"):
        read_schema(file)
    accepted = read_schema(file, accept_from_data=True)
    what = (
        "kinds, types, scales, steps, formats, bounds, categories, and whether values are missing"
    )
    assert accepted.from_data == (f'{what}, of age, grade, to"wn\n',)
    file.write_text(file.read_text().replace("confirmed = false", "confirmed = true"))
    assert read_schema(file) == SCHEMA


def test_columns_that_the_data_left_out_are_confirmed_or_said(tmp_path: Path) -> None:
    file = tmp_path / "schema.toml"
    drafted = Draft(replace(SCHEMA, left_out=("diary",)), left_out_confirmed=False)
    file.write_text(drafted.to_toml())
    assert Draft.from_toml(file.read_text(), "it") == drafted
    with pytest.raises(SchemaError, match=r"not confirmed: the data decided which columns are"):
        read_schema(file)
    accepted = read_schema(file, accept_from_data=True)
    assert accepted.from_data == (*SCHEMA.from_data, "which columns are left out")
    assert TableSchema.from_json(accepted.to_json()) == accepted
    file.write_text(Draft(accepted).to_toml())  # as `dpntk bounds` writes it again
    assert read_schema(file) == accepted
    file.write_text(drafted.to_toml().replace("left_out_confirmed = false", ""))
    assert read_schema(file) == drafted.stated
    assert read_schema(file).from_data == SCHEMA.from_data


def test_names_that_may_be_a_record_are_confirmed_or_said(tmp_path: Path) -> None:
    file = tmp_path / "schema.toml"
    drafted = Draft(SCHEMA, ("age",), names_confirmed=False)
    file.write_text(drafted.to_toml())
    assert Draft.from_toml(file.read_text(), "it") == drafted
    with pytest.raises(SchemaError, match=r"named as a value .* remove 'names_confirmed") as caught:
        read_schema(file)
    assert "age" not in str(caught.value)
    with pytest.raises(SchemaError, match=r"named as a value of theirs could be"):
        replace(drafted, private=("age",)).settled("it")
    with pytest.raises(SchemaError, match=r"named as a value of theirs could be"):
        replace(drafted, private=("age",)).approx_bounds_schema("it")
    accepted = read_schema(file, accept_from_data=True)
    assert accepted.from_data[0] == "names of the columns"
    assert TableSchema.from_json(accepted.to_json()) == accepted
    file.write_text(Draft(accepted).to_toml())  # as `dpntk bounds` writes it again
    assert read_schema(file) == accepted
    file.write_text(drafted.to_toml().replace("names_confirmed = false", "names_confirmed = true"))
    with pytest.raises(SchemaError, match=r"schema.toml: not confirmed: age: replace"):
        read_schema(file)
    file.write_text('names_origin = "format"\n' + Draft(SCHEMA).to_toml())
    with pytest.raises(SchemaError, match='names_origin is "declared" or "from-data"'):
        read_schema(file)


def test_only_what_the_data_left_out_is_unconfirmed(tmp_path: Path) -> None:
    """The 501st text makes of a column one that is left out: one record decides."""
    table = tmp_path / "a.csv"
    for texts in (500, 501):
        rows = [f"{number % 7},t{number % texts}" for number in range(2000)]
        table.write_text("\n".join(["age,town", *rows]) + "\n")
        drafted = draft_schema(table, csv=CsvFormat())
        assert drafted.schema.left_out == (() if texts == 500 else ("town",))
        assert drafted.left_out_confirmed == (texts == 500)


@pytest.mark.parametrize(
    ("usual", "far", "transform"),
    [
        ([0.5, 1.5, 2.5], 256.25, "log1p"),  # billions, where thousands would be larger numbers
        ([-1.5, 0.5, 2.25], 256.25, "signed-log"),
        ([-1.5, 0.5, 2.25], -256.25, "signed-log"),
        ([0.5, 1.5, 2.5], 9.25, "none"),  # no order of magnitude to spread over
        ([50.5, 99.5, 180.25], 256.25, "none"),
        ([-150.5, 90.5, 180.25], 256.25, "none"),
        ([0, 0, 0, 1], 150, "log1p"),  # counts, where 0 and 1 would have one cell together
        ([0, 0, 0, 1], 100, "none"),  # each has a cell of its own
        ([20, 20, 20, 1], 150, "none"),  # as spread as others are
    ],
)
def test_skewed_numbers_are_drafted_on_a_logarithmic_scale(
    usual: list[float], far: float, transform: str
) -> None:
    values = [*(usual * 50), far]
    (amount,) = draft_schema(pd.DataFrame({"x": values})).schema.columns
    assert amount.transform.value == transform


def test_private_bounds_confirm_bounds_alone() -> None:
    text = Draft(SCHEMA, ("age", "grade")).to_toml()
    lower, upper = SCHEMA.columns[0].lower, SCHEMA.columns[0].upper
    assert f"lower = {lower}\nupper = {upper}\n" in text
    marked = text.replace(f"lower = {lower}\nupper = {upper}\n", 'bounds = "private"\n', 1)
    draft = Draft.from_toml(marked, "it")
    assert (draft.unconfirmed, draft.private) == (("age", "grade"), ("age",))
    with pytest.raises(SchemaError, match="not confirmed: age: replace"):
        draft.approx_bounds_schema("it")
    assert draft.approx_bounds_schema("it", accept_from_data=True).columns[0].name == "age"
    entry = Entry("0" * 32, "2026-01-01", 0.1, 1e-5, Adjacency.REPLACE_ONE, 40.0, 40.0)
    found = draft.with_bounds({"age": (0, 127)}, (entry,))
    assert Draft.from_toml(found.to_toml(), "it") == found
    with pytest.raises(SchemaError, match="not confirmed: age, grade"):
        found.settled("it")
    settled = found.settled("it", accept_from_data=True)
    of_others, of_age = settled.from_data
    assert of_others.endswith(', and whether values are missing, of grade, to"wn\n')
    assert of_age == "kinds, types, scales, steps, formats, and whether values are missing, of age"
    assert TableSchema.from_json(settled.to_json()) == settled
    with pytest.raises(SchemaError, match='of a column of origin "private"'):
        replace(SCHEMA.columns[0], kind_origin=Origin.FROM_DATA)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("columns = [", "not TOML"),
        ("left_out_confirmed = 1", "left_out_confirmed is true or false"),
        (
            "left_out_origin = 'private'\n[[columns]]\nname = 'a'\nkind = 'categorical'\n"
            "dtype = 'string'\ncategories = ['x']",
            "left_out_origin is",
        ),
        ("", "list of 1 to"),
        ("columns = [1]", "described by a table"),
        ("[[columns]]\nname = 'a'", "column 'a': kind is missing"),
        ("[[columns]]\nname = 'a'\nkind = 'big'\ndtype = 'int8'", "known are continuous"),
        ("[[columns]]\nname = 'a'\nkind = 'integer'\ndtype = 'int8'", "has the bounds"),
        (
            "[[columns]]\nname = 'a'\nkind = 'integer'\ndtype = 'int8'\nlower = 2\nupper = 1",
            "its bounds have to go up",
        ),
        (
            "[[columns]]\nname = 'a'\nkind = 'integer'\ndtype = 'int8'\nlower = 0\nupper = 300",
            "int8 does not hold its bounds",
        ),
        (
            "[[columns]]\nname = 'a'\nkind = 'continuous'\ndtype = 'float32'\nlower = nan\nupper=1",
            "a number that is not finite",
        ),
        (
            "[[columns]]\nname = 'a'\nkind = 'categorical'\ndtype = 'string'\n"
            "categories = ['x']\nother = 'y'",
            "'y' is not among",
        ),
        ("[[columns]]\nname = 'a'\nkind = 'boolean'\ndtype = 'bool'\ncategories = ['no']", "two"),
        ("[csv]\nseparator = ',,'\n[[columns]]\nname = 'a'", "column 'a': kind"),
        ("surprise = 1\ncolumns = []", "unknown: surprise$"),
        ("labels = 'a'\ncolumns = []", "unknown: labels; did you mean 'label'"),
        (
            "[[columns]]\nname = 'a'\nkind = 'categorical'\ndtype = 'string'\ncatgories = ['x']",
            "column 'a': unknown: catgories; did you mean 'categories'",
        ),
        (
            "[[columns]]\nname = 'a'\nkind = 'string'\ndtype = 'string'\npattern = 'P'",
            'unknown: pattern; a column with a pattern has kind = "made"',
        ),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "schema.toml"
    file.write_text(text)
    with pytest.raises(SchemaError, match=message) as caught:
        read_schema(file)
    assert str(caught.value).startswith(str(file))


@pytest.mark.parametrize(
    "change",
    [
        {"columns": []},
        {"columns": [{}]},
        {"columns": [AGE.to_json(), AGE.to_json()]},
        {"columns": [{**AGE.to_json(), "lower": True}]},
        {"columns": [{**AGE.to_json(), "lower": 0.0}]},
        {"columns": [{**AGE.to_json(), "upper": 10**400}]},
        {"columns": [{**AGE.to_json(), "name": "a" * 2000}]},
        {"columns": [{**GRADE.to_json(), "categories": ["a", "a"]}]},
        {"columns": [{**GRADE.to_json(), "categories": "abc"}]},
        {"columns": [{**GRADE.to_json(), "dtype": "int64"}]},
        {"columns": [{**GRADE.to_json(), "dtype": "object"}]},
        {"label": "gain"},
        {"columns": [AGE.to_json(), {**GRADE.to_json(), "categories": ["a"]}], "label": "grade"},
        {"label": "nobody"},
        {"label": 3},
        {"left_out": ["age"]},
        {"bins": True},
        {"bins": 10**9},
        {"csv": {"separator": "ab", "encoding": "utf-8", "missing": [""]}},
        {"csv": {"separator": ";", "encoding": "klingon", "missing": [""]}},
        {"surprise": 1},
    ],
)
def test_other_documents_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        TableSchema.from_json({**SCHEMA.to_json(), **change})


def test_the_format_of_csv_files_takes_texts_alone() -> None:
    """One text in place of several would stand for its letters, each of them a missing value."""
    assert CsvFormat(missing=["", "NA"]) == CsvFormat(missing=("", "NA"))  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match=r"missing must be a tuple of texts, such as \(''"):
        CsvFormat(missing="NA")  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="each of missing must be a text, not of type int"):
        CsvFormat(missing=[1])  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="separator must be a text, not of type NoneType"):
        CsvFormat(separator=None)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="csv must be a CsvFormat"):
        TableSchema((AGE,), csv=None)  # type: ignore[arg-type]
