"""What is publicly known of a table: written, read back, and refused when it makes no sense."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpntk.common.column import Column, ColumnKind, Missing, Transform
from dpntk.common.errors import SchemaError
from dpntk.common.schema import Origin
from dpntk.common.schema_file import Draft, read_schema
from dpntk.common.table_schema import CsvFormat, TableSchema

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
    what = "kinds, types, scales, bounds, categories, and whether values are missing"
    assert accepted.from_data == (f'{what}, of age, grade, to"wn\n',)
    file.write_text(file.read_text().replace("confirmed = false", "confirmed = true"))
    assert read_schema(file) == SCHEMA


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("columns = [", "not TOML"),
        ("", "list of 1 to"),
        ("columns = [1]", "described by a table"),
        ("[[columns]]\nname = 'a'", "column 'a': kind is missing"),
        ("[[columns]]\nname = 'a'\nkind = 'big'\ndtype = 'int8'", "known are continuous"),
        ("[[columns]]\nname = 'a'\nkind = 'integer'\ndtype = 'int8'", "has the bounds"),
        (
            "[[columns]]\nname = 'a'\nkind = 'integer'\ndtype = 'int8'\nlower = 2\nupper = 1",
            "they go up",
        ),
        (
            "[[columns]]\nname = 'a'\nkind = 'integer'\ndtype = 'int8'\nlower = 0\nupper = 300",
            "int8 does not hold 0 to 300",
        ),
        (
            "[[columns]]\nname = 'a'\nkind = 'continuous'\ndtype = 'float32'\nlower = nan\nupper=1",
            "they go up",
        ),
        (
            "[[columns]]\nname = 'a'\nkind = 'categorical'\ndtype = 'string'\n"
            "categories = ['x']\nother = 'y'",
            "'y' is not among",
        ),
        ("[[columns]]\nname = 'a'\nkind = 'boolean'\ndtype = 'bool'\ncategories = ['no']", "two"),
        ("[csv]\nseparator = ',,'\n[[columns]]\nname = 'a'", "column 'a': kind"),
        ("surprise = 1\ncolumns = []", "unknown: surprise"),
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
