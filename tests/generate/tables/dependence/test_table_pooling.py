"""What all classes say of the tables of one: a class of few is told by those like it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.generate.tables.dependence.table_departures import TableDeparture
from dpntk.generate.tables.dependence.table_pooling import pooled_tables

TABLES, CELLS = 40, 16
SIZES = torch.full((TABLES,), CELLS)
EXPECTED = torch.full((TABLES * CELLS,), 1 / CELLS, dtype=torch.float64)


def departure(truth: NDArray[np.float64], noise: float, seed: int) -> TableDeparture:
    """Tables of 16 cells that are equally frequent, with a variance of the noise on each."""
    drawn = np.random.default_rng(seed).normal(0, np.sqrt(noise), truth.shape)
    each = torch.full_like(EXPECTED, noise)
    tied = torch.ones(TABLES, dtype=torch.int64)
    return TableDeparture(
        SIZES, tied, tied < 1, EXPECTED > 0, EXPECTED, torch.from_numpy(truth + drawn), each
    )


def true_tables(seed: int) -> NDArray[np.float64]:
    """Every second table differs from independent columns, by a variance of .04."""
    found = np.random.default_rng(seed).normal(0, 0.2, (TABLES, CELLS))
    found[::2] = 0
    return found.flatten()


def error(own: TableDeparture, others: list[TableDeparture], truth: NDArray[np.float64]) -> float:
    found = pooled_tables(own, others)
    believed = (found.difference / (1 + found.ridge)).numpy()
    return float(np.square(believed - truth).mean())


def test_a_class_of_few_is_told_by_those_like_it() -> None:
    truth = true_tables(0)
    few, many = departure(truth, 0.16, 1), departure(truth, 0.004, 2)
    assert error(few, [many], truth) < 0.5 * error(few, [], truth)
    # Of the other it hears next to nothing.
    assert error(many, [few], truth) < 1.1 * error(many, [], truth)


def test_a_class_of_many_that_is_unlike_others_keeps_what_is_its_own() -> None:
    truth = true_tables(0)
    many, others = departure(truth, 0.004, 1), departure(true_tables(3), 0.004, 2)
    assert error(many, [others], truth) < 1.2 * error(many, [], truth)


def test_of_tables_in_which_nothing_goes_together_nothing_is_believed() -> None:
    nothing = np.zeros(TABLES * CELLS)
    looks = [departure(nothing, 0.16, seed) for seed in range(3)]
    found = pooled_tables(looks[0], looks[1:])
    believed = (found.difference / (1 + found.ridge)).numpy()
    assert np.square(believed).mean() < 0.05 * 0.16


def test_without_others_nothing_changes_but_the_ridge() -> None:
    own = departure(true_tables(0), 0.01, 1)
    found = pooled_tables(own, [])
    shares, noise = found.shares(own)
    assert torch.equal(found.difference, own.difference)
    assert np.concatenate(shares) == pytest.approx(EXPECTED.numpy() + own.difference.numpy() / 4)
    assert noise == pytest.approx(np.full(TABLES, 0.1 / 4))


@pytest.mark.parametrize("of_numbers", [False, True])
def test_a_rare_cell_is_heard_in_tables_with_categories(of_numbers: bool) -> None:
    """It has a hundred times as much noise as the others, which show nothing."""
    rare = torch.arange(TABLES * CELLS) % CELLS == 0
    expected = torch.where(rare, 1e-3, 0.1).double()
    own = departure(torch.where(rare, 0.5, 0.0).double().numpy(), 1e-4, 1)
    own = replace(own, expected=expected, noise=1e-5 / expected)
    found = pooled_tables(replace(own, of_numbers=torch.full((TABLES,), of_numbers)), [])
    believed = (found.difference / (1 + found.ridge))[rare]
    assert bool((believed > 0.25).all()) == (not of_numbers)
    assert bool((believed < 0.05).all()) == of_numbers


def test_tables_of_numbers_in_which_nothing_is_visible_change_nothing() -> None:
    looks = [departure(np.zeros(TABLES * CELLS), 0.16, seed) for seed in range(2)]
    own, other = (replace(each, of_numbers=each.tied > 0) for each in looks)
    ridge = pooled_tables(own, [other]).ridge
    assert float((ridge > 1e7).double().mean()) > 0.6
