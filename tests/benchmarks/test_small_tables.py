"""The benchmark of few rows: which rows are taken, what is compared, and its section."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pyarrow import csv, parquet

from benchmarks.small_tables import ALL, SmallRun, noisy_columns, section, some_of
from benchmarks.tables import Data, Run
from dpntk.evaluate.tables.table import read_real_table
from tests.helpers.tables import PEOPLE, people


def whole(folder: Path, count: int) -> Data:
    (folder / "people.csv").write_text(people(count))
    path = folder / "train.parquet"
    parquet.write_table(csv.read_csv(folder / "people.csv"), path)
    return Data(path, path, PEOPLE)


def test_some_rows_are_taken_by_the_seed_and_all_are_all(tmp_path: Path) -> None:
    data = whole(tmp_path, 300)
    some = [some_of(data, 50, seed, tmp_path) for seed in (0, 1, 0)]
    first, other, again = (parquet.read_table(one.train)["id"].to_pylist() for one in some)
    assert len(set(first)) == 50
    assert set(first) != set(other)
    assert first == again
    assert some_of(data, ALL, 0, tmp_path) == some_of(data, 300, 0, tmp_path) == data


def test_noisy_columns_are_those_of_the_rows_where_there_is_little_noise(tmp_path: Path) -> None:
    data = whole(tmp_path, 2000)
    made = noisy_columns(data, Run("People", "noisy columns", 1000.0, 0))
    real = read_real_table(data.train, "train", PEOPLE)
    assert len(made) == len(real) == 2000
    for label in range(2):
        town, true = (
            np.bincount(table.columns["town"][table.labels == label] + 1, minlength=4)
            for table in (made, real)
        )
        assert np.abs(town - true).max() < 10
    ages = made.columns["age"][made.labels == 1]
    assert abs(ages.mean() - 70) < 3
    assert abs(np.corrcoef(ages, made.columns["grade"][made.labels == 1])[0, 1]) < 0.15


def test_the_section_is_in_order_of_rows_with_all_at_the_end() -> None:
    results = {
        SmallRun(rows, Run("Adult", method, epsilon, seed)).key: {
            "ROC": value,
            "TVD 1-way": 0.01,
            "seconds": 10.0,
        }
        for rows, method, epsilon, seed, value in (
            (0, "default", 1.0, 0, 0.9),
            (1000, "noisy columns", 1.0, 0, 0.6),
            (1000, "default", 1.0, 0, 0.7),
            (1000, "default", 1.0, 1, 0.8),
            (1000, "default", 0.2, 0, 0.5),
        )
    }
    assert section(results).splitlines()[-6:] == [
        "| rows | epsilon | method | seeds | ROC | TVD 1-way | seconds |",
        "|---|---|---|---|---|---|---|",
        "| 1,000 | 0.2 | default | 1 | 0.500 | 0.010 | 10 |",
        "| 1,000 | 1 | default | 2 | 0.750 | 0.010 | 10 |",
        "| 1,000 | 1 | noisy columns | 1 | 0.600 | 0.010 | 10 |",
        "| all | 1 | default | 1 | 0.900 | 0.010 | 10 |",
    ]
