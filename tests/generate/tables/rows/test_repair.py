"""Rows that break constraints are repaired: all keep them afterwards, with little change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpntk.common.errors import GeneratorError
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind, Missing
from dpntk.common.schema.rules.condition import Comparison, Truth
from dpntk.common.schema.table import TableSchema
from dpntk.generate.tables.rows.repair import _onto_step, repair
from dpntk.generate.tables.rows.values import Values

ROWS = 3000
COLUMNS = (
    Column("admission", ColumnKind.DATE, "date32", 18_000, 19_000),
    Column("discharge", ColumnKind.DATE, "date32", 18_000, 19_000, missing=Missing.INDICATOR),
    Column("a", ColumnKind.CONTINUOUS, "float64", 0.0, 100.0, decimals=2),
    Column("b", ColumnKind.CONTINUOUS, "float64", 0.0, 100.0, decimals=2),
    Column("total", ColumnKind.CONTINUOUS, "float64", 0.0, 150.0, decimals=2),
    Column.integer("least", 0, 100, values=[0, 1, 10, 50, 51, 100]),
    Column.continuous("most", 0.0, 150.0, values=[0.0, 9.75, 10.5, 99.0, 150.0]),
    Column(
        "sex", ColumnKind.CATEGORICAL, "string", categories=("F", "M"), missing=Missing.CATEGORY
    ),
    Column("pregnant", ColumnKind.BOOLEAN, "string", categories=("no", "yes")),
    Column("ill", ColumnKind.BOOLEAN, "string", categories=("no", "yes")),
)  # fmt: skip
SCHEMA = TableSchema(COLUMNS, "ill")


def drawn(seed: int = 0) -> Values:
    """Rows whose columns have nothing to do with one another."""
    random = np.random.default_rng(seed)
    values: Values = {}
    for column in COLUMNS:
        if column.lower is None or column.upper is None:
            least = -1 if column.missing is Missing.CATEGORY else 0
            values[column.name] = random.integers(least, len(column.categories), ROWS)
        else:
            values[column.name] = column.rounded(random.uniform(column.lower, column.upper, ROWS))
    values["discharge"][::10] = np.nan
    return values


def copied(values: Values) -> Values:
    return {name: column.copy() for name, column in values.items()}


def ruled(*constraints: str, schema: TableSchema = SCHEMA) -> TableSchema:
    return replace(schema, constraints=constraints)


def require_kept(values: Values, schema: TableSchema) -> None:
    for rule in schema.rules:
        assert not rule.truth(values).fails.any()
    for column in schema.columns:
        found = values[column.name]
        if column.lower is None or column.upper is None:
            assert set(found) <= set(range(len(column.categories))) | (
                {-1} if column.missing is Missing.CATEGORY else set()
            )
            continue
        there = found[~np.isnan(found)]
        assert column.missing is Missing.INDICATOR or len(there) == len(found)
        assert ((there >= column.lower) & (there <= column.upper)).all()
        assert np.array_equal(column.rounded(there), there)


@pytest.mark.parametrize(
    "constraints",
    [
        ("discharge >= admission",),
        ("discharge > admission", "discharge - admission <= 30"),
        ("total = a + b",),
        ("total = a + b", "a > 2*b", "b >= 1"),
        ("pregnant = yes only if sex = F",),
        ("if pregnant = yes then sex = F and total > 100", "discharge is not missing"),
        ("not (ill = yes and pregnant = yes) or a = b",),
        ("a != b", "a < b or sex is missing"),
        ("admission >= 2020-01-01 and 0.3*a + 0.1*b < 7",),
        ("ill = yes only if a > 99.9",),
        ("discharge = admission + 2", "sex not in (M)"),
        ("least < most", "least != 50"),
        ("least < 50",),
        ("most > 10.5",),
        ("least != 51",),
        ("most >= least + 1", "most - least <= 60"),
        ("least + 3 < a or most != 99", "most > 9.75"),
        ("a - b = 0.3", "total = a + b", "discharge is missing only if pregnant = no"),
    ],
)
def test_every_row_keeps_the_rules_and_all_bounds(constraints: tuple[str, ...]) -> None:
    schema, before = ruled(*constraints), drawn()
    values = copied(before)
    broken = repair(values, schema, 3)
    failing = [rule.truth(before).fails for rule in schema.rules]
    assert np.array_equal(broken, np.logical_or.reduce(failing))
    assert broken.any()
    require_kept(values, schema)
    concerned = frozenset().union(*(rule.names for rule in schema.rules))
    for column in COLUMNS:
        if column.name not in concerned:
            assert np.array_equal(values[column.name], before[column.name], equal_nan=True)
    again = copied(before)
    repair(again, schema, 3)
    assert all(
        np.array_equal(values[n], again[n], equal_nan=values[n].dtype == float) for n in values
    )


def test_listed_numbers_move_to_the_next_in_their_direction() -> None:
    column = next(column for column in COLUMNS if column.name == "most")
    wanted = np.array([9.8, 9.75, 150.0, 0.0, 98.9])
    up = np.array([1.0, -1.0, 1.0, -1.0, -1.0])
    assert _onto_step(column, wanted, up).tolist() == [10.5, 9.75, 150.0, 0.0, 10.5]


def test_what_keeps_the_rules_stays_as_it_is() -> None:
    schema, values = ruled("total = a + b", "a <= 40 and b <= 40"), drawn()
    values["a"], values["b"] = values["a"] // 3, values["b"] // 3
    values["total"] = values["a"] + values["b"]
    before = copied(values)
    assert not repair(values, schema, 0).any()
    assert all(np.array_equal(values[n], before[n], equal_nan=True) for n in values)
    values["total"][7] += 20
    assert np.flatnonzero(repair(values, schema, 0)).tolist() == [7]
    require_kept(values, schema)
    assert all(
        np.array_equal(np.delete(values[n], 7), np.delete(before[n], 7), equal_nan=True)
        for n in values
    )


def test_what_can_be_exchanged_keeps_the_marginals_of_every_class() -> None:
    """Two dates at random are in the wrong order in half of the rows."""
    schema, values = ruled("discharge >= admission"), drawn()
    values["discharge"] = np.minimum(values["discharge"] + 200, 19_000)
    before = copied(values)
    share = repair(values, schema, 0).mean()
    assert 0.15 < share < 0.4
    require_kept(values, schema)
    for label in (0, 1):
        rows = values["ill"] == label
        for name in ("admission", "discharge"):
            old, new = np.sort(before[name][rows]), np.sort(values[name][rows])
            assert np.abs(old[~np.isnan(old)] - new[~np.isnan(new)]).mean() < 3


def test_a_category_changes_as_rarely_as_it_can() -> None:
    schema, before = ruled("pregnant = yes only if sex = F"), drawn()
    values = copied(before)
    repair(values, schema, 0)
    changed = (values["pregnant"] != before["pregnant"]) | (values["sex"] != before["sex"])
    broken = schema.rules[0].truth(before).fails
    # Each of them exchanges with one that keeps the rule with either value.
    assert changed.sum() <= 2 * broken.sum()
    assert np.array_equal(np.bincount(values["sex"] + 1), np.bincount(before["sex"] + 1))


@pytest.mark.parametrize(
    "constraints",
    [
        ("total = 0", "total = a + b"),
        ("total = a + b", "total = 0"),
        ("total < 0.5 and ill = yes", "total = a + b", "a >= b"),
        ("total = a + b", "total = 1 and a > 0.5"),
    ],
)
def test_rules_that_undo_one_another_are_kept_together(constraints: tuple[str, ...]) -> None:
    """The sum follows its parts, and its parts follow the sum: no random row keeps both rules."""
    values, schema = drawn(), ruled(*constraints)
    assert repair(values, schema, 0).all()
    require_kept(values, schema)


def test_rules_that_contradict_each_other_are_named() -> None:
    with pytest.raises(GeneratorError, match="constraints: no row was found that keeps all"):
        repair(drawn(), ruled("a > b + 1", "b > a + 1 or b > a + 2"), 0)


def test_narrow_floats_keep_rules() -> None:
    columns = tuple(
        replace(column, dtype="float32", decimals=None) if column.decimals else column
        for column in COLUMNS
    )
    schema = ruled("total = a + b", "a < b", schema=replace(SCHEMA, columns=columns))
    values = drawn()
    for name in ("a", "b", "total"):
        values[name] = values[name].astype(np.float32).astype(np.float64)
    repair(values, schema, 0)
    for rule in schema.rules:
        assert not rule.truth(values).fails.any()
    assert all(np.array_equal(values[n], values[n].astype(np.float32)) for n in ("a", "b", "total"))


def alike(**row: float) -> Values:
    """Rows that are all the same, so that exchanges do not help."""
    values = drawn()
    values["discharge"][:] = 18_500.0
    for name, value in row.items():
        values[name][:] = value
    return values


@pytest.mark.parametrize(
    ("constraint", "row", "wanted"),
    [
        # Steps are rounded to the side that keeps the rule.
        ("3*a >= 10*b", {"a": 3.33, "b": 1.0}, {"a": 3.34, "b": 1.0}),
        ("10*b <= 3*a", {"a": 3.33, "b": 1.0}, {"a": 3.34, "b": 1.0}),
        ("a < b", {"a": 100.0, "b": 100.0}, {"a": 99.99, "b": 100.0}),
        ("a >= 50.01", {"a": 50.0, "b": 0.0}, {"a": 50.01, "b": 0.0}),
        # What moves least, relative to its bounds.
        ("a >= 90.01 or b >= 4.01", {"a": 89.99, "b": 0.0}, {"a": 90.01, "b": 0.0}),
        ("a >= 90.01 or b >= 4.01", {"a": 10.0, "b": 3.99}, {"a": 10.0, "b": 4.01}),
        (
            "total = a + b",
            {"a": 30.0, "b": 40.0, "total": 50.0},
            {"a": 30.0, "b": 40.0, "total": 70},
        ),
        # Which cannot be missing does not become so.
        ("a is missing or a >= 90 and b >= 90", {"a": 1.0, "b": 0.0}, {"a": 90.0, "b": 90.0}),
        # One number alone cannot.
        ("total = a + b", {"a": 90.0, "b": 90.0, "total": 0.0}, {"total": 150.0}),
        ("if ill = yes then a >= 90.01", {"a": 90.0, "ill": 1}, {"a": 90.01, "ill": 1}),
    ],
)
def test_a_row_changes_as_little_as_it_can(
    constraint: str, row: dict[str, float], wanted: dict[str, float]
) -> None:
    values = alike(**row)
    assert repair(values, ruled(constraint), 0).all()
    require_kept(values, ruled(constraint))
    assert {name: values[name][0] for name in wanted} == wanted


STAY = TableSchema(
    (
        replace(COLUMNS[0], name="admission"),
        Column("discharge", ColumnKind.DATE, "date32", 18_000, 19_100),
        Column("death", ColumnKind.DATE, "date32", 18_000, 19_000, missing=Missing.INDICATOR),
        Column("cause", ColumnKind.CATEGORICAL, "string", categories=("cold", "heart"),
               missing=Missing.CATEGORY),
        Column("died", ColumnKind.BOOLEAN, "string", categories=("no", "yes")),
        Column("ill", ColumnKind.BOOLEAN, "string", categories=("no", "yes")),
    ),
    "ill",
    constraints=(
        "admission <= discharge",
        "death = discharge",
        "if died = no then death is missing and cause is missing",
        "if died = yes then death is not missing and cause is not missing",
    ),
)  # fmt: skip


@pytest.mark.parametrize("dates", [0.0, 0.02, 0.1])
def test_of_a_skip_pattern_the_category_stays_and_the_value_follows_it(dates: float) -> None:
    """As a release has them that knows little of who dies: 3 % of rows, and not those with dates.

    Dates of death are as many as deaths are, more, or none.
    """
    random = np.random.default_rng(0)
    values: Values = {
        name: random.integers(18_000, 19_001, ROWS).astype(np.float64)
        for name in ("admission", "discharge", "death")
    }
    values["death"][random.random(ROWS) >= dates] = np.nan
    values["cause"] = np.where(random.random(ROWS) < 0.05, random.integers(0, 2, ROWS), -1)
    values["died"] = (random.random(ROWS) < 0.03).astype(np.int64)
    values["ill"] = random.integers(0, 2, ROWS)
    before = copied(values)
    assert repair(values, STAY, 0).any()
    require_kept(values, STAY)
    for label in (0, 1):
        mine = before["ill"] == label
        assert values["died"][mine].sum() == before["died"][mine].sum() > 30
    dead = values["died"] == 1
    assert np.array_equal(values["death"][dead], values["discharge"][dead])
    # What is asked of all rows has its marginal still, but for dates that had to be put in order.
    assert abs(values["admission"].mean() - before["admission"].mean()) < 2
    assert set(values["cause"][dead]) == {0, 1}


def test_what_is_copied_is_copied_from_rows_with_the_same_categories() -> None:
    """Of the numbers always the same one has to move least, so that rules undo one another."""
    columns = (
        Column("x", ColumnKind.CONTINUOUS, "float64", 0.0, 100.0),
        Column("y", ColumnKind.CONTINUOUS, "float64", 0.0, 900.0),
        Column("z", ColumnKind.CONTINUOUS, "float64", 0.0, 100.0),
        *COLUMNS[-2:],
    )
    schema = TableSchema(
        columns, "ill", constraints=("x <= y", "y = z", "if pregnant = yes then x > 20")
    )
    values: Values = {name: np.full(ROWS, 50.0) for name in "xyz"}
    values["pregnant"], values["ill"] = np.zeros((2, ROWS), dtype=np.int64)
    values["pregnant"][:60] = 1
    values["ill"][:30] = 1
    values["x"][:60] = 40.0 + np.arange(60)
    values["y"][:60] = values["z"][:60] = 30.0
    for name in "xyz":  # one whole row of either class to copy from
        values[name][[29, 59]] = 50.0
    before = copied(values)
    assert repair(values, schema, 0).sum() == 58
    require_kept(values, schema)
    assert np.array_equal(values["pregnant"], before["pregnant"])
    assert np.array_equal(values["ill"], before["ill"])


def test_rules_of_strangers_cannot_keep_one_busy_for_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many rules as fit, each of many comparisons: swaps that help are given up, not rows."""
    terms = [f"(x + {n} * y < 20 and not pregnant = yes)" for n in range(1, 13)]
    rules = tuple(" or ".join([*terms, f"z < {30 + n}"]) for n in range(100))
    columns = tuple(Column("xyz"[n], ColumnKind.INTEGER, "int64", 0, 99) for n in range(3))
    schema = TableSchema((*columns, *COLUMNS[-2:]), "ill", constraints=rules)
    random = np.random.default_rng(0)
    values: Values = {name: random.integers(0, 100, ROWS).astype(float) for name in "xyz"}
    values["pregnant"], values["ill"] = random.integers(0, 2, (2, ROWS))
    compared = 0
    truth = Comparison.truth

    def counting(rule: Comparison, some: Values) -> Truth:
        nonlocal compared
        compared += 1
        return truth(rule, some)

    monkeypatch.setattr(Comparison, "truth", counting)
    monkeypatch.setattr("dpntk.generate.tables.rows.repair._MOST_WORK", 10**8)
    assert repair(values, schema, 0).any()
    require_kept(values, schema)
    # A round that changes values compares each rule a few times; swaps compared them 300 times.
    assert compared < 200_000


def mostly_zero(paid: bool) -> Values:
    """Rows of which few have an amount; those who are ill and those who are not are as many."""
    values = drawn()
    random = np.random.default_rng(1)
    values["a"] = np.where(random.random(ROWS) < 0.1, random.uniform(20, 30, ROWS).round(2), 0.0)
    if not paid:
        values["a"][:] = 0.0
    return values


def test_amounts_that_only_have_to_be_above_a_number_are_those_of_other_rows() -> None:
    """Not a cent, which is the nearest one to nothing."""
    schema, values = ruled("if ill = yes then a > 0"), mostly_zero(paid=True)
    before = copied(values)
    repair(values, schema, 0)
    require_kept(values, schema)
    found = values["a"][values["ill"] == 1]
    assert ((found >= 20) & (found <= 30)).all()
    assert len(np.unique(found)) > 100
    others = before["a"] > 0
    assert np.isin(values["a"][~others], [0.0, *before["a"][others]]).all()


@pytest.mark.parametrize(
    ("rule", "low", "high"),
    [("a > 60", 60.0, 100.0), ("a < 0.5", 0.0, 0.5), ("b > 99.98", 99, 100)],
)
def test_where_no_row_is_beyond_a_number_they_lie_anywhere_up_to_the_bound(
    rule: str, low: float, high: float
) -> None:
    name, schema, values = rule[0], ruled(rule), drawn()
    values[name] = np.full(ROWS, 7.0)
    repair(values, schema, 0)
    require_kept(values, schema)
    found = values[name]
    assert low <= found.min() <= found.max() <= high
    if high - low > 30:
        assert np.quantile(found, [0.25, 0.75]) == pytest.approx([70, 90], abs=2)
