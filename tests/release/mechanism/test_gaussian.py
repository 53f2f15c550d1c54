"""What leaves the mechanism is the sum plus the noise that was promised, and nothing else."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
import torch
from scipy import stats

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import BudgetError
from dpntk.embed import Embedding
from dpntk.release import ClassCounts, PrivacyParameters
from dpntk.release.mechanism.accountant import noise_multiplier
from dpntk.release.mechanism.discrete_gaussian import FURTHEST
from dpntk.release.mechanism.gaussian import NoiseScale, add_noise, calibrate, no_noise
from dpntk.release.publishing.pipeline import unrecorded_release


def scale_for(
    embedding: Embedding, epsilon: float = 1.0, weight: float = 0.25, delta: float = 1e-5
) -> NoiseScale:
    feature_map, units = embedding.feature_map, embedding.grid.units_per_one
    still = no_noise(feature_map, units, adjacency=Adjacency.REPLACE_ONE, count_weight=weight)
    return calibrate(still, epsilon=epsilon, delta=delta)


def test_sigma_is_at_least_what_the_sensitivity_needs(embedding: Embedding) -> None:
    for epsilon in (0.01, 1.0, 100.0):
        for weight in (0.01, 0.25, 1.0):
            scale = scale_for(embedding, epsilon, weight)
            needed = noise_multiplier(epsilon, 1e-5) * math.sqrt(2 * (1 + weight**2))
            needed *= embedding.grid.units_per_one
            assert math.hypot(needed, 3) <= scale.sigma <= needed * (1 + 1e-9) + 2


def test_sigma_is_rounded_up_on_grids_so_coarse_that_it_matters(embedding: Embedding) -> None:
    for units in range(2, 160):  # of the smallest the smoothing needs a unit more
        still = no_noise(
            embedding.feature_map, units, adjacency=Adjacency.ADD_REMOVE, count_weight=0.5
        )
        scale = calibrate(still, epsilon=1.0, delta=1e-5)
        needed = Fraction(noise_multiplier(1.0, 1e-5))
        assert scale.sensitivity**2 >= Fraction(5, 4) * units**2
        assert scale.sensitivity**2 >= units**2 + scale.count_weight**2  # what a record adds
        assert scale.sigma**2 >= (needed * scale.sensitivity) ** 2 + 9


def test_the_noise_on_each_row_is_rounded_up_on_grids_so_coarse_that_it_matters() -> None:
    """The longer a part is made, the less noise it has; of the smoothing it has the whole."""
    factors = [0.3, 1.0, 1.7, 40.0]
    for sigma in range(4, 200):
        found = NoiseScale(1.0, 1, sigma, 1, np.array(factors)).sigmas(len(factors))
        for own, factor in zip(found.tolist(), factors, strict=True):
            assert own**2 >= (sigma**2 - 9) / Fraction(factor) ** 2 + 9


def test_the_noise_is_what_the_release_claims(embedding: Embedding) -> None:
    """(release m / grid - S) has variance sigma^2, and is a whole number before scaling."""
    scale = scale_for(embedding)
    noisy = add_noise(embedding.sums, embedding.counts, scale)
    noise = noisy.sums - embedding.sums
    assert noisy.sums.dtype == np.int64

    made = unrecorded_release(embedding, PrivacyParameters(epsilon=1.0))
    promise = made.guarantee
    assert promise.sigma / promise.grid == scale.sigma
    scaled = made.embedding.astype(np.float64) * promise.records / promise.grid - embedding.sums

    for drawn in (noise.ravel() / scale.sigma, scaled.ravel() / (promise.sigma / promise.grid)):
        # a variance estimated from N draws is off by sqrt(2 / N); 6 of these are unlikely
        assert abs(np.mean(drawn**2) - 1) < 6 * math.sqrt(2 / drawn.size)
        assert abs(np.mean(drawn)) < 6 / math.sqrt(drawn.size)
    assert noisy.counts is not None
    counts = (noisy.counts - embedding.counts * scale.count_weight) / scale.sigma
    assert 0 < np.abs(counts).max() < 8


def test_two_releases_have_different_noise_whatever_is_seeded(embedding: Embedding) -> None:
    made = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002 - a seed that must not matter
        torch.manual_seed(0)
        made.append(unrecorded_release(embedding, PrivacyParameters(epsilon=1.0)))
    assert (made[0].embedding != made[1].embedding).mean() > 0.99
    assert (made[0].class_weights != made[1].class_weights).any()
    assert made[0].release_id != made[1].release_id


def test_noise_of_different_coordinates_is_independent(embedding: Embedding) -> None:
    scale = scale_for(embedding)
    noise = add_noise(embedding.sums, embedding.counts, scale).sums - embedding.sums
    for first, second in ((0, 1), (0, 2), (1, 2)):
        correlation = np.corrcoef(noise[:, first], noise[:, second])[0, 1]
        assert abs(correlation) < 6 / math.sqrt(len(noise))
    assert len(np.unique(noise)) == noise.size


def test_counts_have_noise_of_their_own(embedding: Embedding) -> None:
    """What is known of a count must not tell the noise of a sum."""
    noisy = add_noise(embedding.sums, embedding.counts, scale := scale_for(embedding))
    assert noisy.counts is not None
    of_counts = noisy.counts - embedding.counts * scale.count_weight
    assert not np.isin(of_counts, noisy.sums - embedding.sums).any()


def test_the_lowest_bits_of_large_sums_carry_noise() -> None:
    """Arithmetic in floats would leave them as they are, or at zero: they would tell the sum."""
    scale = NoiseScale(noise_multiplier=1.0, sensitivity=1, sigma=1000, count_weight=0)
    noisy = add_noise(np.full((20_000, 2), 2**61 + 1), np.zeros(2, dtype=np.int64), scale)
    assert noisy.sums.dtype == np.int64
    assert stats.chisquare(np.bincount(noisy.sums.ravel() % 8, minlength=8)).pvalue > 1e-6


def test_class_weights_come_from_the_noisy_counts(embedding: Embedding) -> None:
    made = unrecorded_release(embedding, PrivacyParameters(epsilon=100.0))
    assert made.class_weights.sum() == pytest.approx(1)
    assert (made.class_weights > 0).all()
    exact = embedding.counts / embedding.records
    assert not np.array_equal(made.class_weights, exact)
    assert np.abs(made.class_weights - exact).max() < 0.1
    noisy = unrecorded_release(
        embedding, PrivacyParameters(epsilon=0.01)
    )  # counts drowned in noise still give shares
    assert (noisy.class_weights > 0).all()


def test_add_remove_publishes_the_number_of_records_with_noise(embedding: Embedding) -> None:
    made = [
        unrecorded_release(
            embedding, PrivacyParameters(epsilon=1.0, adjacency=Adjacency.ADD_REMOVE)
        ).guarantee
        for _ in range(12)
    ]
    assert len({promise.records for promise in made}) > 2
    # three counts, each with noise of sigma / weight; 6 standard deviations are unlikely
    spread = made[0].sigma / 0.25 * math.sqrt(3)
    assert all(abs(promise.records - 200) < 6 * spread for promise in made)
    assert made[0].sensitivity == pytest.approx(math.sqrt(1 + 0.25**2))


def test_epsilon_under_the_other_adjacency(embedding: Embedding) -> None:
    """Exchanging is taking away and adding: sqrt(2) times as far for a nonnegative map."""
    promise = unrecorded_release(
        embedding, PrivacyParameters(epsilon=1.0, adjacency=Adjacency.ADD_REMOVE)
    ).guarantee
    expected = dp_accounting.get_epsilon_gaussian(promise.noise_multiplier / math.sqrt(2), 1e-5)
    assert promise.epsilon_replace_one == pytest.approx(expected, rel=1e-6)
    # the other way round nothing is promised: the number of records is published
    assert (
        unrecorded_release(embedding, PrivacyParameters(epsilon=1.0)).guarantee.epsilon_replace_one
        is None
    )


def test_a_grid_that_tells_the_number_of_records_is_refused_under_add_remove(
    embedding: Embedding,
) -> None:
    telling = replace(embedding, grid=replace(embedding.grid, capacity=embedding.records))
    with pytest.raises(BudgetError, match="a capacity that does not depend on it"):
        unrecorded_release(telling, PrivacyParameters(epsilon=1.0, adjacency=Adjacency.ADD_REMOVE))
    unrecorded_release(telling, PrivacyParameters(epsilon=1.0))  # public under replace-one


def test_classes_declared_equal_need_no_counts(embedding: Embedding) -> None:
    made = unrecorded_release(
        embedding, PrivacyParameters(epsilon=1.0, class_counts=ClassCounts.UNIFORM)
    )
    assert made.class_weights.tolist() == [1 / 3] * 3
    assert made.guarantee.sensitivity == pytest.approx(math.sqrt(2))
    assert "equally frequent" in made.statement
    both = unrecorded_release(
        embedding,
        PrivacyParameters(
            epsilon=1.0, adjacency=Adjacency.ADD_REMOVE, class_counts=ClassCounts.UNIFORM
        ),
    )
    assert both.class_weights.tolist() == [1 / 3] * 3
    assert both.guarantee.count_weight == 0.25  # for the number of records


@pytest.mark.parametrize("weight", [0.0, -1.0, 1.5, math.nan])
def test_count_weight_must_make_sense(embedding: Embedding, weight: float) -> None:
    with pytest.raises(BudgetError, match="count_weight="):
        unrecorded_release(embedding, PrivacyParameters(epsilon=1.0, count_weight=weight))


@pytest.mark.parametrize("delta", [1 / 200, 0.5])
def test_delta_that_allows_publishing_a_record_is_refused(
    embedding: Embedding, delta: float
) -> None:
    with pytest.raises(BudgetError, match="not below 1/n"):
        unrecorded_release(embedding, PrivacyParameters(epsilon=1.0, delta=delta))


def test_overflow_is_refused_before_anything_is_drawn(embedding: Embedding) -> None:
    scale = scale_for(embedding)
    with pytest.raises(BudgetError, match="do not fit 64 bits"):
        add_noise(np.full((2, 2), 2**63 - 2**40), np.zeros(2, dtype=np.int64), scale)
    with pytest.raises(BudgetError, match="more noise than 64 bits"):
        scale_for(embedding, epsilon=1e-4, delta=1e-9)


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_leave_room_for_the_farthest_noise(sign: int) -> None:
    """On either side: a sum that goes round would be one with the other sign."""
    scale, counts = NoiseScale(1.0, 1, 2**40, 0), np.zeros(1, dtype=np.int64)
    least = 2**63 - 1 - FURTHEST * scale.sigma
    add_noise(np.array([[sign * (least - 1)]]), counts, scale)
    with pytest.raises(BudgetError, match="do not fit 64 bits together"):
        add_noise(np.array([[sign * least]]), counts, scale)
