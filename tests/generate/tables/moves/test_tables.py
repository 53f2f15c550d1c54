"""Tables of a class are told by those of all classes, as far as classes are alike."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.features.marginals import MarginalColumn, MarginalGroup
from dpntk.generate.tables.moves.tables import ReleasedCounts, TableDeparture

KINDS = 6
TABLE = MarginalGroup((MarginalColumn(0, KINDS, 0, -1), MarginalColumn(KINDS, KINDS, 0, -1)))
ROWS = 20_000
FEW, MANY = 0.02, 0.0005
"""Noise on a share of the one class, and of the other; most shares are about .03."""


def shares(alike: float) -> NDArray[np.float64]:
    """Of two columns that are the same in a part of the rows, the first value more often."""
    often = np.arange(KINDS, 0, -1) / (KINDS * (KINDS + 1) / 2)
    found: NDArray[np.float64] = (1 - alike) * np.outer(often, often) + alike * np.diag(often)
    return found


def rows(table: NDArray[np.float64]) -> torch.Tensor:
    """With its columns, each by itself."""
    random = np.random.default_rng(0)
    made = np.zeros((ROWS, 2 * KINDS), dtype=np.float32)
    for start, each in ((0, table.sum(axis=1)), (KINDS, table.sum(axis=0))):
        made[np.arange(ROWS), start + random.choice(KINDS, ROWS, p=each)] = 1
    return torch.from_numpy(made)


def released(table: NDArray[np.float64], noise: float, seed: int) -> ReleasedCounts:
    drawn = np.random.default_rng(seed).normal(0, noise, table.size)
    return ReleasedCounts((TABLE,), 255, table.flatten() + drawn, np.array([noise]))


def told(few: NDArray[np.float64], many: NDArray[np.float64], seed: int) -> ReleasedCounts:
    """What all say of the class with few records."""
    of_few, of_many = released(few, FEW, 2 * seed), released(many, MANY, 2 * seed + 1)
    departures = [TableDeparture.of(of_few, rows(few)), TableDeparture.of(of_many, rows(many))]
    return of_few.by_all_classes(departures[0], departures[1:])


def test_a_table_without_noise_is_its_departure_from_independent_columns() -> None:
    table = shares(0.5)
    found = TableDeparture.of(released(table, 1e-9, 0), rows(table))
    independent = np.outer(table.sum(axis=1), table.sum(axis=0)).flatten()
    assert found.expected.numpy() == pytest.approx(independent, abs=0.01)
    phi = np.square(table.flatten() - independent) / independent
    assert float(found.look.lacking.square().sum()) == pytest.approx(phi.sum(), rel=0.1)


def test_a_class_of_few_is_told_by_another_that_is_alike() -> None:
    """Root mean square over eight draws: by itself as large as its noise."""
    table = shares(0.5)
    found = [told(table, table, seed) for seed in range(8)]
    error = np.mean([np.square(each.shares - table.flatten()).mean() for each in found]) ** 0.5
    assert error < 0.6 * FEW
    assert np.mean([each.noise[0] for each in found]) < 0.8 * FEW


def test_a_class_that_is_not_alike_is_not_told_by_another() -> None:
    """The one has columns that go together, the other independent ones: it keeps its own."""
    table, other = shares(0.9), shares(0.0)
    for seed in range(4):
        found = told(table, other, seed)
        on_diagonal = found.shares.reshape(table.shape).trace()
        assert on_diagonal == pytest.approx(table.trace(), abs=6 * FEW * KINDS**0.5)
        assert found.noise[0] > 0.8 * FEW
