"""A step of the mechanism: sensitivity in whole numbers, exact sums, and the noise it claims."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.errors import BudgetError
from dpntk.release.distill.class_means import ClassMeans
from dpntk.release.distill.gradients import REST, Contributions
from dpntk.release.distill.mechanism import (
    ONE,
    PLACES,
    _longest,
    clip_weights,
    clipped_sum,
    gradient_of,
    noise_sigma,
    noisy_sums,
)
from dpntk.release.file.distilled import VALUE_LEVELS
from tests.helpers.problems import Problem, draw_problem, plain_gradients, written_out

CLIPS = [1e-6, 0.05, 100.0]


def sums_of(problem: Problem, clip: float, rows: slice = slice(None)) -> NDArray[np.int64]:
    records, targets = problem.records[rows], problem.record_targets[rows]
    return clipped_sum(problem.loss, records, targets, centre=problem.centre, clip_norm=clip)


def contributions(problem: Problem, clip: float) -> list[NDArray[np.int64]]:
    """What each record by itself adds."""
    return [sums_of(problem, clip, slice(i, i + 1)) for i in range(len(problem.records))]


def hostile_problem() -> Problem:
    """Records that lie on support points or right beside them, where slopes are largest."""
    problem = draw_problem(30, 9, 30)
    points = problem.points.clone()
    near = problem.values[:9]
    points[:] = near
    points[4:] += torch.randint(-1, 2, near[4:].shape) / PLACES
    return replace(problem, points=points)


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize(("hostile", "points"), [(False, 9), (True, 9), (False, 120)])
def test_no_record_contributes_more_than_the_sensitivity(
    clip: float, hostile: bool, points: int
) -> None:
    """In whole numbers without end: Python's."""
    problem = hostile_problem() if hostile else draw_problem(points=points)
    for contribution in contributions(problem, clip):
        squares = sum(int(value) ** 2 for value in contribution.ravel())
        assert squares <= ONE**2


@pytest.mark.parametrize("clip", CLIPS)
def test_the_sum_is_exactly_that_of_its_records_in_any_company(clip: float) -> None:
    problem = draw_problem(2100, 9, 30)  # more than one batch of them
    whole = sums_of(problem, clip)
    picked = [0, 1, 2, 3, 350, 511, 512, 2047, 2048, 2099]
    alone = [sums_of(problem, clip, slice(i, i + 1)) for i in picked]
    rest = np.setdiff1d(np.arange(2100), picked)
    others = clipped_sum(
        problem.loss, problem.records[rest], problem.record_targets[torch.from_numpy(rest)],
        centre=problem.centre, clip_norm=clip,
    )  # fmt: skip
    assert np.array_equal(whole, others + sum(alone))


@pytest.mark.parametrize("clip", CLIPS)
def test_the_sum_is_that_of_clipped_shares(clip: float) -> None:
    problem = draw_problem()
    shares = written_out(problem.loss.shares(problem.values, problem.record_targets))
    norms = shares.norm(dim=1, keepdim=True)
    expected = (shares * (clip / norms).clamp_max(1)).sum(0)
    found = torch.from_numpy(sums_of(problem, clip)) * (clip / ONE)
    assert (found - expected).norm() < 1e-3 * len(problem.records) * min(clip, float(norms.max()))


def test_without_clipping_the_gradient_is_that_of_the_oracle() -> None:
    """From the integers, as with hardly any noise; but for the scale."""
    problem = draw_problem()
    expected = plain_gradients(problem).sum(0).numpy()
    sums = noisy_sums(
        problem.loss, problem.records, problem.record_targets, centre=problem.centre,
        clip_norm=100.0, noise_multiplier=1e-8,
    )  # fmt: skip
    found = 100.0 * gradient_of(problem.loss, sums)
    assert np.abs(found - expected).max() < 1e-3 * np.abs(expected).max()


def test_class_means_contribute_a_record_of_length_one() -> None:
    """In whole numbers: no record is longer, and none is much shorter but a black one."""
    problem = replace(draw_problem(), centre=0)
    means = ClassMeans(problem.points, problem.targets)
    for i in range(len(problem.records)):
        rows = slice(i, i + 1)
        found = clipped_sum(
            means, problem.records[rows], problem.record_targets[rows], centre=0, clip_norm=1.0
        ).reshape(3, 30)
        squares = sum(int(value) ** 2 for value in found.ravel())
        assert squares <= ONE**2
        assert squares > (0.999999 * ONE) ** 2 or i == 0
        assert np.flatnonzero(found.any(1)).tolist() in ([], [problem.record_targets[i].argmax()])


def shares_of(problem: Problem, rows: slice = slice(None)) -> Contributions:
    return problem.loss.shares(problem.values[rows], problem.record_targets[rows])


@pytest.mark.parametrize("quantile", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("hostile", [False, True])
def test_shares_are_clipped_no_more_than_needed(hostile: bool, quantile: float) -> None:
    problem = hostile_problem() if hostile else draw_problem(100, 150, 20)
    rows = slice(1, None)  # the first is black
    found = shares_of(replace(problem, centre=0), rows)
    norms = written_out(found).norm(dim=1)
    clip = float(norms.quantile(quantile))
    weights = clip_weights(found, clip)
    assert (weights * norms <= clip).all()
    assert (weights >= (1 - 1e-4) * (clip / norms).clamp_max(1.0)).all()


def test_a_norm_that_is_a_small_difference_is_not_taken_for_smaller() -> None:
    """Records and rests that nearly cancel, against exact fractions."""
    random = torch.Generator().manual_seed(0)
    record = torch.randint(-REST, REST, (200, 5), generator=random).double() / REST
    a = torch.randn(200, 4, generator=random, dtype=torch.float64) / 4
    b = a * (1 + 2.0**-52 * torch.randint(0, 9, a.shape, generator=random).double())
    nothing = torch.zeros(200, 1, dtype=torch.float64)
    found = Contributions(a, b, record, -record, nothing, nothing, nothing)
    bounds = _longest(found).tolist()
    for i in range(200):
        differences = [
            Fraction(x) - Fraction(y) for x, y in zip(a[i].tolist(), b[i].tolist(), strict=True)
        ]
        squares = sum(Fraction(x) ** 2 for x in record[i].tolist())
        assert sum(each**2 for each in differences) * squares <= Fraction(bounds[i]) ** 2


@pytest.mark.parametrize("name", ["of_record", "of_rest", "rest", "own", "seen"])
@pytest.mark.parametrize("value", [2.0**600, math.inf, math.nan])
def test_a_record_whose_sums_would_not_be_exact_counts_nothing(name: str, value: float) -> None:
    """And the others count."""
    found = shares_of(draw_problem())
    values = getattr(found, name).clone()
    values[5] = value
    weights = clip_weights(replace(found, **{name: values}), 1.0)
    assert np.flatnonzero(weights == 0).tolist() == [5]


@pytest.mark.parametrize(("name", "value"), [("of_record", 4.0), ("rest", 9.0)])
def test_numbers_beyond_53_bits_are_left_out_although_the_share_is_short(
    name: str, value: float
) -> None:
    found = shares_of(draw_problem())
    values, other = getattr(found, name).clone(), "record" if name == "of_record" else "of_rest"
    nothing = getattr(found, other).clone()
    values[5, 0], nothing[5] = value, 0.0
    weights = clip_weights(replace(found, **{name: values, other: nothing}), 1.0)
    assert np.flatnonzero(weights == 0).tolist() == [5]


def test_an_empty_batch_is_noise_only() -> None:
    problem = draw_problem()
    assert not sums_of(problem, 1.0, slice(0, 0)).any()
    noisy = noisy_sums(
        problem.loss, problem.records[:0], problem.record_targets[:0], centre=0, clip_norm=1.0,
        noise_multiplier=2.0,
    )  # fmt: skip
    assert noisy.shape == (9 * 30 + 9 + 9 * 3,)
    assert abs(noisy.std() / 2 - 1) < 6 / math.sqrt(2 * noisy.size)


def noise_of(problem: Problem, multiplier: float, times: int) -> NDArray[np.float64]:
    drawn = [
        noisy_sums(
            problem.loss, problem.records, problem.record_targets, centre=problem.centre,
            clip_norm=0.05, noise_multiplier=multiplier,
        )
        for _ in range(times)
    ]  # fmt: skip
    return np.stack(drawn) - sums_of(problem, 0.05) / ONE


@pytest.mark.parametrize("multiplier", [0.5, 30.0])
def test_the_noise_has_the_size_that_the_accountant_takes_it_for(multiplier: float) -> None:
    noise = noise_of(draw_problem(), multiplier, 40) / multiplier
    assert abs(noise.std() - 1) < 6 / math.sqrt(2 * noise.size)
    assert abs(noise.mean()) < 6 / math.sqrt(noise.size)


def test_steps_and_coordinates_have_noise_of_their_own() -> None:
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 - whoever seeds whatever
    first = noise_of(draw_problem(), 1.0, 2)
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    again = noise_of(draw_problem(), 1.0, 2)
    drawn = np.concatenate([first, again]).reshape(4, -1)
    correlation = np.corrcoef(drawn) - np.eye(4)
    assert np.abs(correlation).max() < 6 / math.sqrt(drawn.shape[1])
    rows = np.corrcoef(drawn[:, : 10 * 30].reshape(4, 10, 30).transpose(1, 0, 2).reshape(10, -1))
    assert np.abs(rows - np.eye(10)).max() < 6 / math.sqrt(4 * 30)


def test_sigma_is_rounded_up() -> None:
    for multiplier in (0.3, 1.0, 1.5566, 4000.0):
        assert noise_sigma(multiplier) ** 2 >= (multiplier * ONE) ** 2 + 9
        assert noise_sigma(multiplier) <= multiplier * ONE * (1 + 1e-9)
    with pytest.raises(BudgetError, match="out of range"):
        noise_sigma(1e9)


def test_records_are_read_about_their_centre() -> None:
    problem = draw_problem()
    assert float(problem.values.min()) == -problem.centre / VALUE_LEVELS
    moved = replace(problem, centre=0)
    assert not np.array_equal(sums_of(problem, 0.05), sums_of(moved, 0.05))
