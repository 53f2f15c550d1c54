"""Noise multipliers are exact, and rounded up."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from pathlib import Path

import dp_accounting
import mpmath
import pytest

from dpntk.common.errors import BudgetError
from dpntk.release.mechanism.accountant import epsilon_for, noise_multiplier


@pytest.mark.parametrize(
    ("epsilon", "expected"), [(0.2, 16.304133), (1, 3.7306316), (10, 0.4998886)]
)
def test_known_values(epsilon: float, expected: float) -> None:
    assert noise_multiplier(epsilon, 1e-5) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    list(itertools.product((1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1000), (0.1, 1e-5, 1e-16, 1e-30))),
)
def test_agrees_with_dp_accounting_and_is_never_below(epsilon: float, delta: float) -> None:
    ours = noise_multiplier(epsilon, delta)
    theirs = dp_accounting.get_sigma_gaussian(epsilon, delta)
    assert theirs <= ours <= theirs * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan])
def test_epsilon_must_be_a_positive_number(epsilon: float) -> None:
    with pytest.raises(BudgetError, match=r"epsilon.*: it must be"):
        noise_multiplier(epsilon, 1e-5)


def test_an_epsilon_that_float64_cannot_tell_from_nothing_is_refused() -> None:
    """Its noise came out too small by more than the margin: 5e-7 of delta here."""
    with pytest.raises(BudgetError, match=r"epsilon=1\.61771e-06: 0\.0001 is the least"):
        noise_multiplier(1.6177060066403412e-06, 9.086239285687949e-41)


@pytest.mark.parametrize("delta", [0, -1e-5, 1, 2, math.nan])
def test_delta_must_be_a_probability(delta: float) -> None:
    with pytest.raises(BudgetError, match=r"delta.*: it must lie between 0 and 1"):
        noise_multiplier(1, delta)


def test_a_delta_that_float64_cannot_tell_from_nothing_is_refused() -> None:
    """Here delta came out too large by 3e-6 of itself."""
    for of_budget in (noise_multiplier, epsilon_for):
        with pytest.raises(BudgetError, match=r"delta=9\.99989e-321: 1e-100 is the least"):
            of_budget(0.00010954403565126312, 1e-320)


def exact_log_delta(multiplier: float, epsilon: float) -> mpmath.mpf:
    """With as many digits as it takes (Balle and Wang 2018, theorem 8)."""
    with mpmath.workdps(80):
        z, e = mpmath.mpf(multiplier), mpmath.mpf(epsilon)
        larger, smaller = (mpmath.erfc((e * z - s / (2 * z)) / mpmath.sqrt(2)) for s in (1, -1))
        return mpmath.log((larger - mpmath.exp(e) * smaller) / 2)


SMALL = list(itertools.product((1e-4, 1.3e-4, 1e-3), (1e-100, 3e-77, 1e-30, 1e-9, 1e-3)))


@pytest.mark.parametrize(("epsilon", "delta"), SMALL)
def test_the_smallest_epsilons_and_deltas_are_kept_exactly(epsilon: float, delta: float) -> None:
    multiplier = noise_multiplier(epsilon, delta)
    assert exact_log_delta(multiplier, epsilon) <= mpmath.log(delta)
    assert exact_log_delta(multiplier, epsilon_for(multiplier, delta)) <= mpmath.log(delta)


@pytest.mark.parametrize(
    ("multiplier", "delta"),
    [(759691.2, 4e-94), (489942.66692046646, 1.9e-99), (354.1440536941023, 0.0011), (1e9, 1e-15)],
)
def test_less_than_the_least_epsilon_is_rounded_up_to_it(multiplier: float, delta: float) -> None:
    """Where it was worked out, delta came out too large by up to 5e-7 of itself."""
    assert epsilon_for(multiplier, delta) == 1e-4
    assert exact_log_delta(multiplier, 1e-4) <= mpmath.log(delta)


@pytest.mark.parametrize("multiplier", [1.0, 3e5, 1e9])
def test_delta_alone_is_enough_from_what_the_noise_gives_on(multiplier: float) -> None:
    enough = float(mpmath.erf(1 / (mpmath.sqrt(8) * multiplier)))
    assert epsilon_for(multiplier, enough * (1 + 1e-8)) == 0.0
    assert epsilon_for(multiplier, enough * (1 - 1e-8)) > 0.0


@pytest.mark.parametrize("multiplier", [0.05, 0.5, 3.73, 50, 2000])
@pytest.mark.parametrize("delta", [0.01, 1e-5, 1e-20])
def test_epsilon_agrees_with_dp_accounting_and_is_never_below(
    multiplier: float, delta: float
) -> None:
    ours = epsilon_for(multiplier, delta)
    theirs = dp_accounting.get_epsilon_gaussian(multiplier, delta)
    assert theirs * (1 - 1e-12) <= ours <= theirs * (1 + 1e-6)


def test_epsilon_and_noise_are_inverse_to_one_another() -> None:
    for epsilon in (0.01, 1.0, 30.0):
        assert epsilon_for(noise_multiplier(epsilon, 1e-6), 1e-6) == pytest.approx(
            epsilon, rel=1e-6
        )


def test_noise_that_needs_no_epsilon() -> None:
    assert epsilon_for(1e6, 0.1) == 0.0


def test_a_dependency_that_is_compiled_first_warns_nobody(tmp_path: Path) -> None:
    """Python says `"is" with a literal` of autodp's sources, where users would read it."""
    # What autodp itself imports is compiled already, so that only autodp is compiled anew.
    code = "import scipy.integrate, scipy.optimize, scipy.special, scipy.stats, sys"
    code += f"; sys.pycache_prefix = {str(tmp_path)!r}"
    code += "; from dpntk.release.mechanism import accountant"
    code += "; print(accountant.log_delta(3.73, 1.0))"
    command = [sys.executable, "-W", "always::SyntaxWarning", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(math.log(1e-5), rel=1e-3)
    assert done.stderr == ""
