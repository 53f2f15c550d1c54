"""Associations of categories with one another and with numbers, against values known by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import contingency

from dpntk.evaluate.tables.fidelity.associations import (
    association_error,
    correlation_ratio,
    cramers_v,
)
from tests.helpers.rows import numbers, table


def test_cramers_v_is_that_of_many_rows_less_what_chance_gives() -> None:
    random = np.random.default_rng(0)
    first = random.integers(0, 3, 100_000)
    second = np.where(random.random(len(first)) < 0.4, first, random.integers(0, 5, len(first)))
    counts = np.zeros((3, 5), dtype=np.int64)
    np.add.at(counts, (first, second), 1)
    plain = contingency.association(counts, method="cramer")
    assert cramers_v(first, second) == pytest.approx(plain, abs=1e-3)
    few = np.array([0, 1, 2] * 10)
    assert contingency.association(counts[:, :3], method="cramer") > 0
    chance = [cramers_v(few, random.permutation(few)) for _ in range(400)]
    assert np.mean(chance) < 0.1  # .24 without the correction
    assert cramers_v(few, few) == pytest.approx(1)
    assert cramers_v(few, np.zeros_like(few)) == 0


def test_the_correlation_ratio_as_computed_by_hand() -> None:
    """Means 1 and 5 about 3: 16 of the 18 are between groups; of 2 + 2 rows 1 degree is lost."""
    groups, values = np.array([0, 0, 7, 7]), np.array([0.0, 2.0, 4.0, 6.0])
    explained = 1 - (4 / 20) * 3 / 2
    assert correlation_ratio(groups, values) == pytest.approx(math.sqrt(explained))
    assert correlation_ratio(groups, np.array([1.0, 1, 2, 2])) == pytest.approx(1)
    assert correlation_ratio(groups, np.ones(4)) == 0
    assert correlation_ratio(np.zeros(4, dtype=np.int64), values) == 0
    random = np.random.default_rng(0)
    many = np.arange(300) % 30
    chance = [correlation_ratio(many, random.standard_normal(300)) ** 2 for _ in range(200)]
    assert np.mean(chance) < 0.03  # .1 without the correction


def test_lost_associations_show() -> None:
    ages, jobs, labels = [10.0, 11, 12, 80, 81, 82] * 9, [0, 0, 0, 1, 1, 1] * 9, [0, 0, 0, 1, 1, 1]
    kept = table(ages, jobs, labels * 9)
    lost = table(ages, jobs, [0] * 27 + [1] * 27)
    assert association_error(kept, kept) == 0
    found = association_error(kept, lost)
    assert found == pytest.approx(2 / 3, abs=0.03)  # (age, job) is kept, the other two are not
    assert association_error(numbers([1, 2], [1, 2]), numbers([2, 1], [1, 2])) is None


def test_a_missing_category_is_one_and_a_missing_number_is_left_out() -> None:
    alike = [0, 0, -1, -1] * 10
    jobs = table([math.nan, 1, 99, math.nan] * 10, alike, [0, 0, 1, 1] * 10)
    other = table([1, math.nan, math.nan, 99] * 10, alike, [0, 0, 1, 1] * 10)
    assert association_error(jobs, other) == 0
    assert association_error(jobs, table([1] * 40, [0] * 40, [0, 0, 1, 1] * 10)) == pytest.approx(1)
