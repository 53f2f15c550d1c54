"""Numbers of which a schema lists all: read, encoded, made and drafted as such."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpntk.common.errors import SchemaError
from dpntk.common.features.marginals.cells import MOST_CELLS
from dpntk.common.features.marginals.of_schema import column_of, level_column_of
from dpntk.common.schema.columns.checks import MOST_VALUES
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind, Transform
from dpntk.common.schema.csv_format import CsvFormat
from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.schema.drafts.private_bounds import approx_bounds_schema, with_private_bounds
from dpntk.common.schema.encoding import blocks_of
from dpntk.common.schema.origin import Origin
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources.tables.table import TableSource
from dpntk.embed.inference.schema import draft_schema
from dpntk.generate.tables.marginals.matching import round_to_steps
from dpntk.generate.tables.rows.values import records_of, values_of

BRACKETS = (19282.931640625, 25398.326171875, 41679.34375, 61102.97265625, 167844.53125)
INCOME = Column.continuous("income", BRACKETS[0], BRACKETS[-1], values=BRACKETS, missing=True)
FIRM = Column.integer("firm", 1, 10_000, values=[1, 10, 20, 100, 500, 1000, 5000, 10_000])
DOSE = Column.continuous("dose", 0.1, 0.7, values=[0.1, 0.2, 0.7], dtype="float32")
SCHEMA = TableSchema((INCOME, FIRM, DOSE))

numbers = st.floats(-1e9, 1e9)


def test_json_and_toml_give_back_values() -> None:
    assert TableSchema.from_json(SCHEMA.to_json()) == SCHEMA
    assert Draft.from_toml(Draft(SCHEMA).to_toml(), "it").schema == SCHEMA


def test_bounds_follow_from_the_list() -> None:
    entries = {"name": "x", "kind": "continuous", "dtype": "float64", "values": [0, 0.5, 2]}
    assert Column.from_json(entries) == Column.continuous("x", 0.0, 2.0, values=[0.0, 0.5, 2.0])


def test_marginals_have_a_cell_for_each() -> None:
    assert MOST_VALUES == MOST_CELLS
    values = [number**2 for number in range(MOST_VALUES)]
    schema = TableSchema((Column.integer("x", 0, values[-1], values=values),))
    (block,) = blocks_of(schema)
    records = block.encode(np.array(values, dtype=np.float64))
    column = column_of(block, 64)
    assert level_column_of(block, column) is None
    cells = column.cell(torch.from_numpy(records.astype(np.int64)))
    assert cells.tolist() == list(range(MOST_VALUES))


def test_few_have_a_soft_bin_each() -> None:
    block = blocks_of(SCHEMA)[1]
    records = block.encode(np.array(FIRM.values, dtype=np.float64))
    assert np.array_equal(records[:, 1:], 255 * np.eye(len(FIRM.values)))
    assert records[:, 0].tolist() == [round(255 * rank / 7) for rank in range(8)]


@given(st.sets(numbers, min_size=2, max_size=9), st.lists(numbers, min_size=1))
def test_a_number_counts_as_the_nearest(listed: set[float], found: list[float]) -> None:
    values = sorted(listed)
    column = Column.continuous("x", values[0], values[-1], values=values)
    for number, rounded in zip(found, column.rounded(np.array(found)), strict=True):
        least = min(abs(value - number) for value in values)
        assert rounded in values
        assert abs(rounded - number) == pytest.approx(least, abs=1e-6)
    assert column.rounded(np.array(values)).tolist() == values


def test_there_may_be_no_number_between_two() -> None:
    values = [1.0, math.nextafter(1.0, 2.0), 2.0]
    column = Column.continuous("x", 1.0, 2.0, values=values)
    assert column.rounded(np.array([*values, 1.6, 1.4])).tolist() == [*values, 2.0, values[1]]
    (block,) = blocks_of(TableSchema((column,)))
    assert np.array_equal(block.encode(np.array(values))[:, 1:], 255 * np.eye(3))


def test_rows_are_read_and_made_of_the_list(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("income,firm,dose\n0,15,0.16\nNA,14,0.46\n30000,9e9,-3\n")
    schema = replace(SCHEMA, csv=CsvFormat(missing=("NA",)))
    read = TableSource.open(tmp_path / "a.csv", schema).values()
    assert np.array_equal(
        read["income"], [BRACKETS[0], np.nan, BRACKETS[1]], equal_nan=True
    )  # fmt: skip
    assert read["firm"].tolist() == [20, 10, 10_000]  # half-way, to the larger one
    assert read["dose"].tolist() == [0.2, 0.7, 0.1]
    records = np.random.default_rng(0).random((500, SCHEMA.record_size), dtype=np.float32)
    made = values_of(SCHEMA, records, np.zeros(500, dtype=np.int64))
    assert set(made["income"][~np.isnan(made["income"])]) == set(BRACKETS)
    assert set(made["firm"]) == set(FIRM.values)
    stored = [np.float64(np.float32(dose)) for dose in (0.2,)]
    assert set(stored) < set(made["dose"])
    assert len(set(made["dose"])) == 3


def test_rows_are_what_their_records_say() -> None:
    random = np.random.default_rng(0)
    values = {
        column.name: random.choice(np.array(column.values, dtype=np.float64), 300)
        for column in (INCOME, FIRM)
    }
    values["income"][::7] = np.nan
    schema = TableSchema((INCOME, FIRM))
    found = values_of(schema, records_of(schema, values), np.zeros(300, dtype=np.int64))
    assert all(np.array_equal(found[name], values[name], equal_nan=True) for name in values)


@pytest.mark.parametrize(
    ("column", "change"),
    [
        (FIRM, {"values": [10, 1]}),
        (FIRM, {"values": [1, 1, 10_000]}),
        (FIRM, {"values": [1]}),
        (FIRM, {"values": list(range(1, 131))}),
        (FIRM, {"values": [1, 2.5, 10_000]}),
        (FIRM, {"values": [1, True, 10_000]}),
        (FIRM, {"values": "1"}),
        (FIRM, {"upper": 9_999}),
        (FIRM, {"lower": 0}),
        (FIRM, {"step": 5}),
        (FIRM, {"transform": "log1p"}),
        (FIRM, {"origin": "private"}),
        (INCOME, {"decimals": 2}),
        (INCOME, {"values": [float("nan"), 1.0]}),
        (INCOME, {"values": [10**400, 10**401]}),
        (Column.boolean("x"), {"values": [0, 1]}),
        (Column.date("x", "2020-01-01", "2021-01-01"), {"values": [18_262, 18_628]}),
    ],
)
def test_other_lists_are_refused(column: Column, change: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match=f"column '{column.name}'"):
        Column.from_json({**column.to_json(), **change})


def test_private_bounds_leave_no_list() -> None:
    text = Draft(TableSchema((FIRM,))).to_toml().replace("lower = 1\n", 'bounds = "private"\n')
    with pytest.raises(SchemaError, match="leaves no room for upper and values"):
        Draft.from_toml(text, "it")


def test_bounds_that_are_found_leave_no_list() -> None:
    found = with_private_bounds(FIRM, (0, 64))
    assert (found.lower, found.upper, found.values) == (0, 64, ())
    (counted,) = approx_bounds_schema(TableSchema((FIRM,)), ["firm"]).columns
    assert (counted.transform, counted.values) == (Transform.SIGNED_LOG, ())


def test_rows_have_the_features_of_what_is_written() -> None:
    records = np.random.default_rng(0).random((200, SCHEMA.record_size), dtype=np.float32)
    round_to_steps(records, SCHEMA)
    for block, last in zip(blocks_of(SCHEMA), (4, 7, 2), strict=True):
        ranks = last * records[:, block.place.start]
        assert np.allclose(ranks, np.rint(ranks), atol=1e-5)
        assert len(np.unique(np.rint(ranks))) == last + 1


def test_what_was_looked_up_is_said() -> None:
    schema = replace(SCHEMA, columns=(replace(FIRM, origin=Origin.FROM_DATA), DOSE))
    assert "bounds, listed values, categories" in schema.from_data[0]
    assert "bounds, listed values and categories" in schema.known[0]
    plain = replace(schema, columns=(Column.integer("age", 0, 99),))
    assert "listed" not in " ".join((*plain.from_data, *plain.known))


def test_the_draft_lists_numbers_that_are_few_and_frequent(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = 2_000
    cubes = random.permutation(np.resize(np.arange(11) ** 3, rows))
    columns = {
        "income": random.choice(BRACKETS, rows),
        "firm": random.choice(FIRM.values, rows),
        "cubes": cubes,
        "rate": cubes / 10,  # 10,001 steps
        "age": random.integers(0, 90, rows),
        "tens": 10 * random.integers(0, 30, rows),
        "odd": random.choice([1, 3, 5, 7, 9, 10], rows),
        "visits": np.minimum(random.geometric(0.2, rows) ** 2, 500),  # whose tail is rare
        "weight": random.normal(70, 9, rows),
        "many": random.permutation(np.resize(np.arange(100) ** 3, rows)),
    }
    expected = {"income", "firm", "cubes", "rate"}
    for table in (pa.table(columns), tmp_path / "a.csv"):
        if isinstance(table, Path):
            lines = (",".join(map(str, row)) for row in zip(*columns.values(), strict=True))
            table.write_text("\n".join([",".join(columns), *lines]) + "\n")
        found = draft_schema(table, csv=CsvFormat()).schema.by_name
        assert {name for name, column in found.items() if column.values} == expected
        for name in expected:
            column = found[name]
            assert column.values == tuple(np.unique(columns[name]).tolist())
            assert (column.lower, column.upper) == (column.values[0], column.values[-1])
        assert found["firm"].kind is ColumnKind.INTEGER
    doses = random.choice(np.array([0.1, 0.25, 0.7134], np.float32), rows)
    (column,) = draft_schema(pa.table({"dose": doses}), csv=CsvFormat()).schema.columns
    assert column.values == tuple(np.unique(doses).astype(np.float64).tolist())


@pytest.mark.parametrize(
    ("rare", "listed"),
    [
        ([7_777], True),
        ([0], True),
        ([7_777] * 9 + [300] * 9, True),
        ([*range(2_000, 2_021)], False),  # more than 1 % of the rows
        ([100_000], False),  # too far from 10,000
        ([7_777] * 10, True),  # in the list
    ],
)
def test_rare_numbers_are_not_listed_and_count_as_the_nearest(
    capsys: pytest.CaptureFixture[str], rare: list[int], listed: bool
) -> None:
    firm = np.resize(FIRM.values, 2_000)
    firm[: len(rare)] = rare
    (column,) = draft_schema(pa.table({"firm": firm}), csv=CsvFormat()).schema.columns
    often = len(rare) == 10
    values = tuple(sorted((*FIRM.values, *rare[:1]))) if often else FIRM.values
    assert column.values == (values if listed else ())
    assert (column.lower, column.upper) == ((1, 10_000) if listed else (min(firm), max(firm)))
    said = capsys.readouterr().err
    assert ("firm: the draft lists the 8 numbers that nearly all rows have" in said) == (
        listed and not often
    )
    assert not any(str(number) in said for number in rare if number)
