"""Tables of two numbers that go together as Gaussian ones, against integrals of their density."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from dpntk.generate.tables.copula import Shares, copula_shares
from dpntk.generate.tables.denoising import table_shares

ROWS = np.array([0.1, 0.25, 0.05, 0.2, 0.15, 0.25])
COLUMNS = np.array([0.5, 0.02, 0.08, 0.4])
EVEN = np.full(10, 0.1)


def gaussian(rows: Shares, columns: Shares, correlation: float) -> Shares:
    """By the distribution function at the corners of cells."""
    law = multivariate_normal([0, 0], [[1, correlation], [correlation, 1]])
    one, other = (
        norm.ppf(np.concatenate([[0], shares.cumsum()]).clip(1e-12, 1 - 1e-12))
        for shares in (rows, columns)
    )
    corners = np.array([[law.cdf([x, y]) for y in other] for x in one])
    found: Shares = np.diff(np.diff(corners, axis=0), axis=1)
    return found


@pytest.mark.parametrize("correlation", [-0.96, -0.4, 0.0, 0.3, 0.9])
def test_the_nearest_table_is_the_one_that_it_is(correlation: float) -> None:
    """As far as one of the correlations that are tried is near, and shares are means of ranks."""
    true = gaussian(ROWS, COLUMNS, correlation)
    found = copula_shares(true, ROWS, COLUMNS)
    assert found == pytest.approx(true, abs=0.01)
    assert found.sum(axis=1) == pytest.approx(ROWS, abs=1e-3)
    assert found.sum(axis=0) == pytest.approx(COLUMNS, abs=5e-3)
    assert found.min() > 0


def test_numbers_that_some_rows_lack_go_together_in_the_others() -> None:
    """A fifth of the first and a tenth of the second are missing, apart from each other."""
    true = 0.8 * 0.9 * gaussian(ROWS, COLUMNS, 0.7)
    found = copula_shares(true, 0.8 * ROWS, 0.9 * COLUMNS)
    assert found == pytest.approx(true, abs=0.01)


def test_columns_with_empty_cells_are_no_trouble() -> None:
    rows, columns = np.array([0.0, 0.5, 0.0, 0.5]), np.array([0.0, 1.0, 0.0])
    found = copula_shares(np.outer(rows, columns), rows, columns)
    assert found == pytest.approx(np.outer(rows, columns), abs=1e-9)
    assert found.min() > 0


def test_what_neighbours_say_counts_where_noise_is_as_large_as_shares() -> None:
    """The rank correlation comes back, of which cell by cell a third is lost."""
    true, noise = gaussian(EVEN, EVEN, 0.95), 0.006
    ranks = np.arange(10) - 4.5

    def correlation(shares: Shares) -> float:
        return float(ranks @ shares.reshape(10, 10) @ ranks / (EVEN @ ranks**2))

    random = np.random.default_rng(0)
    smooth, alone = [], []
    for _ in range(20):
        noisy = true + random.normal(0, noise, true.shape)
        likely = copula_shares(noisy, EVEN, EVEN)
        smooth.append(table_shares(noisy.flatten(), noise, likely.flatten()))
        alone.append(table_shares(noisy.flatten(), noise))
    assert correlation(true) > 0.9
    assert np.mean([correlation(found) for found in smooth]) > 0.97 * correlation(true)
    assert np.mean([correlation(found) for found in alone]) < 0.9 * correlation(true)
    errors = [
        np.abs(np.array(each) - true.flatten()).sum(axis=1).mean() for each in (smooth, alone)
    ]
    assert errors[0] < errors[1] / 2


def test_a_table_that_is_no_such_law_is_not_made_one() -> None:
    """Numbers of which the second is the square of the first: no correlation says anything."""
    true = np.zeros((10, 5))
    for cell in range(10):
        true[cell, min(abs(2 * cell - 9) // 2, 4)] = 0.1
    noise = 0.004
    noisy = true + np.random.default_rng(0).normal(0, noise, true.shape)
    likely = copula_shares(noisy, EVEN, true.sum(axis=0))
    found = table_shares(noisy.flatten(), noise, likely.flatten()).reshape(true.shape)
    alone = table_shares(noisy.flatten(), noise).reshape(true.shape)
    assert np.abs(likely - true).sum() > 1
    assert np.abs(found - true).sum() < 0.1
    assert np.abs(found - true).sum() < 1.2 * np.abs(alone - true).sum()
