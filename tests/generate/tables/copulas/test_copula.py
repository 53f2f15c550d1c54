"""Tables of two numbers that go together as Gaussian ones, against integrals of their density."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from dpntk.generate.tables.copulas.copula import NoisyTable, PairCopulas, Shares
from dpntk.generate.tables.marginals.denoising import table_shares

ROWS = np.array([0.1, 0.25, 0.05, 0.2, 0.15, 0.25])
COLUMNS = np.array([0.5, 0.02, 0.08, 0.4])
EVEN = np.full(10, 0.1)


def shares_of(tables: Sequence[NoisyTable]) -> list[Shares]:
    """What all of them together make of each."""
    laws = PairCopulas.of(tables)
    return [laws.shares(table.pair, table.rows, table.columns) for table in tables]


def likely(shares: Shares, rows: Shares, columns: Shares, noise: float = 1e-4) -> Shares:
    """Of a table by itself."""
    (found,) = shares_of([NoisyTable(shares, noise, rows, columns, (0, 1))])
    return found


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
    found = likely(true, ROWS, COLUMNS)
    assert found == pytest.approx(true, abs=0.01)
    assert found.sum(axis=1) == pytest.approx(ROWS, abs=1e-3)
    assert found.sum(axis=0) == pytest.approx(COLUMNS, abs=5e-3)
    assert found.min() > 0


def test_numbers_that_some_rows_lack_go_together_in_the_others() -> None:
    """A fifth of the first and a tenth of the second are missing, apart from each other."""
    true = 0.8 * 0.9 * gaussian(ROWS, COLUMNS, 0.7)
    found = likely(true, 0.8 * ROWS, 0.9 * COLUMNS)
    assert found == pytest.approx(true, abs=0.01)


def test_columns_with_empty_cells_are_no_trouble() -> None:
    rows, columns = np.array([0.0, 0.5, 0.0, 0.5]), np.array([0.0, 1.0, 0.0])
    found = likely(np.outer(rows, columns), rows, columns)
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
        law = likely(noisy, EVEN, EVEN, noise)
        smooth.append(table_shares(noisy.flatten(), noise, law.flatten()))
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
    law = likely(noisy, EVEN, true.sum(axis=0), noise)
    found = table_shares(noisy.flatten(), noise, law.flatten()).reshape(true.shape)
    alone = table_shares(noisy.flatten(), noise).reshape(true.shape)
    assert np.abs(law - true).sum() > 1
    assert np.abs(found - true).sum() < 0.1
    assert np.abs(found - true).sum() < 1.2 * np.abs(alone - true).sum()


def correlation_of(shares: Shares) -> float:
    """By how far cells are from those of independent columns, in tables of two parts each."""
    return float(np.sin(np.pi / 2 * (4 * shares[0, 0] - 1)))


def test_what_noise_makes_of_numbers_that_do_not_go_together_is_taken_off() -> None:
    """All pairs tell how strongly numbers go together: of ten that do not, hardly one does."""
    half, noise = np.array([0.5, 0.5]), 0.02
    random = np.random.default_rng(0)
    noisy = [
        NoisyTable(0.25 + random.normal(0, noise, (2, 2)), noise, half, half, (0, pair))
        for pair in range(10)
    ]
    found = np.array([correlation_of(each) for each in shares_of(noisy)])
    alone = np.array([correlation_of(each.shares) for each in noisy])
    assert np.square(found).mean() < 0.3 * np.square(alone).mean()


def test_numbers_that_do_go_together_are_hardly_held_back() -> None:
    half, noise = np.array([0.5, 0.5]), 0.01
    true = gaussian(half, half, 0.8)
    random = np.random.default_rng(0)
    noisy = [
        NoisyTable(
            (true if pair < 3 else np.full((2, 2), 0.25)) + random.normal(0, noise, (2, 2)),
            noise,
            half,
            half,
            (0, pair),
        )
        for pair in range(10)
    ]
    found = [correlation_of(each) for each in shares_of(noisy)]
    assert np.mean(found[:3]) == pytest.approx(0.8, abs=0.05)
    assert np.mean(np.abs(found[3:])) < 0.06


def test_two_tables_of_a_pair_say_the_same() -> None:
    """One of four cells, of which the noise is small, and one of a hundred, of which it is not."""
    half = np.array([0.5, 0.5])
    few = NoisyTable(gaussian(half, half, 0.7), 1e-3, half, half, (0, 1))
    random = np.random.default_rng(0)
    many = NoisyTable(random.normal(0.01, 0.05, (10, 10)), 0.05, EVEN, EVEN, (0, 1))
    found, fine = shares_of([few, many])
    assert correlation_of(found) == pytest.approx(0.7, abs=0.05)
    assert fine == pytest.approx(gaussian(EVEN, EVEN, 0.7), abs=0.01)
    assert np.abs(likely(many.shares, EVEN, EVEN, 0.05) - fine).max() > 0.01
