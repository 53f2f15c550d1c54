"""Independent columns keep marginals and nothing else; rows are left out as they should be."""

from __future__ import annotations

import pytest

from dpntk.evaluate.tables.baselines import independent_columns, keep_negatives, some_rows
from dpntk.evaluate.tables.fidelity.associations import ASSOCIATIONS
from dpntk.evaluate.tables.fidelity.distances import distances
from tests.helpers.rows import drawn, table


def test_independent_columns_keep_marginals_and_nothing_else() -> None:
    rows = drawn(4000, 1)
    shuffled = independent_columns(rows, 0)
    found = distances(shuffled, rows).figures
    assert found["TVD 1-way"] == 0
    assert found["TVD 2-way"] > 0.1
    assert found[ASSOCIATIONS.name] > 0.1
    high = shuffled.columns["age"] > 50
    assert shuffled.labels[high].mean() == pytest.approx(shuffled.labels.mean(), abs=0.03)


def test_negatives_are_thinned_out_and_positives_are_not() -> None:
    rows = table([float(i) for i in range(100)], [0] * 100, [i % 4 == 0 for i in range(100)])
    kept = keep_negatives(rows, 1, 0.4, seed=5)
    assert (kept.labels == 1).sum() == 25
    assert (kept.labels == 0).sum() == 30
    ages = kept.columns["age"]
    assert len(set(ages.tolist())) == 55
    assert ((ages % 4 == 0) == (kept.labels == 1)).all()  # columns stay together
    assert len(keep_negatives(rows, 0, 0.4, seed=5)) == 75 + 10


def test_some_rows_are_drawn_without_repeating_any() -> None:
    rows = drawn(50, 2)
    assert some_rows(rows, 50, 0) is rows
    ages = table([float(i) for i in range(50)], [0] * 50, [0] * 50)
    assert len(set(some_rows(ages, 20, 0).columns["age"].tolist())) == 20
