"""The benchmark of tables: how data are split, what is kept of a run, and its section."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from benchmarks.baselines import mst_aim
from benchmarks.sections import put_section
from benchmarks.tables import SCHEMAS, Run, delta_for, prepare, section
from dpntk.common.schema.drafts.toml import read_schema
from dpntk.evaluate.tables.table import Table, read_real_table
from tests.helpers.tables import PEOPLE, people


def test_the_test_part_is_a_fifth_that_the_training_part_lacks(tmp_path: Path) -> None:
    rows = pa.table({"x": range(100), "y": ["a", "b"] * 50})
    parquet.write_table(rows, tmp_path / "rows.parquet")
    data = prepare("Mine", f"{tmp_path}/rows.parquet:y", tmp_path / "made")
    train, test = (parquet.read_table(path)["x"].to_pylist() for path in (data.train, data.test))
    assert (len(train), len(test)) == (80, 20)
    assert sorted(train + test) == list(range(100))
    assert data.schema.label == "y"
    again = prepare("Mine", f"{tmp_path}/rows.parquet:y", tmp_path / "again")
    assert parquet.read_table(again.test)["x"].to_pylist() == test


def test_a_test_part_that_is_there_is_used_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    csv.write_csv(pa.table({"x": [1.5, 2.5, 3.5], "y": ["a", "b", "a"]}), folder / "train.csv")
    csv.write_csv(pa.table({"x": [9.5], "y": ["c"]}), folder / "test.csv")
    data = prepare("Mine", f"{folder}:y", tmp_path / "made")
    assert parquet.read_table(data.train)["x"].to_pylist() == [1.5, 2.5, 3.5]
    assert parquet.read_table(data.test)["x"].to_pylist() == [9.5]
    assert data.schema.classes == ("a", "b", "c")  # a class of the test part is known as well


@pytest.mark.parametrize(
    ("name", "inputs", "classes"),
    [("adult", 15, 2), ("census", 41, 2), ("credit", 30, 2), ("covertype", 55, 7)],
)
def test_public_schemas_are_declared_and_settled(name: str, inputs: int, classes: int) -> None:
    schema = read_schema(SCHEMAS / f"{name}.toml")
    assert (len(schema.columns), len(schema.classes)) == (inputs, classes)
    assert not schema.from_data


def test_a_data_set_with_a_public_schema_has_that_one(tmp_path: Path) -> None:
    schema = read_schema(SCHEMAS / "adult.toml")
    row = {c.name: [c.lower if c.kind.numeric else c.categories[0]] * 5 for c in schema.columns}
    parquet.write_table(pa.table(row), tmp_path / "rows.parquet")
    assert prepare("Adult", f"{tmp_path}/rows.parquet:income", tmp_path / "made").schema == schema


@pytest.mark.parametrize(
    ("records", "delta"), [(100, 1e-5), (32_561, 1e-5), (199_523, 1e-6), (464_810, 1e-6)]
)
def test_delta_is_well_below_one_in_the_records(records: int, delta: float) -> None:
    assert delta_for(records) == pytest.approx(delta)


def test_runs_that_differ_in_anything_are_kept_apart() -> None:
    runs = [
        Run("Adult", "default", 1.0, 0),
        Run("Census", "default", 1.0, 0),
        Run("Adult", "rff (DP-MERF)", 1.0, 0),
        Run("Adult", "default", 0.2, 0),
        Run("Adult", "default", 1.0, 1),
    ]
    assert len({run.key for run in runs}) == 5


def test_the_section_has_mean_and_standard_deviation_over_the_seeds() -> None:
    results = {
        Run("Adult", method, 1.0, seed).key: {
            "ROC": value,
            "TVD 1-way": 0.01,
            "constant ROC": 0.5,
            "seconds": 10.0 + seed,
        }
        for method, seed, value in (
            ("default", 0, 0.8), ("default", 1, 0.82), ("real records", 0, 0.9)
        )
    }  # fmt: skip
    lines = section(results).splitlines()
    assert "## Adult" in lines
    assert lines[-3:] == [
        "| real records |  | 1 | 0.900 | 0.010 |  |",
        "| default | 1 | 2 | 0.810 ± 0.014 | 0.010 ± 0.000 | 10 |",
        "| constant | | | 0.500 |  | |",
    ]


@pytest.fixture
def rows(tmp_path: Path) -> Table:
    (tmp_path / "people.csv").write_text(people(400))
    return read_real_table(tmp_path / "people.csv", "train", PEOPLE)


def test_competitors_get_codes_of_cells_and_categories(rows: Table) -> None:
    codes, sizes = mst_aim.codes_of(rows)
    assert sizes == [32, 33, 3, 4, 2]  # pay and town may be missing
    assert codes.min() == 0
    assert (codes.max(axis=0) < sizes).all()
    age, pay = rows.columns["age"], rows.columns["pay"]
    assert codes[:, 0].tolist() == np.rint(age / 99 * 31).astype(int).tolist()
    assert ((codes[:, 1] == 32) == np.isnan(pay)).all()
    assert codes[:, 4].tolist() == rows.labels.tolist()


def test_what_competitors_make_is_a_table_within_the_bounds(rows: Table) -> None:
    codes, _ = mst_aim.codes_of(rows)
    made = mst_aim.table_of(codes, PEOPLE, np.random.default_rng(0))
    for name in ("grade", "town", "ill"):
        assert made.columns[name].tolist() == rows.columns[name].tolist()
    age, pay = made.columns["age"], made.columns["pay"]
    assert (age == np.rint(age)).all()
    assert np.abs(age - rows.columns["age"]).max() <= 99 / 31 + 0.5
    assert (np.isnan(pay) == np.isnan(rows.columns["pay"])).all()
    ends = mst_aim.table_of(np.array([[0, 0, 0, 0, 0], [31, 31, 2, 2, 1]] * 50), PEOPLE,
                                np.random.default_rng(1))  # fmt: skip
    for name, bound in (("age", 99), ("pay", 1000)):
        assert ends.columns[name].min() == 0
        assert bound - 1e-9 < ends.columns[name].max() <= bound


def test_rows_pass_to_the_other_environment_and_back(
    rows: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import json, sys, numpy\n"
        "job, rows, made = sys.argv[1:]\n"
        "assert json.load(open(job)) == {'method': 'MST', 'epsilon': 1.0, 'delta': 1e-5,\n"
        "    'seed': 3, 'sizes': [32, 33, 3, 4, 2]}\n"
        "numpy.save(made, numpy.load(rows)[::-1])\n"
    )
    monkeypatch.setattr(mst_aim, "environment", lambda: Path(sys.executable))
    monkeypatch.setattr(mst_aim, "_SCRIPT", script)
    made = mst_aim.rows_of(rows, "MST", 1.0, 1e-5, 3, tmp_path)
    assert made.labels.tolist() == rows.labels[::-1].tolist()


def test_a_section_takes_the_place_of_its_own_and_of_no_other(tmp_path: Path) -> None:
    path = tmp_path / "results.md"
    put_section("# B\n\nold\n", path)
    put_section("# A\n\n## part\n\nother\n", path)
    put_section("# B\n\nnew\n", path)
    assert path.read_text() == "# A\n\n## part\n\nother\n\n# B\n\nnew\n"
