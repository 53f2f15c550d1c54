"""Which cells of numbers may be occupied: far from all others, only what is certain."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.encoding import blocks_of
from dpntk.common.schema.table import TableSchema
from dpntk.generate.tables.marginals.released import ColumnMarginal

CELLS = 64
NOISE = 0.002
AMOUNT = Column.continuous("x", 0.0, 1e6)
DAY = Column.date("x", "2020-01-01", "2023-12-31")


def hump() -> NDArray[np.float64]:
    """All numbers in the first twenty cells, as between wide bounds."""
    found = np.zeros(CELLS)
    found[:20] = np.hanning(22)[1:-1]
    shares: NDArray[np.float64] = found / found.sum()
    return shares


def posterior(column: Column, *classes: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    (block,) = blocks_of(TableSchema((column,)))
    shares = np.stack(classes)
    return ColumnMarginal(block, shares, np.full(len(shares), noise)).posterior_mean


@pytest.mark.parametrize(("seen", "kept"), [(3.3, False), (5.0, True)])
def test_a_cell_far_from_all_others_has_to_be_certain(seen: float, kept: bool) -> None:
    """Among dozens of empty cells, noise alone makes one with three deviations now and then."""
    shares = hump()
    shares[50] = seen * NOISE
    found = posterior(AMOUNT, shares, noise=NOISE)
    assert bool(found[0, 50] > 0) is kept
    shares[50], shares[23] = 0.0, seen * NOISE  # a tail, that is near
    assert posterior(AMOUNT, shares, noise=NOISE)[0, 23] > 0


def test_far_cells_that_one_class_is_certain_of_are_possible_in_all() -> None:
    certain, doubtful = hump(), hump()
    certain[50:52], doubtful[50:52] = 6 * NOISE, 2 * NOISE
    assert (posterior(AMOUNT, doubtful, certain, noise=NOISE)[:, 50:52] > 0).all()
    assert not posterior(AMOUNT, doubtful, doubtful, noise=NOISE)[:, 50:52].any()


def test_dates_reach_their_bounds() -> None:
    """Days of a study are mostly spread over all of it; amounts lie far within their bounds."""
    random, evenly = np.random.default_rng(0), np.full(CELLS, 1 / CELLS)
    noise = 1 / CELLS / 1.13
    lost = np.zeros(2)
    for _ in range(40):
        noisy = evenly + noise * random.standard_normal(CELLS)
        for number, column in enumerate((DAY, AMOUNT)):
            there = np.flatnonzero(posterior(column, noisy, noise=noise)[0])
            lost[number] += there[0] + CELLS - 1 - there[-1]
    of_dates, of_amounts = lost / 40
    assert of_dates < 0.6
    assert of_amounts > 2 * of_dates


@pytest.mark.parametrize(("seen", "kept"), [(3.3, False), (5.0, True)])
def test_so_has_a_single_value_that_is_far_from_all_others(seen: float, kept: bool) -> None:
    """Farther than the next multiple of ten would be."""
    shares = np.zeros(101)
    shares[:20] = hump()[:20]
    shares[97] = seen * NOISE
    column = Column.integer("x", 0, 100)
    assert bool(posterior(column, shares, noise=NOISE)[0, 97] > 0) is kept
    tens = np.zeros(101)
    tens[::10] = [0.4, 0.3, 0.2, 0.1 - 7 * 3.3 * NOISE, *[3.3 * NOISE] * 7]
    assert (posterior(column, tens, noise=NOISE)[0, ::10] > 0).all()
