"""Numbers with a declared granularity: read, made and drafted at their steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpntk.common.errors import SchemaError
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind, Missing, Transform
from dpntk.common.schema.csv_format import CsvFormat
from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.schema.drafts.private_bounds import with_private_bounds
from dpntk.common.schema.origin import Origin
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources.tables.table import TableSource
from dpntk.embed.inference.schema import draft_schema
from dpntk.generate.tables.export import write_csv
from dpntk.generate.tables.sampling import to_table

LIMIT = Column("limit", ColumnKind.INTEGER, "int64", 10_000, 500_000, step=10_000)
COST = Column(
    "cost", ColumnKind.CONTINUOUS, "float64", 0.0, 99.99,
    transform=Transform.LOG1P, missing=Missing.INDICATOR, decimals=2,
)  # fmt: skip
HALF = Column("half", ColumnKind.CONTINUOUS, "float32", -0.6, 0.6, step=0.05)
SCHEMA = TableSchema((LIMIT, COST, HALF), csv=CsvFormat(missing=("NA",)))


def test_json_and_toml_give_back_steps() -> None:
    assert TableSchema.from_json(SCHEMA.to_json()) == SCHEMA
    assert Draft.from_toml(Draft(SCHEMA).to_toml(), "it").schema == SCHEMA


def test_steps_are_said_in_python_as_in_a_file() -> None:
    counted: Any = np.int64(10_000)
    limit = Column.integer("limit", 0, 100_000, step=counted)
    assert limit == Column("limit", ColumnKind.INTEGER, "int64", 0, 100_000, step=10_000)
    share = Column.continuous("share", 0.0, 1.0, step=0.25)
    assert share == Column("share", ColumnKind.CONTINUOUS, "float64", 0.0, 1.0, step=0.25)


def test_values_that_are_few_have_a_place_each() -> None:
    assert (LIMIT.different, COST.different, HALF.different) == (50, None, 25)
    assert [SCHEMA.knots(column) for column in SCHEMA.columns] == [20, 20, 20]
    assert replace(SCHEMA, bins=60).knots(LIMIT) == 50


@given(st.integers(0, 9999), st.floats(-0.49, 0.49))
def test_a_value_is_rounded_to_the_number_as_it_is_written(cents: int, off: float) -> None:
    found = COST.rounded(np.array([cents / 100 + off / 100]))
    assert found[0] == float(f"{cents / 100:.2f}")


@pytest.mark.parametrize(
    ("column", "change"),
    [
        (LIMIT, {"step": 0}),
        (LIMIT, {"step": -10}),
        (LIMIT, {"step": 2.5}),
        (LIMIT, {"step": True}),
        (LIMIT, {"step": "10"}),
        (LIMIT, {"step": 30_000}),  # of which the bounds are no multiples
        (LIMIT, {"decimals": 2}),
        (COST, {"decimals": -1}),
        (COST, {"decimals": 16}),
        (COST, {"decimals": 15}),
        (COST, {"decimals": 1}),
        (COST, {"step": 0.01}),  # beside decimals
        (HALF, {"step": 1e-300}),
        (HALF, {"step": 1 / 3}),
    ],
)
def test_other_steps_are_refused(column: Column, change: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match=f"column '{column.name}'"):
        Column.from_json({**column.to_json(), **change})


def test_rows_are_read_and_made_at_their_steps(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "limit,cost,half\n14999,0.005,0.33\n499999,NA,-9\n25000,1.115,0\n"
    )
    read = TableSource.open(tmp_path / "a.csv", SCHEMA).values()
    assert read["limit"].tolist() == [10_000, 500_000, 20_000]  # half-way, to the even one
    assert np.array_equal(read["cost"], [0.0, np.nan, 1.12], equal_nan=True)
    assert read["half"].tolist() == [0.35, -0.6, 0.0]
    records = np.random.default_rng(0).random((500, SCHEMA.record_size), dtype=np.float32)
    made = to_table(SCHEMA, records, np.zeros(500, dtype=np.int64))
    assert set(made.column("limit").to_pylist()) <= set(range(10_000, 500_001, 10_000))
    costs = [cost for cost in made.column("cost").to_pylist() if cost is not None]
    assert all(cost == round(cost, 2) for cost in costs)
    assert len(set(costs)) > 100
    assert made.column("half").type == pa.float32()
    halves = {np.float32(number / 20) for number in range(-12, 13)}
    inner = {
        np.nextafter(np.float32(-0.6), np.float32(0)),
        np.nextafter(np.float32(0.6), np.float32(0)),
    }
    assert set(map(np.float32, made.column("half").to_pylist())) <= halves | inner
    write_csv(made, SCHEMA, tmp_path / "b.csv")
    lines = (tmp_path / "b.csv").read_text().split()
    for limit, cost, half in (line.split(",") for line in lines[1:]):
        assert limit.endswith("0000")
        assert cost == "NA" or len(cost.split(".")[1]) == 2
        assert half in {f"{number / 20:.2f}" for number in range(-12, 13)}


def test_the_draft_finds_steps(tmp_path: Path) -> None:
    rows = [
        f"{1000 * (3 + number % 7)},{number / 8},{number}.{number % 10}0,{1.5 * number},"
        f"{number}.{number % 5 * 20:02},{number / 8 + 1e14}"
        for number in range(9)
    ]
    header = "thousands,eighths,tenths,halves,fifths,large"
    (tmp_path / "a.csv").write_text("\n".join([header, *rows]) + "\n")
    found = draft_schema(tmp_path / "a.csv", csv=CsvFormat()).schema.columns
    assert {column.name: (column.step, column.decimals) for column in found} == {
        "thousands": (1000, None),
        "eighths": (0.125, None),
        "tenths": (None, 1),
        "halves": (0.5, None),  # of 1.5 no more than that is said
        "fifths": (0.2, None),
        "large": (None, None),
    }


@pytest.mark.parametrize("at", [0, 20_000])
def test_one_number_beside_all_steps_is_enough(at: int) -> None:
    """Whichever batch of rows it is in."""
    numbers = np.arange(40_000) % 90 / 2
    numbers[at] = 7.3
    (pay,) = draft_schema(pa.table({"pay": numbers})).schema.columns
    assert (pay.step, pay.decimals) == (None, 1)


@pytest.mark.parametrize("last", [0, 20_000])
def test_few_even_last_digits_are_no_step(last: int) -> None:
    """As of shares with three digits that count: the small ones have four behind the point."""
    numbers = np.arange(40_000) % 997 / 1000
    numbers[last : last + 3] = 0.0324, 0.0418, 0.0736
    (share,) = draft_schema(pa.table({"share": numbers})).schema.columns
    assert (share.step, share.decimals) == (None, 4)
    numbers[last : last + 12] = np.arange(24, 48, 2) / 10_000
    numbers[np.round(numbers, 3) == numbers] *= 2
    (share,) = draft_schema(pa.table({"share": numbers})).schema.columns
    assert (share.step, share.decimals) == (0.0002, None)


def test_private_bounds_go_out_to_the_next_steps() -> None:
    marked = (
        Draft(replace(SCHEMA, columns=(LIMIT, COST)))
        .to_toml()
        .replace("lower = 10000\nupper = 500000", 'bounds = "private"')
        .replace("lower = 0.0\nupper = 99.99", 'bounds = "private"')
    )
    draft = Draft.from_toml(marked, "it")
    assert draft.private == ("limit", "cost")
    counted = draft.approx_bounds_schema("it")
    assert [(c.step, c.decimals) for c in counted.columns] == [(None, None)] * 2
    limit, cost = (
        with_private_bounds(column, bounds)
        for column, bounds in zip(
            draft.schema.columns, ((9_999, 31_000), (0.001, 9.991)), strict=True
        )
    )
    assert (limit.lower, limit.upper, limit.origin) == (0, 40_000, Origin.PRIVATE)
    assert (cost.lower, cost.upper) == (0.0, 10.0)


@pytest.mark.parametrize(
    "said", ["step = 0", "step = -1.5", 'step = "a"', "decimals = 99", "step = 1e-300"]
)
def test_wrong_steps_beside_private_bounds_get_one_line(said: str) -> None:
    column = "name = 'x'\nkind = 'continuous'\ndtype = 'float64'\nbounds = 'private'"
    with pytest.raises(SchemaError, match=r"^it: column 'x'"):
        Draft.from_toml(f"[[columns]]\n{column}\n{said}\n", "it")
