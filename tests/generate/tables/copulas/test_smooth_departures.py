"""Dependence of two numbers that rises and falls again is told from a few noisy cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from dpntk.common.features.marginals.cells import MarginalColumn, MarginalGroup
from dpntk.generate.tables.copulas.smooth_departures import (
    _PRIORS,
    CopulaResidual,
    SmoothDepartures,
    _under_each_prior,
    waves_of,
)
from dpntk.generate.tables.copulas.table_posterior import (
    TableObservation,
    copulas_of,
    posterior_tables,
)
from dpntk.generate.tables.dependence.table_departures import shares_among

ROWS = 20_000
FIRST, SECOND = MarginalColumn(0, 1, 64, -1), MarginalColumn(1, 1, 64, -1)


def skewed(seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).beta(2, 5, ROWS)


def records_of(first: NDArray[np.float64], second: NDArray[np.float64]) -> torch.Tensor:
    return torch.from_numpy(np.column_stack([first, second]).clip(0, 1).astype(np.float32))


def u_shaped(seed: int = 0) -> torch.Tensor:
    """The second number is large where the first is far from its median, on either side."""
    first = skewed(seed)
    ranks = first.argsort().argsort() / ROWS
    noise = np.random.default_rng(seed + 1).normal(0, 0.12, ROWS)
    return records_of(first, (2 * (ranks - 0.5)) ** 2 * 0.8 + 0.1 + noise)


def shares(table: MarginalGroup, records: torch.Tensor) -> NDArray[np.float64]:
    whole = (records * 255).round().long()
    cells = table.cell_among({side: side.cell(whole) for side in table.sides})
    return np.bincount(cells, minlength=table.dimension) / len(records)


def in_parts(side: MarginalColumn, records: torch.Tensor, parts: int) -> MarginalColumn:
    return side.in_parts(shares_among(records, 255)(side).numpy(), parts)


def test_waves_are_orthonormal_and_the_same_in_any_cells() -> None:
    records = u_shaped()
    shares_of = shares_among(records, 255)
    own = waves_of(FIRST, shares_of)
    seen = shares_of(FIRST).numpy()
    there = seen > 0
    assert own.sum(axis=0) == pytest.approx(0, abs=1e-6)
    products = own[there].T @ (own[there] / seen[there, None])
    assert products == pytest.approx(np.eye(own.shape[1]), abs=1e-4)
    merged = in_parts(FIRST, records, 3)
    parts = np.split(own, merged.merged[1:])
    assert waves_of(merged, shares_of) == pytest.approx(np.array([p.sum(axis=0) for p in parts]))


def test_the_posterior_is_that_of_a_normal_law() -> None:
    """Written out for all cells of two tables of a pair at once."""
    random = np.random.default_rng(0)
    tables = [
        CopulaResidual(
            (0, 1), random.normal(0, 0.1, (r, s)), noise,
            random.normal(0, 1, (r, 2)), random.normal(0, 1, (s, 3)),
        )
        for r, s, noise in ((3, 3, 0.05), (5, 4, 0.2))
    ]  # fmt: skip
    logs, means = _under_each_prior(tables)
    design = np.vstack([np.kron(table.first, table.second) for table in tables])
    seen = np.concatenate([table.shares.ravel() for table in tables])
    noise = np.concatenate([np.full(table.shares.size, table.noise**2) for table in tables])
    order = np.add.outer(np.arange(2), np.arange(3)).ravel()
    expected = []
    for (variance, falling), mean in zip(_PRIORS, means, strict=True):
        prior = np.diag(variance * falling**order)
        covariance = design @ prior @ design.T + np.diag(noise)
        expected.append(multivariate_normal(np.zeros(len(seen)), covariance).logpdf(seen))
        right = prior @ design.T @ np.linalg.solve(covariance, seen)
        assert mean == pytest.approx(right, abs=1e-9)
    assert logs - logs[0] == pytest.approx(np.array(expected) - expected[0], abs=1e-8)


def test_thirds_that_rise_and_fall_again_do_so_within_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the copula alone, which has no correlation, they would be level within each third."""
    records = u_shaped()
    shares_of = shares_among(records, 255)
    thirds = MarginalGroup(tuple(in_parts(side, records, 3) for side in (FIRST, SECOND)))
    noise = 0.005
    noisy = shares(thirds, records) + np.random.default_rng(2).normal(0, noise, thirds.dimension)
    look = TableObservation(thirds, True, False, noisy, noise)
    ((finer, found),) = posterior_tables([look], shares_of, copulas_of([look], shares_of))
    sides = finer.sides
    conditional = found.view([side.known for side in sides]).numpy()
    conditional = conditional / conditional.sum(axis=1, keepdims=True)
    heights = conditional @ np.arange(sides[1].known)  # mean place of the second number
    borders = np.searchsorted(sides[0].merged, thirds.sides[0].merged)
    low, _, high = np.split(heights, borders[1:])
    assert low[0] > low[-1] + 1
    assert high[-1] > high[0] + 1
    real = shares(finer, records)
    monkeypatch.setattr(SmoothDepartures, "of", lambda residuals: SmoothDepartures({}))
    ((same, level),) = posterior_tables([look], shares_of, copulas_of([look], shares_of))
    assert same == finer
    off, before = (np.abs(each.numpy() - real).sum() for each in (found, level))
    assert off < 0.8 * before


def test_numbers_that_follow_their_copulas_have_no_departures() -> None:
    """However many pairs there are to find one among."""
    random = np.random.default_rng(3)
    records = records_of(skewed(1), skewed(2))
    shares_of = shares_among(records, 255)
    sides = [in_parts(side, records, 3) for side in (FIRST, SECOND)]
    waves = [waves_of(side, shares_of) for side in sides]
    noise = 0.01
    residuals = [
        CopulaResidual((0, number), random.normal(0, noise, (3, 3)), noise, *waves)
        for number in range(60)
    ]
    found = SmoothDepartures.of(residuals)
    departures = list(found.coefficients.values())
    added = [waves[0] @ each @ waves[1].T for each in departures]
    assert np.mean(np.square(added)) < 0.1 * noise**2
    copula = np.full((3, 3), 1 / 9)
    assert found.added_to(copula, (7, 8), *waves) is copula  # a pair of which nothing is known
    wild = SmoothDepartures({(0, 1): np.full_like(departures[0], -50.0)})
    assert wild.added_to(copula, (0, 1), *waves).min() == pytest.approx(0.02 / 9)


def test_an_own_cell_without_records_adds_no_wave() -> None:
    two = records_of((np.arange(ROWS) % 2).astype(np.float64), skewed())
    shares_of = shares_among(two, 255)
    assert waves_of(FIRST, shares_of).shape == (64, 1)
    merged = replace(FIRST, merged=(0, 32))
    assert waves_of(merged, shares_of) == pytest.approx(np.array([[0.5], [-0.5]]), abs=1e-6)
