"""Prior variances of departures: against the best that can be done if they are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpntk.generate.tables.dependence.group_variances import group_variances
from dpntk.generate.tables.dependence.grouped_departures import GroupedDepartures

NOISE = 0.01
SIZE = 4


def departures(
    difference: NDArray[np.float64],
    noise: float = NOISE,
    frequency: NDArray[np.float64] | None = None,
) -> GroupedDepartures:
    """Of as many groups as there are rows, seen with noise of this variance."""
    seen = torch.from_numpy(difference).double().flatten()
    ones = torch.ones_like(seen)
    return GroupedDepartures(
        difference=seen,
        noise=noise * ones,
        frequency=ones if frequency is None else torch.from_numpy(frequency).flatten(),
        weight=ones,
        group=torch.arange(len(difference)).repeat_interleave(difference.shape[1]),
        groups=len(difference),
    )


def of_groups(squares: Sequence[float], noise: float = NOISE, size: int = SIZE) -> list[float]:
    """The variances of groups of which all departures have these squares."""
    difference = np.sqrt(np.tile(np.array(squares)[:, None], size))
    found: list[float] = group_variances([departures(difference, noise)])[::size].tolist()
    return found


def error(found: Tensor, own: GroupedDepartures, true: NDArray[np.float64]) -> float:
    """Mean square of what is left of noise, or lost of departures, if variances are believed."""
    kept = found / (found + own.noise)
    return float((kept * own.difference - torch.from_numpy(true).flatten()).square().mean())


def test_few_strong_groups_do_not_lend_the_others_their_variance() -> None:
    """Not much worse than if each group's variance were known, where one for all is."""
    random = np.random.default_rng(0)
    variances = np.tile(np.where(np.arange(400) < 40, 0.1, 1e-4)[:, None], SIZE)
    true = random.standard_normal(variances.shape) * np.sqrt(variances)
    own = departures(true + random.standard_normal(true.shape) * np.sqrt(NOISE))
    found = group_variances([own])
    best = error(torch.from_numpy(variances).flatten(), own, true)
    one_for_all = float(own.difference.square().mean()) - NOISE
    assert error(found, own, true) < 1.5 * best
    assert error(torch.full_like(found, one_for_all), own, true) > 4 * best


@pytest.mark.parametrize("power", [-1.0, 0.0, 1.0])
def test_it_is_learnt_whether_rare_categories_show_more_or_less(power: float) -> None:
    """As good as if it were known, whichever it is."""
    random = np.random.default_rng(0)
    usual = np.array([1.0, 0.3, 0.05])
    frequency = np.tile(np.outer(usual, usual).flatten(), (66, 1))
    variances = 0.03 * (frequency / 0.1) ** power
    true = random.standard_normal(variances.shape) * np.sqrt(variances)
    seen = true + random.standard_normal(true.shape) * np.sqrt(NOISE)
    own = departures(seen, frequency=frequency)
    best = error(torch.from_numpy(variances).flatten(), own, true)
    assert error(group_variances([own]), own, true) < 1.1 * best


def test_one_rare_category_that_goes_with_others_is_heard_among_many_that_do_not() -> None:
    """There is more noise on it, and three times as many of the group show nothing."""
    usual = np.array([1.0, 1.0, 1.0, 0.1])
    frequency, rare = np.outer(usual, usual), usual < 1
    here = (rare[:, None] ^ rare).flatten()
    shown = np.where(here, 0.5, 0.0)
    own = departures(np.tile(shown, (15, 1)), frequency=np.tile(frequency.flatten(), (15, 1)))
    own = replace(own, noise=1e-4 / own.frequency)
    found = group_variances([own])
    assert float((found / (found + own.noise))[np.tile(here, 15)].min()) > 0.8


@pytest.mark.parametrize("times", [4.0, 11.0, 50.0])
def test_a_single_group_has_what_exceeds_the_noise(times: float) -> None:
    """Up to the steps of the candidates."""
    assert of_groups([times * NOISE])[0] == pytest.approx((times - 1) * NOISE, rel=0.35)


def test_a_group_of_less_than_the_noise_keeps_nothing() -> None:
    assert of_groups([0.8 * NOISE])[0] < 1e-2 * NOISE


def test_without_noise_everything_is_believed() -> None:
    found = of_groups([0.2, 1e-4], noise=1e-12)
    assert found == pytest.approx([0.2, 1e-4], rel=0.35)


def test_more_departures_are_believed_sooner() -> None:
    """Twice the noise by chance is not much for a single one, and much for forty."""
    others = [NOISE] * 50 + [10 * NOISE] * 5
    few, many = (of_groups([2 * NOISE, *others], size=size)[0] for size in (1, 40))
    assert few < 0.7 * NOISE < many < 1.5 * NOISE


def test_four_of_a_quarter_of_the_weight_say_as_much_as_one() -> None:
    squares = [2 * NOISE, 5 * NOISE, NOISE]
    four = departures(np.sqrt(np.tile(np.array(squares)[:, None], 4)))
    found = group_variances([replace(four, weight=four.weight / 4)])
    assert found[::4].tolist() == pytest.approx(of_groups(squares, size=1))


def test_classes_are_counted_together() -> None:
    """What is not much in one class is in twenty; and a class without records says nothing."""
    one = departures(np.sqrt(np.array([[3 * NOISE], *[[NOISE]] * 65])))
    nothing = replace(one, weight=torch.zeros_like(one.weight))
    alone, beside, many = (
        float(group_variances(classes)[0]) for classes in ([one], [one, nothing], 20 * [one])
    )
    assert alone == beside < 0.1 * NOISE
    assert many == pytest.approx(2 * NOISE, rel=0.35)
    assert float(group_variances([nothing])[0]) == 1
