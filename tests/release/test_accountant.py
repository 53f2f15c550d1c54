"""Noise multipliers are exact, and rounded up."""

from __future__ import annotations

import itertools
import math

import dp_accounting
import pytest

from dpntk.common.errors import BudgetError
from dpntk.release.accountant import noise_multiplier


@pytest.mark.parametrize(
    ("epsilon", "expected"), [(0.2, 16.304133), (1, 3.7306316), (10, 0.4998886)]
)
def test_known_values(epsilon: float, expected: float) -> None:
    assert noise_multiplier(epsilon, 1e-5) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    list(itertools.product((1e-3, 0.01, 0.1, 1, 10, 100, 1000), (0.1, 1e-5, 1e-16, 1e-30))),
)
def test_agrees_with_dp_accounting_and_is_never_below(epsilon: float, delta: float) -> None:
    ours = noise_multiplier(epsilon, delta)
    theirs = dp_accounting.get_sigma_gaussian(epsilon, delta)
    assert theirs <= ours <= theirs * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan])
def test_epsilon_must_be_a_positive_number(epsilon: float) -> None:
    with pytest.raises(BudgetError, match="--eps"):
        noise_multiplier(epsilon, 1e-5)


@pytest.mark.parametrize("delta", [0, -1e-5, 1, 2, math.nan])
def test_delta_must_be_a_probability(delta: float) -> None:
    with pytest.raises(BudgetError, match="--delta"):
        noise_multiplier(1, delta)
