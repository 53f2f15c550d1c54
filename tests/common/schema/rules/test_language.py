"""Conditions: what they say of rows, with missing values among them, and what is none."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpntk.common.errors import SchemaError
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind, Missing
from dpntk.common.schema.columns.lookup import LookupColumn
from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.schema.rules.language import parse_condition
from dpntk.common.schema.table import TableSchema

COLUMNS = (
    Column("age", ColumnKind.INTEGER, "int64", 0, 99),
    Column("pay of 1", ColumnKind.CONTINUOUS, "float64", 0.0, 9.0, missing=Missing.INDICATOR),
    Column("in", ColumnKind.CONTINUOUS, "float64", 0.0, 9.0),
    Column("grade", ColumnKind.ORDINAL, "string", categories=("low", "mid", "high")),
    Column(
        "town", ColumnKind.CATEGORICAL, "string", categories=("Ulm", "New York", "or"),
        missing=Missing.CATEGORY,
    ),
    Column("code", ColumnKind.CATEGORICAL, "int8", categories=("-1", "7")),
    Column("born", ColumnKind.DATE, "date32", 0, 20_000),
    Column("seen", ColumnKind.DATETIME, "timestamp[ms]", 0, 10**9, missing=Missing.INDICATOR),
)  # fmt: skip
SCHEMA = TableSchema(COLUMNS)
DAY = 86_400
VALUES: dict[str, np.ndarray[Any, Any]] = {
    "age": np.array([10.0, 50.0, 60.0]),
    "pay of 1": np.array([1.5, np.nan, 0.3]),
    "in": np.array([1.5, 2.0, 0.1 + 0.2]),
    "grade": np.array([0, 1, 2]),
    "town": np.array([0, -1, 1]),
    "code": np.array([0, 1, 0]),
    "born": np.array([100.0, 200.0, 365.0]),
    "seen": np.array([101.0 * DAY, np.nan, 365.0 * DAY + 1]),
}
Y, N, U = True, False, None
"""Holds, fails, unknown."""


def truth(text: str) -> list[bool | None]:
    found = parse_condition(text, SCHEMA.by_name).truth(VALUES)
    assert not (found.holds & found.fails).any()
    pairs = zip(found.holds.tolist(), found.fails.tolist(), strict=True)
    return [True if holds else False if fails else None for holds, fails in pairs]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("age >= 50", [N, Y, Y]),
        ("age == 50", [N, Y, N]),
        ("50 < age", [N, N, Y]),
        ("not age >= 50 and 3 > 2*age - 20", [Y, N, N]),
        ("age != 50 and age = 10 or age > 5e1", [Y, N, Y]),
        ("age = 10 or age = 50 and grade = low", [Y, N, N]),
        ("(age = 10 or age = 50) and grade = low", [Y, N, N]),
        ("`pay of 1` = `in`", [Y, U, Y]),  # 0.1 + 0.2 is .3
        ("`pay of 1` < `in`", [N, U, N]),
        ("not `pay of 1` < `in`", [Y, U, Y]),
        ("`pay of 1` > 1 or age = 50", [Y, Y, N]),
        ("`pay of 1` > 1 and age = 50", [N, U, N]),
        ("`pay of 1` > 1 and age = 51", [N, N, N]),
        ("`pay of 1` is missing", [N, Y, N]),
        ("not (`pay of 1` is not missing)", [N, Y, N]),
        ("-age + 100 > 2*`in` + `pay of 1` - 0.5", [Y, U, Y]),
        ("grade >= mid", [N, Y, Y]),
        ("not grade < 'high'", [N, N, Y]),
        ("grade != low", [N, Y, Y]),
        ("town = Ulm", [Y, U, N]),
        ('town in (Ulm, "New York")', [Y, U, Y]),
        ("town not in (Ulm)", [N, U, Y]),
        ('town != "or"', [Y, U, Y]),
        ("town is missing or town = Ulm", [Y, Y, N]),
        ("code = -1", [Y, N, Y]),
        ("code in (7)", [N, Y, N]),
        ("age in (10, 60)", [Y, N, Y]),
        ("age not in (-5, 10)", [N, Y, Y]),
        ("`pay of 1` in (1.5)", [Y, U, N]),
        ("born in (1970-04-11, '1971-01-01')", [Y, N, Y]),
        ("born < 1971-01-01", [Y, Y, N]),
        ("born - 1970-01-01 = 200", [N, Y, N]),
        ("seen >= born + 1", [Y, U, N]),
        ("seen - born <= 0.5", [N, U, Y]),
        ("seen > 1971-01-01T00:00:00", [N, U, Y]),
        ("seen > '1971-01-01 00:00'", [N, U, Y]),
        ('born < "1971-01-01"', [Y, Y, N]),
        ("seen - born <= age - 10", [N, U, Y]),  # days
        ("age >= 50 only if grade = high", [Y, N, Y]),
        ("if age >= 50 then grade = high", [Y, N, Y]),
        ("`pay of 1` > 1 only if age = 10", [Y, U, Y]),
        ("age = 50 only if `pay of 1` > 1", [Y, U, Y]),
    ],
)
def test_a_condition_holds_fails_or_is_unknown(text: str, wanted: list[bool | None]) -> None:
    assert truth(text) == wanted
    opposite = [None if known is None else not known for known in wanted]
    if " if " not in text and not text.startswith("if "):
        assert truth(f"not ({text})") == opposite


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a number or a column is wanted, not its end"),
        (
            "born > 25.12.2023",
            "what is '.2023'? dates are written as 2023-12-25".replace("?", r"\?"),
        ),
        ("born > '25/12/2023'", "not '25/12/2023'; dates are written as 2023-12-25"),
        ("born > '2023-02-30'", "2023-02-30 is no date"),
        ("height > 3", r"there is no column 'height'\)?$"),
        ("ages > 3", r"there is no column 'ages'; did you mean 'age'\?"),
        ("town = Rome", "'Rome' is no category of column 'town', which has .*; put one of several"),
        (
            "town = New York",
            "'New' is no category of .*, New York.*; put one of several words into",
        ),
        ("town = 'Rome'", "'Rome' is no category of column 'town', which has [^;]*$"),
        ("Ulm = town", "there is no column 'Ulm'"),
        ("7 = code", "write the column 'code' first"),
        ("town > Ulm", "the categories of column 'town' have no order"),
        ("age + town > 3", "column 'town' holds no numbers, but categories$"),
        ("age + code > 3", "categories; as a kind of numbers it may list them as values"),
        ("age in (1, Ulm)", "there is no column 'Ulm'"),
        ("age in (1, 2", "\\) is wanted"),
        ("in > 3", "not 'in'"),
        ("age > 50 age < 60", "its end is wanted, not 'age'$"),
        ("age > 50 AND age < 60", "its end is wanted, not 'AND'; and is written small"),
        ("(age > 50", r"\) is wanted"),
        ("age >", "not its end$"),
        ("age 50", "one of = != < <= > >= is wanted"),
        ("grade", "is wanted, as in grade = high, not its end"),
        ("code", "one of = != < <= > >= is wanted, not its end"),
        ("age ; drop table", "what is '; drop table'"),
        ("age.__class__ = 3", "what is '.__class__ = 3'"),
        ("age = age * age", "a column is only multiplied by a number before it"),
        (
            "age * 2 > 3",
            r"a column is only multiplied by a number before it: 2\.5 \* price$",
        ),
        ("5 > 3", "there is no column in a comparison"),
        ("age - age > 3", "there is no column in a comparison"),
        ("born > 3", "dates are compared with dates"),
        ("born + seen > 1970-01-01", "dates are compared with dates"),
        ("age > 1970-01-01", "dates are compared with dates"),
        ("born > 1970-02-30", "1970-02-30 is no date"),
        ("age > 1e300", "1e300 is too large"),
        ("age = 100", "no values between the bounds fulfil it"),
        ("age > 99", "no values between the bounds fulfil it"),
        ("age > 50 and `in` + `pay of 1` > 18", "no values between the bounds fulfil it"),
        ("age is missing", "no values between the bounds fulfil it"),
        ("grade < low", "no values between the bounds fulfil it"),
        ("born < 1970-01-01", "no values between the bounds fulfil it"),
        ("(" * 25 + "age > 3" + ")" * 25, "too many brackets"),
        ("not " * 25 + "age > 3", "too many brackets"),
        ("age > 3 or " * 200 + "age > 3", "at most 1000 characters"),
    ],
)
def test_what_is_no_condition_gets_one_line(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as caught:
        parse_condition(text, SCHEMA.by_name)
    assert "\n" not in str(caught.value)


LOOKUPS = {
    "state": LookupColumn("state", "town", {"Ulm": "BW", "New York": "NY", "or": "US state"}),
    "size": LookupColumn("size", "town", {"Ulm": "1", "New York": "80", "or": "42"}, "int64"),
}


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("state = BW", "town = Ulm"),
        ("state != BW", "town != Ulm"),
        ("state in (NY, 'US state')", "town in ('New York', 'or')"),
        ("state not in (NY, 'US state')", "town not in ('New York', 'or')"),
        ("not state = NY", "town != 'New York'"),
        ("state is missing", "town is missing"),
        ("state is not missing", "town is not missing"),
        ("size = 80", "town = 'New York'"),
        ("size > 41.5", "town in ('New York', 'or')"),
        ("size >= 42", "town in ('New York', 'or')"),
        ("size < 42", "town = Ulm"),
        ("size <= 42", "town in (Ulm, 'or')"),
        ("size > -3", "town in (Ulm, 'New York', 'or')"),
        ("if size > 50 then state = NY and age > 3", "if town = 'New York' then town = 'New York' "
         "and age > 3"),
    ],
)  # fmt: skip
def test_what_follows_from_a_column_is_said_of_that_column(text: str, same: str) -> None:
    found = parse_condition(text, SCHEMA.by_name, LOOKUPS)
    assert found.names <= {"town", "age"}
    ours, theirs = found.truth(VALUES), parse_condition(same, SCHEMA.by_name).truth(VALUES)
    assert np.array_equal(ours.holds, theirs.holds)
    assert np.array_equal(ours.fails, theirs.fails)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("state = Ulm", "'Ulm' is no category of column 'state', which has BW, NY, US state"),
        ("state < NY", "the values of column 'state' have no order"),
        ("state not = NY", "in is wanted"),
        ("size > age", "column 'size' is compared with numbers alone"),
        ("size > 80", "no values between the bounds fulfil it"),
        ("age > size", "write the column 'size' first, and its category last"),
        ("age > 2 + size", "column 'size' follows from 'town': put it first"),
        ("stat = NY", "there is no column 'stat'.*'state'"),
    ],
)
def test_what_cannot_be_said_of_it_gets_one_line(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse_condition(text, SCHEMA.by_name, LOOKUPS)


@given(st.text(max_size=60) | st.text("age>=<!50()`'\"+-* .orndtif", max_size=60))
def test_whatever_the_text_nothing_else_happens(text: str) -> None:
    with contextlib.suppress(SchemaError):
        parse_condition(text, SCHEMA.by_name).truth(VALUES)


def test_a_schema_carries_its_constraints() -> None:
    ruled = replace(SCHEMA, constraints=("age >= 1", 'town = "New York" only if age > 3'))
    assert TableSchema.from_json(ruled.to_json()) == ruled
    assert Draft.from_toml(Draft(ruled).to_toml(), "it").schema == ruled
    assert "constraints" not in SCHEMA.to_json()
    assert ruled.known == (*SCHEMA.known, "constraints on rows")


@pytest.mark.parametrize(
    "constraints",
    ["age > 3", [3], ["age >"], ["age > 3", "age > 3"], [f"age > {n}.5" for n in range(101)]],
)
def test_other_constraints_are_refused(constraints: object) -> None:
    with pytest.raises(SchemaError):
        TableSchema.from_json({**SCHEMA.to_json(), "constraints": constraints})


@pytest.mark.parametrize(
    ("constraints", "fine"),
    [
        (("age < `in`", "age > `in`"), False),
        (("age <= `in`", "age >= `in`"), True),
        (("age > 40", "age < 41"), False),  # whole numbers
        (("`in` > 4", "`in` < 4.1"), True),
        (("`in` > 4 and age < 50", "`in` <= 4"), False),
        (("age > 40 or `in` > 4", "age < 41"), True),
        (("age = 10*`in`", "age + `in` = 105"), False),
        (("age = 10*`in`", "age + `in` = 99"), True),
        (("born = 1990-01-01", "seen = born + 5000"), False),
        (("born = 1990-01-01", "seen = born + 2000"), True),
        (("town = Ulm", "town != Ulm"), False),
        (("town in (Ulm, or)" , "town not in (Ulm)", "grade < high", "grade > low"), True),
        (("code = 7 and `in` = 0.3", "code = -1"), False),
    ],
)  # fmt: skip
def test_constraints_that_no_row_keeps_together_are_refused(
    constraints: tuple[str, ...], fine: bool
) -> None:
    constraints = tuple(text.replace("or)", "'or')") for text in constraints)
    if fine:
        assert len(replace(SCHEMA, constraints=constraints).rules) == len(constraints)
        return
    with pytest.raises(SchemaError, match="no row between the bounds keeps all of them"):
        replace(SCHEMA, constraints=constraints)


_BOMB = """
import resource, sys
from dpntk.common.schema.table import TableSchema
from tests.common.schema.rules.test_language import hostile

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
TableSchema.from_json(hostile())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def hostile() -> dict[str, Any]:
    """As many comparisons as fit, with as many categories and numbers as fit."""
    document = SCHEMA.to_json()
    document["columns"][4]["categories"] = [f"c{number}" for number in range(10_000)]
    categories = " and ".join(["town != c1"] * 60)
    numbers = " and ".join(["age >= 1"] * 70)
    document["constraints"] = [
        text + " " * place for place in range(50) for text in (categories, numbers)
    ]
    return document


def test_constraints_of_strangers_take_no_room() -> None:
    """6,500 comparisons with a column of 10,000 categories would be gigabytes as lists of these."""
    said = subprocess.run(
        [sys.executable, "-c", _BOMB], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    assert int(said) < 200_000  # kilobytes


@pytest.mark.parametrize("rule", ["a + b <= 0.3", "a + b = 0.3"])
def test_what_rounding_alone_would_break_is_possible(rule: str) -> None:
    """In binary, .1 + .2 is more than .3 by 5e-17."""
    columns = (Column.continuous("a", 0.1, 1), Column.continuous("b", 0.2, 1))
    (parsed,) = TableSchema(columns, constraints=(rule,)).rules
    assert parsed.truth({"a": np.array([0.1]), "b": np.array([0.2])}).holds.all()
    with pytest.raises(SchemaError, match="no values between the bounds"):
        TableSchema(columns, constraints=(rule.replace("0.3", "0.29"),))
