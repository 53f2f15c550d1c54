"""The Wasserstein distance is scipy's, in units of the declared range."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import wasserstein_distance as of_values

from dpntk.evaluate.tables.fidelity.wasserstein import wasserstein_distance
from tests.helpers.rows import SCHEMA, numbers, table


def test_it_is_the_mean_over_numeric_columns() -> None:
    first, second = np.random.default_rng(0).uniform(0, 9, (2, 2, 50))
    expected = np.mean([of_values(first[i], second[i]) for i in range(2)]) / 9
    found = wasserstein_distance(numbers(*first.tolist()), numbers(*second.tolist()))
    assert found == pytest.approx(expected)


def test_it_is_computed_by_hand_without_missing_values_and_within_the_bounds() -> None:
    ages = table([0, 20, math.nan], [0] * 3, [0] * 3)
    assert wasserstein_distance(ages, table([10, 30], [1] * 2, [1] * 2)) == pytest.approx(0.1)
    assert wasserstein_distance(ages, table([0, 500], [0] * 2, [0] * 2)) == pytest.approx(0.4)
    assert wasserstein_distance(ages, table([math.nan], [0], [0])) is None
    assert SCHEMA.columns[0].upper == 100
