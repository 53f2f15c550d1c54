"""What all classes say of one: against a Gaussian law, and where a class is unlike the others."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dpntk.generate.tables.dependence.grouped_departures import GroupedDepartures
from dpntk.generate.tables.dependence.pooling import _either, pool_observations


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
