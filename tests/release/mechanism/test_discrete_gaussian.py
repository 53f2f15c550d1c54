"""The noise has the distribution that the accounting assumes.

The draws have no seed, so each test may fail by chance: with a probability below 1e-6.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpntk.release.mechanism import discrete_gaussian as sampler
from dpntk.release.mechanism.discrete_gaussian import discrete_gaussian

UNLIKELY = 1e-6
DRAWS = 1_000_000


def chi_square(draws: NDArray[np.int64], weights: dict[int, float]) -> float:
    """P value of the draws under probabilities proportional to `weights`; rare values are one."""
    total = sum(weights.values())
    values, found = np.unique(draws, return_counts=True)
    counts = dict(zip(values.tolist(), found.tolist(), strict=True))
    assert set(counts) <= set(weights)
    expected = {value: weight / total * len(draws) for value, weight in weights.items()}
    common = [value for value in weights if expected[value] > 10]
    observed = [counts.get(value, 0) for value in common]
    predicted = [expected[value] for value in common]
    rest = len(draws) - sum(predicted)
    if rest > 1e-6 * len(draws):
        observed.append(len(draws) - sum(observed))
        predicted.append(rest)
    scale = sum(observed) / sum(predicted)
    return float(stats.chisquare(observed, [p * scale for p in predicted]).pvalue)


@pytest.mark.parametrize("sigma", [Fraction(1, 2), 1, Fraction(7, 3), 3, 10])
def test_small_sigma_against_the_exact_probabilities(sigma: int | Fraction) -> None:
    reach = int(12 * sigma) + 1
    weights = {z: math.exp(-(z**2) / (2 * float(sigma) ** 2)) for z in range(-reach, reach + 1)}
    assert chi_square(discrete_gaussian(DRAWS, sigma), weights) > UNLIKELY


@pytest.mark.parametrize("sigma", [1, 3, 10])
def test_tails_to_seven_sigma(sigma: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every k equally likely, each of seven standard deviations gets a share of the draws.

    Within [k sigma, (k + 1) sigma) the rest of the sampler must then give z a probability
    proportional to exp(-z^2 / (2 sigma^2)) / exp(-k^2 / 2).
    """

    def evenly(tries: int) -> NDArray[np.int64]:
        return np.random.default_rng().integers(0, 7, tries)

    monkeypatch.setattr(sampler, "_half_normal_integers", evenly)
    draws = discrete_gaussian(DRAWS, sigma)
    weights = {z: math.exp(((z // sigma) ** 2 - (z / sigma) ** 2) / 2) for z in range(7 * sigma)}
    weights |= {-z: weight for z, weight in weights.items()}
    assert np.abs(draws).max() >= 6.5 * sigma - 1
    assert chi_square(draws, weights) > UNLIKELY


def test_tails_of_the_integer_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """K has probability proportional to q^(k^2), q = e^(-1/2): tried with a q that reaches far."""

    def likelier(size: int) -> NDArray[np.bool_]:
        return np.random.default_rng().random(size) < 0.95

    monkeypatch.setattr(sampler, "_exp_minus_half", likelier)
    drawn = sampler._half_normal_integers(DRAWS)
    assert drawn.max() > 7
    assert chi_square(drawn, {k: 0.95 ** (k * k) for k in range(40)}) > UNLIKELY


def test_the_event_that_decides_has_its_probability() -> None:
    happened = int(sampler._exp_minus_half(DRAWS).sum())
    assert stats.binomtest(happened, DRAWS, math.exp(-0.5)).pvalue > UNLIKELY


@pytest.mark.parametrize("sigma", [2**10, 2**27])
def test_tails_of_large_sigma(sigma: int) -> None:
    """Beyond 2, 3, 4 and 4.5 sigma there are as many draws as a normal distribution has."""
    sizes = np.abs(discrete_gaussian(DRAWS, sigma))
    for distance in (2.0, 3.0, 4.0, 4.5):
        beyond = int((sizes > distance * sigma).sum())
        share = 2 * stats.norm.sf(distance + 0.5 / sigma)
        assert stats.binomtest(beyond, DRAWS, share).pvalue > UNLIKELY
    assert sizes.max() < 8 * sigma


@pytest.mark.parametrize("sigma", [2**10, 2**27, 3 * 2**43 + 1, 2**56])
def test_large_sigma_is_normal(sigma: int) -> None:
    draws = discrete_gaussian(DRAWS, sigma)
    assert draws.dtype == np.int64
    spread = (draws + np.random.default_rng(0).random(DRAWS) - 0.5) / sigma
    assert stats.kstest(spread, "norm").pvalue > UNLIKELY
    # the low bits carry noise too
    assert len(np.unique(draws % 8)) == 8
    assert stats.chisquare(np.bincount(draws % 8)).pvalue > UNLIKELY


def test_whole_numbers_below_a_bound_are_equally_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all random words each gives a number once; those left over are drawn again, as 0 here."""

    def of_all_words(size: int, kind: type[np.unsignedinteger]) -> NDArray[Any]:
        shift = 48 if kind is np.uint64 else 0
        whole = np.arange(2**16, dtype=np.uint64) << np.uint64(shift)
        return (whole if size == len(whole) else np.zeros(size)).astype(kind)

    monkeypatch.setattr(sampler, "_random_words", of_all_words)
    for bound in (2, 3, 6, 1000, 40_000, 2**16 - 1):
        small = sampler._small_below(np.full(2**16, bound))
        one = sampler._uniform_below(bound, 2**16)  # of as few digits as it takes
        for drawn, words in ((small, 2**16), (one, 2 ** (bound - 1).bit_length())):
            counts = np.bincount(drawn, minlength=bound)
            each = words // bound * (2**16 // words)
            assert len(counts) == bound
            assert (counts[1:] == each).all()
            assert counts[0] == 2**16 - each * (bound - 1)


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
