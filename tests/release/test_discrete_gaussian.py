"""The noise has the distribution that the accounting assumes.

The draws have no seed, so each test may fail by chance: with a probability below 1e-6.
"""

from __future__ import annotations

import os
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpntk.release.discrete_gaussian import discrete_gaussian

UNLIKELY = 1e-6
DRAWS = 300_000


@pytest.mark.parametrize("sigma", [Fraction(1, 2), 1, Fraction(7, 3), 3, 10])
def test_small_sigma_against_the_exact_probabilities(sigma: int | Fraction) -> None:
    draws = discrete_gaussian(DRAWS, sigma)
    support = np.arange(-int(12 * sigma) - 1, int(12 * sigma) + 2)
    weights = np.exp(-(support**2) / (2 * float(sigma) ** 2))
    expected = weights / weights.sum() * DRAWS
    counts = np.array([(draws == value).sum() for value in support])
    common = expected > 10

    assert counts.sum() == DRAWS
    rest_observed, rest_expected = counts[~common].sum(), expected[~common].sum()
    observed = np.append(counts[common], rest_observed)
    predicted = np.append(expected[common], rest_expected)
    assert stats.chisquare(observed, predicted).pvalue > UNLIKELY


@pytest.mark.parametrize("sigma", [2**10, 2**27, 3 * 2**43 + 1, 2**56])
def test_large_sigma_is_normal(sigma: int) -> None:
    draws = discrete_gaussian(DRAWS, sigma)
    assert draws.dtype == np.int64
    spread = (draws + np.random.default_rng(0).random(DRAWS) - 0.5) / sigma
    assert stats.kstest(spread, "norm").pvalue > UNLIKELY
    # the low bits carry noise too
    assert len(np.unique(draws % 8)) == 8
    assert stats.chisquare(np.bincount(draws % 8)).pvalue > UNLIKELY


def test_every_call_and_every_process_draws_anew() -> None:
    np.random.seed(0)  # noqa: NPY002 - a seed that must not matter
    first = discrete_gaussian(50, 2**30)
    np.random.seed(0)  # noqa: NPY002
    assert not np.array_equal(first, discrete_gaussian(50, 2**30))

    receiving, sending = os.pipe()
    if (child := os.fork()) == 0:
        os.write(sending, discrete_gaussian(50, 2**30).tobytes())
        os._exit(0)
    here = discrete_gaussian(50, 2**30).tobytes()
    there = os.read(receiving, 1 << 16)
    os.waitpid(child, 0)
    assert len(there) == len(here)
    assert there != here


def test_the_operating_system_is_the_only_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the system's randomness replaced by a fixed stream, the draws are fixed too."""

    def with_stream(seed: int) -> list[int]:
        stream = np.random.default_rng(seed)
        monkeypatch.setattr(os, "urandom", stream.bytes)
        return list(discrete_gaussian(100, 2**40))

    assert with_stream(1) == with_stream(1) != with_stream(2)


@pytest.mark.parametrize("sigma", [0, -1, 2**56 + 1, Fraction(1, 2**60)])
def test_sigma_out_of_range_is_refused(sigma: int | Fraction) -> None:
    with pytest.raises(ValueError, match="sigma is"):
        discrete_gaussian(1, sigma)
