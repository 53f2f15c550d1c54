"""A step of the mechanism: sensitivity in whole numbers, exact sums, and the noise it claims."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpntk.common.errors import BudgetError
from dpntk.common.numerics.exact import sum_of_squares
from dpntk.release.distill import mechanism
from dpntk.release.distill.gradients import Coefficients, SupportLoss
from dpntk.release.distill.mechanism import (
    LEVELS,
    ONE,
    PLACES,
    _rounding,
    clip_weights,
    clipped_sum,
    noise_sigma,
    noisy_gradient,
)
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
@pytest.mark.parametrize("hostile", [False, True])
def test_no_record_contributes_more_than_the_sensitivity(clip: float, hostile: bool) -> None:
    """In whole numbers without end: Python's."""
    problem = hostile_problem() if hostile else draw_problem()
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
def test_the_sum_is_that_of_clipped_gradients(clip: float) -> None:
    problem = draw_problem()
    gradients = plain_gradients(problem)
    norms = gradients.flatten(1).norm(dim=1)
    expected = (gradients * (clip / norms).clamp_max(1)[:, None, None]).sum(0)
    found = torch.from_numpy(sums_of(problem, clip)) * (clip / ONE)
    assert (found - expected).norm() < 1e-3 * len(problem.records) * min(clip, float(norms.max()))


def test_whether_a_bound_is_rough_is_decided_by_the_record_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where all kinds occur: weights have the same bits alone and in any order and company."""
    problem = draw_problem(40, 150, 20)
    loss = problem.loss
    found = loss.coefficients(problem.values, problem.record_targets)
    squares, error = loss.norms(found, 1)
    monkeypatch.setattr(mechanism, "_ROUGH", float((error / squares).abs().median()))
    longest = float((squares + error).quantile(0.2).sqrt())
    long = squares + error > longest**2
    nearly = error <= squares * mechanism._ROUGH
    assert {*zip(long.tolist(), nearly.tolist(), strict=True)} >= {(True, False), (True, True)}
    assert not long.all()
    alone = torch.cat(
        [clip_weights(loss, found[torch.tensor([i])], longest, 1.0) for i in range(40)]
    )
    order = torch.randperm(40, generator=torch.Generator().manual_seed(0))
    for size in (2, 7, 40):
        for rows in order.split(size):
            assert torch.equal(clip_weights(loss, found[rows], longest, 1.0), alone[rows])


def norms_are(monkeypatch: pytest.MonkeyPatch, square: float, error: float) -> None:
    """Whatever coefficients are."""

    def said(_: SupportLoss, found: Coefficients, slices: int = 2) -> tuple[Tensor, Tensor]:
        return torch.full_like(found.squares, square), torch.full_like(found.squares, error)

    monkeypatch.setattr(SupportLoss, "norms", said)


def weights_of(problem: Problem, longest: float, unit: float, **changed: Tensor) -> Tensor:
    loss = problem.loss
    found = loss.coefficients(problem.values, problem.record_targets)
    return clip_weights(loss, replace(found, **changed), longest, unit)


def test_a_gradient_is_as_long_as_its_bound_and_not_as_its_norm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By how much the computed norm may be off counts in full."""
    norms_are(monkeypatch, 3.0, 1.0)
    assert weights_of(draw_problem(), 1.0, 1.0).unique().tolist() == [0.5]
    norms_are(monkeypatch, -1e-20, 4.0)
    assert weights_of(draw_problem(), 1.0, 1.0).unique().tolist() == [0.5]


@pytest.mark.parametrize("quantile", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("hostile", [False, True])
def test_rough_bounds_are_bounds_and_clip_no_more_than_needed(
    hostile: bool, quantile: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = hostile_problem() if hostile else draw_problem(100, 150, 20)
    loss = problem.loss
    found = loss.coefficients(problem.values, problem.record_targets)
    norms = written_out(problem, loss, found).flatten(1).norm(dim=1)
    longest = float(norms.quantile(quantile))
    weights = clip_weights(loss, found, longest, 1.0)
    assert (weights * norms <= longest).all()
    monkeypatch.setattr(mechanism, "_ROUGH", 0.0)
    best = clip_weights(loss, found, longest, 1.0)
    assert ((0.996 * best <= weights) & (weights <= best)).all()
    if not hostile:
        assert (best >= (1 - 1e-6) * (longest / norms).clamp_max(1.0)).all()


def test_only_what_is_too_rough_is_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own numbers: short ones and those that are nearly as long as their bound are not."""
    squares = torch.tensor([0.5, 1.5, 4.0, 4.0], dtype=torch.float64)
    errors = torch.tensor([0.4, 0.1, 0.01, 5.0], dtype=torch.float64)
    again: list[Tensor] = []

    def said(_: SupportLoss, found: Coefficients, slices: int = 2) -> tuple[Tensor, Tensor]:
        if slices == 1:
            return squares.clone(), errors.clone()
        again.append(found.squares)
        return torch.full_like(found.squares, 4.0), torch.zeros_like(found.squares)

    monkeypatch.setattr(SupportLoss, "norms", said)
    problem = draw_problem(4)
    weights = weights_of(problem, 1.0, 1.0)
    assert torch.equal(torch.cat(again), sum_of_squares(problem.values)[[1, 3]])
    assert weights.tolist() == pytest.approx([1.0, 0.5, 4.01**-0.5, 0.5])


@pytest.mark.parametrize("name", ["u", "v", "own", "of_record"])
@pytest.mark.parametrize("value", [2.0**60, math.inf, math.nan])
def test_a_record_whose_sums_would_not_be_exact_counts_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str, value: float
) -> None:
    """However short its gradient is said to be; and the others count."""
    problem = draw_problem()
    found = problem.loss.coefficients(problem.values, problem.record_targets)
    norms_are(monkeypatch, 1.0, 0.0)
    values = getattr(found, name).clone()
    values[5] = value
    weights = weights_of(problem, 1.0, 1.0, **{name: values})
    assert np.flatnonzero(weights == 0).tolist() == [5]


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_record_whose_norm_is_unknown_counts_nothing(
    monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    norms_are(monkeypatch, value, 0.0)
    assert not weights_of(draw_problem(), 1.0, 1.0).any()


def test_an_empty_batch_is_noise_only() -> None:
    problem = draw_problem()
    assert not sums_of(problem, 1.0, slice(0, 0)).any()
    noisy = noisy_gradient(
        problem.loss, problem.records[:0], problem.record_targets[:0], centre=0, clip_norm=1.0,
        noise_multiplier=2.0,
    )  # fmt: skip
    assert noisy.shape == (9, 30)
    assert abs(noisy.std() / 2 - 1) < 6 / math.sqrt(2 * noisy.size)


def noise_of(problem: Problem, multiplier: float, times: int) -> NDArray[np.float64]:
    drawn = [
        noisy_gradient(
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
    rows = np.corrcoef(np.concatenate([first, again]).transpose(1, 0, 2).reshape(9, -1))
    assert np.abs(rows - np.eye(9)).max() < 6 / math.sqrt(4 * 30)


def test_sigma_is_rounded_up() -> None:
    for multiplier in (0.3, 1.0, 1.5566, 4000.0):
        assert noise_sigma(multiplier) ** 2 >= (multiplier * ONE) ** 2 + 9
        assert noise_sigma(multiplier) <= multiplier * ONE * (1 + 1e-9)
    with pytest.raises(BudgetError, match="out of range"):
        noise_sigma(1e9)


def test_records_are_read_about_their_centre() -> None:
    problem = draw_problem()
    assert float(problem.values.min()) == -problem.centre / LEVELS
    moved = replace(problem, centre=0)
    assert not np.array_equal(sums_of(problem, 0.05), sums_of(moved, 0.05))


def test_so_many_points_that_rounding_would_matter_are_refused() -> None:
    bright = torch.full((6_000, 784), 7.5, dtype=torch.float64)
    with pytest.raises(BudgetError, match="support points are too many"):
        _rounding(bright, centre=0)
    assert _rounding(bright[:500] / 8, centre=0) < ONE / 50
