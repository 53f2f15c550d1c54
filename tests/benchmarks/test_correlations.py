"""The benchmark of correlations in few rows: its split, its yardstick, its figures, its section."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from benchmarks.baselines.copula import copula_rows
from benchmarks.correlations import FIGURES, predictable, prepare, r2_of, section
from benchmarks.tables import Data, Run
from dpntk.evaluate.tables.scores import R2
from dpntk.evaluate.tables.table import read_real_table
from tests.helpers.tables import PEOPLE, people

CORRELATION = 0.8


@pytest.fixture
def numbers(tmp_path: Path) -> Data:
    """Rows of two numbers that go together, a third that does not, and a category."""
    random = np.random.default_rng(0)
    count = 2000
    first, second, noise = random.standard_normal((3, count))
    columns = {
        "first": 50 + 10 * first,
        "second": 5 + (CORRELATION * first + (1 - CORRELATION**2) ** 0.5 * second),
        "apart": 20 * noise,
        "sign": np.where(first > 0, "plus", "minus"),
    }
    csv.write_csv(pa.table(columns), tmp_path / "numbers.csv")
    return prepare(tmp_path / "numbers.csv", 0, tmp_path / "made")


def test_a_quarter_of_the_rows_is_held_out_by_the_seed(numbers: Data, tmp_path: Path) -> None:
    parts = [parquet.read_table(path) for path in (numbers.train, numbers.test)]
    assert [len(part) for part in parts] == [1500, 500]
    assert len(set().union(*(part["first"].to_pylist() for part in parts))) == 2000
    other, again = (prepare(tmp_path / "numbers.csv", s, tmp_path / str(s)) for s in (1, 0))
    assert parquet.read_table(again.test) == parts[1] != parquet.read_table(other.test)
    assert numbers.schema.label is None


def test_the_copula_returns_what_goes_together_if_there_is_little_noise(numbers: Data) -> None:
    real = read_real_table(numbers.train, "train", numbers.schema)
    made = copula_rows(real, 1000.0, 1e-5, 0)
    assert len(made) == len(real)
    for one, other in itertools.combinations(("first", "second", "apart"), 2):
        found, true = (np.corrcoef(t.columns[one], t.columns[other])[0, 1] for t in (made, real))
        assert abs(found - true) < 0.08, (one, other)
    for name in ("first", "second"):
        assert abs(made.columns[name].mean() - real.columns[name].mean()) < 1


def test_the_copula_finds_nothing_but_noise_if_there_is_much(numbers: Data) -> None:
    real = read_real_table(numbers.train, "train", numbers.schema)
    made = [copula_rows(real, 0.003, 1e-5, seed) for seed in range(8)]
    found = [np.corrcoef(one.columns["first"], one.columns["second"])[0, 1] for one in made]
    assert np.mean(found) < CORRELATION / 2


def test_the_copula_keeps_categories_and_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(people(1000))
    real = read_real_table(tmp_path / "people.csv", "train", PEOPLE)
    made = copula_rows(real, 1000.0, 1e-5, 0)
    shares = [np.isnan(table.columns["pay"]).mean() for table in (made, real)]
    assert abs(shares[0] - shares[1]) < 0.06
    towns = [np.bincount(t.columns["town"] + 1, minlength=4) / len(t) for t in (made, real)]
    assert np.abs(towns[0] - towns[1]).max() < 0.06


def test_products_of_ranks_of_two_rows_differ_by_at_most_their_number() -> None:
    for columns in range(2, 9):
        every = np.array(list(itertools.product((-1.0, 1.0), repeat=columns)))
        pairs = np.triu_indices(columns, 1)
        products = np.array([np.outer(row, row)[pairs] for row in every])
        largest = np.linalg.norm(products - products[0], axis=1).max()
        assert largest <= columns
        assert largest > columns - 0.5


def test_numbers_are_predicted_where_real_rows_allow_it(numbers: Data) -> None:
    train, test = (
        read_real_table(p, "train", numbers.schema) for p in (numbers.train, numbers.test)
    )
    assert set(predictable(numbers)) == {"first", "second"}
    assert abs(r2_of(train, test, "second") - CORRELATION**2) < 0.08
    assert r2_of(train, test, "apart") < 0.05


def test_the_section_has_means_by_table_epsilon_and_method() -> None:
    results = {
        Run(name, method, epsilon, seed).key: {
            **dict.fromkeys(FIGURES, value),
            "rows": 1500.0,
            "columns": 4.0,
        }
        for name, method, epsilon, seed, value in (
            ("b", "default", 1.0, 0, 0.1),
            ("b", "default", 1.0, 1, 0.3),
            ("b", "real records", 1.0, 0, 0.05),
            ("a", "default", 10.0, 0, 0.5),
        )
    }
    del results[Run("a", "default", 10.0, 0).key][R2]
    table = [line for line in section(results).splitlines() if line.startswith("| ")][1:]
    assert table == [
        f"| a | 1,500, 4 | 10 | default | 1 |{' 0.500 |' * 5}  |",
        f"| b | 1,500, 4 | 1 | real records | 1 |{' 0.050 |' * 6}",
        f"| b | 1,500, 4 | 1 | default | 2 |{' 0.200 |' * 6}",
    ]
