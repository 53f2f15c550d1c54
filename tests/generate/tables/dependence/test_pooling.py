"""What all classes say of one: against a Gaussian law, and where a class is unlike the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.generate.tables.dependence.group_variances import certain_variances
from dpntk.generate.tables.dependence.grouped_departures import GroupedDepartures
from dpntk.generate.tables.dependence.pooling import _either, pool_observations, pooled
from dpntk.generate.tables.dependence.share_in_common import share_in_common

SIZE = 16
"""Departures in each group."""


def departures(difference: NDArray[np.float64], noise: NDArray[np.float64]) -> GroupedDepartures:
    """Of groups of `SIZE`, with these variances of the noise, (groups,)."""
    groups = len(noise)
    ones = torch.ones(groups * SIZE, dtype=torch.float64)
    group = torch.arange(groups).repeat_interleave(SIZE)
    every = torch.from_numpy(noise).repeat_interleave(SIZE)
    return GroupedDepartures(torch.from_numpy(difference), every, ones, ones, group, groups)


def looks(
    truths: Sequence[NDArray[np.float64]], noise: NDArray[np.float64]
) -> list[GroupedDepartures]:
    """Of classes in which these departures are the true ones."""
    random, deviations = np.random.default_rng(9), np.sqrt(noise).repeat(SIZE)
    return [
        departures(truth + deviations * random.standard_normal(len(truth)), noise)
        for truth in truths
    ]


def test_the_mean_is_that_of_the_gaussian_law_of_all_classes() -> None:
    """One departure and four classes: g + d of each, seen with noise; solved as one system."""
    in_common, own = 0.03, 0.02
    noises = np.array([0.09, 0.01, 0.2, 0.05])
    seen = np.array([0.1, 0.3, -0.2, 0.25])
    between = in_common * np.ones((4, 4)) + own * np.eye(4)
    expected = between @ np.linalg.solve(between + np.diag(noises), seen)
    uncertain = between - between @ np.linalg.solve(between + np.diag(noises), between)
    one, variance = torch.ones(1, dtype=torch.float64), in_common + own
    found, noise = pool_observations(
        one * seen[0],
        one * noises[0],
        [one * value for value in seen[1:]],
        [one / (each + own) for each in noises[1:]],
        one * variance,
        one * in_common,
    )
    assert float(found / (1 + noise / variance)) == pytest.approx(expected[0])
    # It is as noisy as a look with which as much is known.
    assert float(1 / (1 / noise + 1 / variance)) == pytest.approx(uncertain[0, 0])


def test_what_classes_have_in_common_is_estimated_group_by_group() -> None:
    """All, half, or nothing, by a third more like the usual half; and all where noise hides it."""
    random, groups = np.random.default_rng(0), 40
    both, one, other = random.standard_normal((3, groups * SIZE))
    share = np.resize([1.0, 0.5, 0.0, 0.0], groups)
    each = share.repeat(SIZE)
    truths = [np.sqrt(each) * both + np.sqrt(1 - each) * own for own in (one, other)]
    noise = np.where(np.arange(groups) % 4 == 3, 1e4, 0.01)
    found = share_in_common(looks(truths, noise), torch.ones(groups * SIZE, dtype=torch.float64))
    of_groups = found[::SIZE].numpy()
    for kind, expected in enumerate((5 / 6, 1 / 2, 1 / 6)):
        assert of_groups[kind::4].mean() == pytest.approx(expected, abs=0.12)
    assert of_groups[3::4].min() > 0.99


def test_noise_is_not_taken_for_what_classes_have_of_their_own() -> None:
    """As much noise as they vary: what they have in common is still all of it."""
    truth, noise = np.random.default_rng(0).standard_normal(200 * SIZE), np.ones(200)
    found = share_in_common(looks([truth, truth], noise), torch.ones(len(truth)).double())
    assert float(found.mean()) > 0.85


def test_a_class_without_departures_says_nothing_of_the_others() -> None:
    truth, noise = np.random.default_rng(0).standard_normal(40 * SIZE), np.ones(40)
    own, other, empty = looks([truth, truth, 0 * truth], noise)
    empty = replace(empty, weight=torch.zeros_like(empty.weight))
    alone, beside = pooled(own, [other]), pooled(own, [other, empty])
    assert torch.allclose(alone.difference, beside.difference)
    assert torch.allclose(alone.noise, beside.noise)


def test_certain_variances_are_those_that_noise_hardly_ever_explains() -> None:
    """One in six of groups that show nothing, and most of a group that shows something."""
    noise = np.ones(3000)
    strong = np.where(np.arange(3000) < 300, 1.0, 0.0).repeat(SIZE)
    truth = strong * np.random.default_rng(0).standard_normal(len(strong))
    found = certain_variances(looks([truth], noise))[::SIZE].numpy()
    assert (found[300:] > 1e-6).mean() == pytest.approx(1 / 6, abs=0.03)
    less = np.sqrt(2 / SIZE)
    assert found[:300].mean() == pytest.approx(1 - less, abs=0.12)


def test_a_larger_variance_is_taken_where_it_is_likely() -> None:
    """In no group if there are none, though by chance many are larger than on average."""
    random, groups = np.random.default_rng(0), 300
    ones = torch.ones(groups, dtype=torch.float64)
    few = torch.from_numpy(random.random(groups) < 0.1)
    for those in (few, few & ~few):
        drawn = torch.from_numpy(random.standard_normal(groups)) * torch.where(those, 1.0, 0.1)
        own = GroupedDepartures(drawn, 1e-4 * ones, ones, ones, torch.arange(groups), groups)
        found = _either(own, ones, 0.01 * ones)
        assert float((found[~those] < 0.02).float().mean()) > 0.99
        assert bool((found[those & (drawn.square() > 0.25)] > 0.5).all())
