"""Batches are Poisson samples: every record in every batch by a coin of its own."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from scipy import stats

from dpntk.common.errors import BudgetError
from dpntk.release.distill.sampling import poisson_sample

RECORDS, RATE, TIMES = 50, 0.2, 4000


def membership() -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Which records are in which batches, (times, records)."""
    found = np.zeros((TIMES, RECORDS))
    for row in found:
        row[poisson_sample(RECORDS, RATE)] = 1
    return found


def test_sizes_of_batches_are_binomial() -> None:
    sizes = membership().sum(1).astype(int)
    edges = np.arange(4, 17)
    observed = np.bincount(sizes.clip(4, 16) - 4, minlength=13)
    law = stats.binom(RECORDS, RATE)
    expected = law.pmf(edges)
    expected[0], expected[-1] = law.cdf(4), law.sf(15)
    assert stats.chisquare(observed, expected * TIMES).pvalue > 1e-6


def test_records_are_in_batches_independently_of_one_another_and_of_earlier_batches() -> None:
    found = membership()
    tolerance = 6 / math.sqrt(TIMES)
    assert np.abs(np.corrcoef(found.T) - np.eye(RECORDS)).max() < tolerance
    for record in range(RECORDS):
        column = found[:, record]
        assert abs(column.mean() - RATE) < tolerance * math.sqrt(RATE)
        assert abs(np.corrcoef(column[:-1], column[1:])[0, 1]) < tolerance


def test_records_stay_in_their_order_and_a_rate_of_one_takes_all() -> None:
    assert np.array_equal(poisson_sample(7, 1.0), np.arange(7))
    assert (np.diff(poisson_sample(1000, 0.5)) > 0).all()


def test_the_coin_is_the_operating_systems_and_not_above_the_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threshold = math.floor(RATE * 2.0**64)
    coins = np.array([threshold - 1, threshold, 0, 2**64 - 1], dtype=np.uint64)
    monkeypatch.setattr(os, "urandom", lambda size: coins.tobytes()[:size])
    assert poisson_sample(4, RATE).tolist() == [0, 2]


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1, math.nan, 1e-12])
def test_what_is_no_rate_is_refused(rate: float) -> None:
    with pytest.raises(BudgetError, match="sampling_prob="):
        poisson_sample(4, rate)
