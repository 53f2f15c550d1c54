"""Epsilon of many subsampled steps: dp-accounting's, and never below closed forms."""

from __future__ import annotations

import math

import dp_accounting
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import BudgetError
from dpntk.release.mechanism.accountant import epsilon_for
from dpntk.release.mechanism.subsampled_gaussian import (
    SampledGaussian,
    calibrate_sampled_gaussian,
    sampled_epsilon,
)

DELTA = 1e-5


def theirs(run: SampledGaussian, delta: float, grid: float = 1e-4) -> float:
    accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=grid)
    step = dp_accounting.GaussianDpEvent(run.noise_multiplier)
    accountant.compose(dp_accounting.PoissonSampledDpEvent(run.sampling_prob, step), run.steps)
    return float(accountant.get_epsilon(delta))


@pytest.mark.parametrize(
    ("epsilon", "rate", "steps"), [(1.0, 1 / 60, 600), (0.3, 0.1, 50), (3.0, 0.01, 200)]
)
def test_the_noise_is_dp_accountings_within_a_hundredth_and_never_less(
    epsilon: float, rate: float, steps: int
) -> None:
    run = calibrate_sampled_gaussian(epsilon, DELTA, rate, steps)
    assert 0.99 * epsilon < theirs(run, DELTA) <= epsilon
    assert sampled_epsilon([run], DELTA) >= theirs(run, DELTA) * (1 - 1e-12)
    less = SampledGaussian(rate, run.noise_multiplier * 0.99, steps)
    assert theirs(less, DELTA, grid=1e-3) > epsilon


@pytest.mark.parametrize(
    ("steps", "multiplier", "delta"),
    [
        (1, 5.0, DELTA), (30, 5.0, DELTA),
        # Where what Fourier transforms lose is more than what rounding losses up adds.
        (600, 18.8, 1e-11), (1000, 60.0, 1e-11), (3000, 42.1, 1e-10), (10_000, 76.9, 1e-10),
    ],
)  # fmt: skip
def test_without_sampling_it_is_the_gaussian_mechanism(
    steps: int, multiplier: float, delta: float
) -> None:
    exact = epsilon_for(multiplier / math.sqrt(steps), delta)
    found = sampled_epsilon([SampledGaussian(1.0, multiplier, steps)], delta)
    assert exact * (1 - 1e-9) <= found <= exact * 1.02


def test_what_transforms_lose_is_never_a_gain() -> None:
    """Which way an error goes depends on the processor: of several, some go the wrong one."""
    for steps, multiplier in (
        (1000, 10.0), (1000, 30.0), (1000, 60.0), (1000, 100.0), (3000, 10.0), (3000, 100.0),
    ):  # fmt: skip
        exact = epsilon_for(multiplier / math.sqrt(steps), 1e-11)
        found = sampled_epsilon([SampledGaussian(1.0, multiplier, steps)], 1e-11)
        assert exact * (1 - 1e-9) <= found


def test_a_delta_that_rounding_would_hide_is_refused() -> None:
    with pytest.raises(BudgetError, match=r"delta=1e-12: over 600 steps less than 1\.1e-12 is"):
        calibrate_sampled_gaussian(1.0, 1e-12, 0.1, 600)
    assert sampled_epsilon([SampledGaussian(0.1, 4000.0, 600)], 1e-13) == math.inf


def test_one_sampled_step_has_the_divergence_of_its_two_normals() -> None:
    """Of (1 - rate) N(0, z^2) + rate N(1, z^2) from N(0, z^2): an integral in closed form."""
    run, delta = SampledGaussian(0.2, 1.0, 1), 1e-3
    epsilon = sampled_epsilon([run], delta)
    # The ratio exceeds e^epsilon beyond x*, where rate exp(x - 1/2) = e^epsilon - 1 + rate.
    q = run.sampling_prob
    beyond = math.log((math.expm1(epsilon) + q) / q) + 0.5

    def tail(x: float) -> float:
        return math.erfc(x / math.sqrt(2)) / 2

    exact = (1 - run.sampling_prob - math.exp(epsilon)) * tail(beyond) + run.sampling_prob * tail(
        beyond - 1
    )
    assert exact <= delta <= exact * 1.01


def test_a_step_with_an_exchanged_record_has_the_divergence_of_opposite_ones() -> None:
    run, delta = SampledGaussian(0.2, 1.0, 1), 1e-3
    epsilon = sampled_epsilon([run], delta, adjacency=Adjacency.REPLACE_ONE)
    q, worse = run.sampling_prob, math.exp(epsilon)

    def excess(y: float) -> float:
        """Of the densities, over that of N(0, 1)."""
        return (1 - q) * (1 - worse) + q * math.exp(-0.5) * (math.exp(-y) - worse * math.exp(y))

    below = optimize.brentq(excess, -50, 50)
    mass = stats.norm.cdf(np.array([below, below + 1, below - 1]))
    exact = (1 - q) * (1 - worse) * mass[0] + q * (mass[1] - worse * mass[2])
    assert exact <= delta <= exact * 1.01


@pytest.mark.parametrize("ratio", [0.7, 1.0, 1.3, 4.0])
@pytest.mark.parametrize("run", [SampledGaussian(0.2, 1.0, 1), SampledGaussian(0.7, 0.5, 1)])
def test_no_two_records_are_worse_to_exchange_than_opposite_ones(
    run: SampledGaussian, ratio: float
) -> None:
    """At every ratio of probabilities, so that the pair is the worst of any composition as well."""
    worst = divergence(run, math.log(ratio), (1.0, 0.0), (-1.0, 0.0))
    for angle in np.linspace(0, math.pi, 7):
        for first, second in ((1.0, 1.0), (0.5, 1.0), (1.0, 0.5), (0.0, 1.0), (1.0, 0.0)):
            other = (second * math.cos(angle), second * math.sin(angle))
            assert divergence(run, math.log(ratio), (first, 0.0), other) <= worst * (1 + 1e-3)


def divergence(
    run: SampledGaussian, epsilon: float, one: tuple[float, float], other: tuple[float, float]
) -> float:
    """Of a sampled step in two dimensions with one record, from that with another, on a grid."""
    axis = np.linspace(-9, 9, 901) * max(1.0, run.noise_multiplier)

    def normal(mean: float) -> NDArray[np.float64]:
        return np.asarray(stats.norm.pdf(axis, mean, run.noise_multiplier))

    def density(centre: tuple[float, float]) -> NDArray[np.float64]:
        return np.outer(normal(centre[1]), normal(centre[0]))

    nothing = (1 - run.sampling_prob) * density((0.0, 0.0))
    with_one, with_other = (nothing + run.sampling_prob * density(place) for place in (one, other))
    excess = np.maximum(with_one - math.exp(epsilon) * with_other, 0)
    return float(excess.sum() * (axis[1] - axis[0]) ** 2)


def test_runs_add_up() -> None:
    run = SampledGaussian(0.05, 2.0, 40)
    twice = sampled_epsilon([run, run], DELTA)
    assert twice == pytest.approx(theirs(SampledGaussian(0.05, 2.0, 80), DELTA), rel=1e-3)
    assert twice > sampled_epsilon([run], DELTA)


@pytest.mark.parametrize(
    ("rate", "multiplier", "steps"), [(0.0, 1.0, 1), (1.5, 1.0, 1), (0.5, 0.1, 1), (0.5, 1.0, 0)]
)
def test_what_cannot_be_accounted_for_is_refused(
    rate: float, multiplier: float, steps: int
) -> None:
    with pytest.raises(BudgetError):
        SampledGaussian(rate, multiplier, steps)


@pytest.mark.parametrize(
    ("entry", "wrong"),
    [("rate", "0.1"), ("rate", True), ("multiplier", None), ("steps", 1.0), ("steps", True)],
)
def test_what_is_no_number_is_refused(entry: str, wrong: object) -> None:
    run = SampledGaussian(0.1, 1.0, 10)
    assert SampledGaussian.from_json(run.to_json()) == run
    with pytest.raises(ValueError, match="no such number"):
        SampledGaussian.from_json({**run.to_json(), entry: wrong})
