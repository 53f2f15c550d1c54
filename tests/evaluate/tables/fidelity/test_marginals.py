"""Total variation distances of marginals mean what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpntk.common.schema.columns.codes import MISSING, UNLISTED
from dpntk.evaluate.tables.fidelity import combinations
from dpntk.evaluate.tables.fidelity.combinations import some_combinations
from dpntk.evaluate.tables.fidelity.marginals import (
    BINS,
    binned,
    column_distances,
    marginal_distance,
    total_variation,
)
from tests.helpers.rows import AGE, JOB, numbers, table


def test_total_variation_as_computed_by_hand() -> None:
    first, second = np.array([0, 0, 1, 2]), np.array([0, 1])
    assert total_variation(first, second, 3) == pytest.approx(1 / 4)
    # the same values, far apart: cells are then numbered anew
    assert total_variation(first * 10**12, second * 10**12, 10**13) == pytest.approx(1 / 4)


def test_numbers_are_cut_into_bins_between_their_bounds() -> None:
    ages = table([0, 4.9, 5, 99.9, 100, 170, -8, math.nan], [0] * 8, [0] * 8)
    assert binned(ages, AGE).tolist() == [0, 0, 1, 19, 19, 19, 0, BINS]
    jobs = table([0] * 5, [0, 1, 2, UNLISTED, MISSING], [0] * 5)
    assert binned(jobs, JOB).tolist() == [0, 1, 2, 3, 4]


def test_distances_of_tables_as_computed_by_hand() -> None:
    """Ages alike, jobs 1/2 apart, labels alike, but in the other table they go with other ages."""
    first = table([1, 1, 90, 90], [0, 0, 1, 1], [0, 0, 1, 1])
    second = table([1, 1, 90, 90], [0, 0, 0, 0], [0, 1, 0, 1])
    assert column_distances(first, second) == {"age": 0.0, "job": 0.5, "rich": 0.0}
    assert marginal_distance(first, second, 1) == pytest.approx(1 / 6)
    # (age, job): 1/2; (age, rich): 1/2; (job, rich): (0,0) 1/2 and 1/2, (0,1) 0 and 1/2, (1,1) 1/2
    assert marginal_distance(first, second, 2) == pytest.approx((1 / 2 + 1 / 2 + 1 / 2) / 3)
    # rows (1,0,0), (90,1,1) twice each; (1,0,0), (1,0,1), (90,0,0), (90,0,1) once: 1/4 in common
    assert marginal_distance(first, second, 3) == pytest.approx(3 / 4)
    assert [marginal_distance(first, first, ways) for ways in (1, 2, 3)] == [0, 0, 0]


def test_triples_see_what_no_pair_shows() -> None:
    """The third column is the exclusive or of the others, or it is not."""
    first, second = [0, 0, 9, 9], [0, 9, 0, 9]
    odd, even = numbers(first, second, [0, 9, 9, 0]), numbers(first, second, [9, 0, 0, 9])
    assert [marginal_distance(odd, even, ways) for ways in (1, 2, 3)] == [0, 0, 1]
    assert marginal_distance(numbers([1]), numbers([2]), 2) is None
    assert marginal_distance(odd, even, 3, bins=100) == 1


def test_more_bins_see_finer_differences() -> None:
    """Two numbers in the same twentieth of the range, not in the same hundredth."""
    first, second = numbers([0.01]), numbers([0.2])
    assert marginal_distance(first, second, 1) == 0
    assert marginal_distance(first, second, 1, bins=100) == 1
    assert binned(second, second.schema.columns[0], 100).tolist() == [2]


def test_some_combinations_are_drawn_without_listing_all() -> None:
    assert some_combinations(4, 2, 6) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert [combinations._combination(place, 4, 2) for place in range(6)] == some_combinations(
        4, 2, 6
    )
    drawn = some_combinations(2000, 3, 1000)  # of 1.3 thousand millions
    assert len(set(drawn)) == 1000
    assert all(0 <= i < j < k < 2000 for i, j, k in drawn)
    assert drawn == some_combinations(2000, 3, 1000)


def test_missing_values_are_a_bin_of_their_own() -> None:
    there, absent = table([0, 0], [0, 0], [0, 0]), table([math.nan] * 2, [MISSING] * 2, [0, 0])
    assert column_distances(there, absent) == {"age": 1.0, "job": 1.0, "rich": 0.0}
