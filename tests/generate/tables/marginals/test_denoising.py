"""Likely shares are means given what is seen, and nearer to the true ones than what is seen."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import brentq

from dpntk.common.numerics.simplex import to_simplex
from dpntk.generate.tables.marginals.denoising import (
    Shares,
    category_shares,
    number_shares,
    table_shares,
)

GRID = np.geomspace(1e-10, 2, 20_001)


def moments(noisy: float, noise: float, mean: float) -> tuple[float, float]:
    """Density of a noisy share, and mean of the true one, by integration."""
    density = np.exp(-0.5 * ((GRID - noisy) / noise) ** 2 - GRID / mean) / mean
    density *= np.gradient(GRID) / noise / math.sqrt(2 * math.pi)
    return float(density.sum()), float((density * GRID).sum() / density.sum())


def test_shares_of_categories_are_means_over_all_orders_of_magnitude() -> None:
    noisy, expected = np.array([0.55, 0.02, -0.03, 0.3]), np.array([0.4, 0.01, 0.002, 0.1])
    noise, factors = 0.03, 4.0 ** np.arange(-3, 4)

    def shares(amount: float) -> Shares:
        means = []
        for x, e in zip(noisy - amount, expected, strict=True):
            found = [moments(x, noise, min(e * f, 1)) for f in factors]
            weights = [p * 0.3 ** abs(k) for (p, _), k in zip(found, range(-3, 4), strict=True)]
            means.append(np.average([m for _, m in found], weights=weights))
        return np.array(means)

    amount = brentq(lambda x: shares(x).sum() - 1, -0.1, 0.1)
    assert category_shares(noisy, noise, expected) == pytest.approx(shares(amount), rel=1e-4)


def test_shares_of_numbers_are_means_over_all_ways_along_the_column() -> None:
    """Against all sequences of orders of magnitude, one by one; the last cell has no neighbours."""
    noisy, noise = np.array([0.44, 0.36, 0.03, -0.04, 0.20]), 0.02
    means = [None, *(min(0.02 / 4 * 4.0**k, 1) for k in range(5))]
    step = 0.25 ** np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    step = 0.98 * step / step.sum(axis=1, keepdims=True) + 0.02 / 6
    step[0] = 0.2 * step[0] + 0.8 * np.eye(6)[0]
    values, vectors = np.linalg.eig(step.T)
    usual = vectors[:, np.argmax(values.real)].real
    usual /= usual.sum()

    def shares(amount: float) -> Shares:
        seen = [
            [
                (math.exp(-0.5 * (x / noise) ** 2) / noise / math.sqrt(2 * math.pi), 0.0)
                if mean is None
                else moments(x, noise, mean)
                for mean in means
            ]
            for x in noisy - amount
        ]
        chance = np.zeros((5, 6))
        for way in itertools.product(range(6), repeat=4):
            weight = math.prod(seen[cell][order][0] for cell, order in enumerate(way))
            weight *= math.prod(step[a, b] for a, b in itertools.pairwise(way))
            # As likely as not there is an empty cell before the first, and one after the last.
            weight *= (usual[way[0]] + step[0, way[0]]) / 2
            weight *= (1 + step[way[-1], 0] / usual[0]) / 2
            chance[range(4), way] += weight
        chance[4] = [p for p, _ in seen[4]]
        chance /= chance.sum(axis=1, keepdims=True)
        found = (chance * [[m for _, m in row] for row in seen]).sum(axis=1)
        return np.where(chance[:, 0] > 0.3, 0, found)

    found = number_shares(noisy, noise, 4)
    amount = brentq(lambda x: shares(x).sum() - 1, -0.05, 0.1, xtol=1e-5)
    assert found == pytest.approx(shares(amount) / shares(amount).sum(), rel=1e-4)
    assert found[3] == 0 < found[2]


def test_shares_are_kept_without_noise_and_drowned_in_much() -> None:
    true = np.array([0.5, 0.0, 0.3, 0.2])
    assert number_shares(true, 0.0, 4) == pytest.approx(true, abs=1e-7)
    assert number_shares(true, 0.0, 3) == pytest.approx(true, abs=1e-7)
    assert category_shares(true, 0.0) == pytest.approx(true, abs=1e-7)
    assert category_shares(true, 0.0, np.full(4, 0.25)) == pytest.approx(true, abs=1e-7)
    for noisy in (np.array([150.0, -80.0, -3.0, 40.0]), np.full(4, -500.0)):
        for found in (number_shares(noisy, 100.0, 3), category_shares(noisy, 100.0, true + 0.1)):
            assert found.sum() == pytest.approx(1)
            assert found.min() >= 0
    assert category_shares(np.array([1.0, -1.0]), 0.01, np.array([0.5, 0.5]))[1] > 0
    assert category_shares(np.array([1.0, -1e9]), 1e-9, np.array([0.5, 0.5]))[1] > 0


WIDE = np.where(np.abs(np.arange(64) - 20) < 3, 0.2, 0.0)  # 5 of 64 cells
SMOOTH = np.exp(-0.5 * ((np.arange(64) - 30) / 9) ** 2)
AT_ZERO = np.concatenate([[0.95], np.full(60, 0.0008), [0, 0, 0.002]])  # the rest anywhere, a spike


@pytest.mark.parametrize(
    ("true", "noise", "better"),
    [(WIDE / WIDE.sum(), 0.003, 0.6), (SMOOTH / SMOOTH.sum(), 0.01, 0.85), (AT_ZERO, 0.001, 0.8)],
)
def test_likely_shares_are_nearer_than_the_nearest_ones(
    true: Shares, noise: float, better: float
) -> None:
    random, errors = np.random.default_rng(0), np.zeros(2)
    for _ in range(30):
        noisy = true + noise * random.standard_normal(64)
        for place, found in enumerate((number_shares(noisy, noise, 64), to_simplex(noisy))):
            errors[place] += np.abs(found - true).sum()
    assert errors[0] < better * errors[1]


def test_a_little_in_each_of_many_cells_counts_and_as_much_in_one_of_them_does_not() -> None:
    noise, flat = 0.001, np.concatenate([[0.94], np.full(60, 0.001)])
    assert number_shares(flat, noise, 61)[1:].sum() > 0.04
    lonely = np.where(np.arange(61) == 40, 0.001, 0.0)
    lonely[0] = 1 - lonely.sum()
    assert number_shares(lonely, noise, 61)[5:].sum() == 0
    spike = np.where(np.arange(61) == 40, 0.007, 0.0)
    spike[0] = 1 - spike.sum()
    assert number_shares(spike, noise, 61)[40] == pytest.approx(0.007, rel=0.2)


def test_next_to_bounds_a_little_is_noise_and_much_is_what_lies_beyond() -> None:
    noise, cells = 0.001, np.arange(61)
    middle = np.where(np.abs(cells - 30) < 5, 1 / 9, 0.0)
    for bound in (0, 60):
        for share, left in ((0.0025, 0.0), (0.007, 0.007)):
            noisy = middle + np.where(cells == bound, share, 0.0)
            found = number_shares(noisy / noisy.sum(), noise, 61)
            assert found[bound] == pytest.approx(left, rel=0.2)


def test_what_all_classes_have_is_expected_of_one() -> None:
    noisy = np.array([0.7, 0.3, 0.0])
    often = category_shares(noisy, 0.03, np.array([0.6, 0.3, 0.1]))
    seldom = category_shares(noisy, 0.03, np.array([0.6, 0.399, 0.001]))
    assert often[2] > 0.01 > 0.003 > seldom[2] > 0


def test_empty_cells_of_a_table_stay_next_to_empty() -> None:
    """Columns that determine one another: a band of cells, and hundreds with nothing but noise."""
    true = np.zeros((18, 18))
    for cell in range(18):
        true[cell, max(0, cell - 1) : cell + 2] = 1
    true /= true.sum()
    noisy = true + np.random.default_rng(0).normal(0, 0.0013, true.shape)
    found = table_shares(noisy.flatten(), 0.0013).reshape(true.shape)
    assert noisy[true == 0].clip(0).sum() > 0.1  # what would be there if it were cut off at 0
    assert found[true == 0].sum() < 0.02
    assert found.min() > 0
    assert found.sum() == pytest.approx(1)
    assert np.abs(found - true).sum() < np.abs(noisy - true).sum() / 3


def test_cells_of_a_table_without_noise_are_as_they_are() -> None:
    shares = np.random.default_rng(0).dirichlet(np.full(50, 0.3))
    assert table_shares(shares, 0.0) == pytest.approx(shares, abs=1e-6)


def mostly_zero(noise: float, seed: int) -> tuple[Shares, Shares]:
    """A column of which all but a few rows are 0, and the others lie in many cells; with noise."""
    random = np.random.default_rng(seed)
    true = np.concatenate([[0.94], np.zeros(9), np.full(30, 0.002), np.zeros(24)])
    return true, true + noise * random.standard_normal(len(true))


@pytest.mark.parametrize("seed", range(8))
def test_a_few_rows_that_are_certain_to_be_somewhere_are_not_lost(seed: int) -> None:
    """Noise hides each of their cells, but not that the first one is less than everything."""
    true, noisy = mostly_zero(0.006, seed)
    found = number_shares(noisy, 0.006, len(noisy))
    assert found[0] == pytest.approx(true[0], abs=4 * 0.006)
    assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("seed", range(8))
def test_where_nothing_is_lacking_nothing_is_made_up(seed: int) -> None:
    """Emptied cells stay empty if what is left adds up, and where noise may be all that is seen."""
    random = np.random.default_rng(seed)
    bulk = np.concatenate([np.zeros(20), np.full(20, 0.05), np.zeros(24)])
    found = number_shares(bulk + 0.004 * random.standard_normal(64), 0.004, 64)
    assert found[:14].sum() + found[46:].sum() < 0.01
    _, noisy = mostly_zero(0.05, seed)
    assert (number_shares(noisy, 0.05, 64) > 0).sum() < 32
