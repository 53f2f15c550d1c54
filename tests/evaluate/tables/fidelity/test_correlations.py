"""Correlations of numbers are compared by rank."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpntk.evaluate.tables.fidelity.correlations import correlation_error
from tests.helpers.rows import numbers


def test_correlations_are_compared_by_rank_where_nothing_is_missing() -> None:
    """Of three pairs one is turned round; the others are with a column that is constant once."""
    first = numbers([1, 2, 3, 9, 5], [1, 2, 3, 4, math.nan], [1, 2, 3, 4, 5])
    second = numbers([1, 2, 3, 9, 5], [4, 3, 2, 1, math.nan], [7, 7, 7, 7, 7])
    ranks = np.corrcoef([1, 2, 3, 5, 4], [1, 2, 3, 4, 5])[0, 1]
    assert correlation_error(first, second) == pytest.approx((2 + ranks + 1) / 3)
    assert correlation_error(first, first) == 0
    assert correlation_error(numbers([1, 2]), numbers([2, 1])) is None


def test_correlations_are_spearmans() -> None:
    random = np.random.default_rng(0)
    values = random.integers(0, 9, (3, 200)).astype(np.float64)
    values[2] = values[0] + values[1] // 3
    ranks = stats.spearmanr(values.T).statistic[np.triu_indices(3, 1)]
    constant = numbers(*np.full((3, 5), 4.0).tolist())
    expected = np.abs(ranks).mean()
    assert correlation_error(numbers(*values.tolist()), constant) == pytest.approx(expected)
