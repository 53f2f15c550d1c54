"""The benchmark of rows under a condition: what is compared with what, and its section."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.conditions import (
    HELD,
    KEPT,
    METHODS,
    REAL,
    distinct,
    figures_of,
    fulfilling,
    section,
)
from benchmarks.tables import SEPARATOR
from dpntk.evaluate.tables.baselines import rows_of
from dpntk.evaluate.tables.table import Table, read_real_table
from tests.helpers.tables import PEOPLE, people


@pytest.fixture
def table(tmp_path: Path) -> Table:
    (tmp_path / "a.csv").write_text(people(400))
    return read_real_table(tmp_path / "a.csv", "test", PEOPLE)


def test_rows_under_a_condition_are_those_that_fulfil_it(table: Table) -> None:
    old = fulfilling(table, "age >= 60 and ill = yes")
    assert 20 < len(old) < 200
    assert old.columns["age"].min() >= 60
    assert len(fulfilling(table, "not (age >= 60 and ill = yes)")) == len(table) - len(old)


def test_copies_of_a_row_count_once(table: Table) -> None:
    few = rows_of(table, np.arange(10))
    assert distinct(rows_of(table, np.tile(np.arange(10), 5))) == pytest.approx(distinct(few) / 5)
    found = figures_of(few, few)
    assert (found["TVD 1-way"], found["TVD 2-way"]) == (0, 0)
    assert figures_of(few, fulfilling(table, "age >= 60"))["TVD 1-way"] > 0.1
    nothing = rows_of(table, np.arange(0))
    assert figures_of(nothing, few) == {"rows": 0, "held-out rows": 10}


def test_the_means_are_over_conditions_of_which_all_have_rows() -> None:
    def run(where: str, method: str, value: float, share: float) -> tuple[str, dict[str, float]]:
        figures = {"TVD 1-way": value, "TVD 2-way": 2 * value, "distinct": 0.9}
        rows = {"rows": 1000.0, "held-out rows": 50.0, "share": share}
        key = SEPARATOR.join(("Adult", where, method, "0"))
        return key, rows | (figures if value else {"rows": 0.0})

    results = dict([
        *(run("b = 1", method, 0.2, 0.02) for method in METHODS),
        *(run("a = 1", method, 0.1, 0.01) for method in METHODS),
        run("c = 1", REAL, 0.3, 0.03), run("c = 1", KEPT, 0, 0.03), run("c = 1", HELD, 0.3, 0.03),
    ])  # fmt: skip
    lines = section(results).splitlines()
    assert lines[-14:-11] == [
        "| condition | of real | method | rows | TVD 1-way | TVD 2-way | distinct |",
        "|---|---|---|---|---|---|---|",
        "| `a = 1` | 1.00% | real records | 1,000 | 0.100 | 0.200 | 0.900 |",
    ]
    assert lines[-4:] == [
        "| `c = 1` | 3.00% | held to it | 1,000 | 0.300 | 0.600 | 0.900 |",
        "| mean of 2 | | real records | 1,000 | 0.150 | 0.300 | 0.900 |",
        "| mean of 2 | | drawn and kept | 1,000 | 0.150 | 0.300 | 0.900 |",
        "| mean of 2 | | held to it | 1,000 | 0.150 | 0.300 | 0.900 |",
    ]
