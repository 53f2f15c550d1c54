"""What tables have beyond independent columns: exactly, and with as much noise as is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.features.marginals.cells import MarginalColumn, MarginalGroup
from dpntk.common.features.marginals.map import MarginalFeatures
from dpntk.generate.tables.dependence.table_departures import (
    ReleasedCounts,
    TableDeparture,
    TablePlaces,
    shares_among,
)
from tests.helpers.tables import PEOPLE, encoded_people

ROWS = 4000
FIRST = MarginalColumn(0, 1, 256, -1, merged=(0, 120))
SECOND = MarginalColumn(1, 1, 256, 2, merged=(0, 140))  # missing in a tenth
WHOLE = MarginalGroup((FIRST, SECOND))
FOLDED = replace(WHOLE, folded=True)


def rows() -> torch.Tensor:
    """Two numbers that go together, and whether the second is missing."""
    random = np.random.default_rng(0)
    normal = random.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], ROWS)
    numbers = np.clip(0.5 + normal / 8, 0, 1)
    missing = random.random(ROWS) < 0.1
    return torch.from_numpy(np.c_[numbers, missing].astype(np.float32))


def counted(table: MarginalGroup, records: torch.Tensor) -> NDArray[np.float64]:
    whole = (records * 255).round().long()
    cells = table.cell_among({side: side.cell(whole) for side in table.sides})
    shares: NDArray[np.float64] = np.bincount(cells, minlength=table.dimension) / len(records)
    return shares


def departure(table: MarginalGroup, noise: float, seed: int = 0) -> TableDeparture:
    random = np.random.default_rng(seed)
    shares = counted(table, rows()) + random.normal(0, noise, table.dimension)
    released = ReleasedCounts((table,), 255, shares, np.array([noise]))
    return TableDeparture.of(released, shares_among(rows(), released.levels))


def test_a_table_lacks_what_independent_columns_do_not_have() -> None:
    records = rows()
    apart = records.clone()
    apart[:, 0] = records[torch.randperm(ROWS, generator=torch.Generator().manual_seed(1)), 0]
    found = departure(WHOLE, 0.0)
    one, other = (shares_among(records, 255)(side) for side in WHOLE.sides)
    assert found.expected == pytest.approx(torch.outer(one, other).flatten())
    difference = found.difference * found.scale
    assert difference.numpy() == pytest.approx(counted(WHOLE, records) - found.expected.numpy())
    assert np.abs(difference.numpy() - counted(WHOLE, records) + counted(WHOLE, apart)).max() < 0.03


def test_a_folded_table_lacks_the_same_in_its_four_cells() -> None:
    """As long as no cell of missing numbers has anything of its own."""
    whole, folded = departure(WHOLE, 0.0), departure(FOLDED, 0.0)
    assert folded.expected.numpy() == pytest.approx(whole.expected.numpy())
    cells = (folded.difference * folded.scale).view(2, 3).numpy()
    assert cells[:, 2] == pytest.approx(0.0)
    assert cells[:, :2] == pytest.approx(cells[0, 0] * np.array([[1, -1], [-1, 1]]))
    exact = (whole.difference * whole.scale).view(2, 3).numpy()
    assert cells[:, :2] == pytest.approx(exact[:, :2], abs=0.01)
    assert cells[0, 0] > 0.05


@pytest.mark.parametrize("table", [WHOLE, FOLDED])
def test_noise_is_what_is_said(table: MarginalGroup) -> None:
    exact = departure(table, 0.0)
    made = [departure(table, 0.02, seed) for seed in range(400)]
    off = torch.stack([each.difference - exact.difference for each in made])[:, [0, 1, 3, 4]]
    variance = off.square().mean(dim=0)
    assert (variance / made[0].noise[[0, 1, 3, 4]]).numpy() == pytest.approx(1, abs=0.3)
    # All four cells of a folded one have the same noise.
    alike = torch.corrcoef(off.T).abs()
    assert (alike.min() > 0.99) == table.folded


def test_a_folded_table_tells_a_correlation_by_less_noise() -> None:
    """Of half the variance that four cells leave, and said by how much."""
    whole, folded = (
        np.std([departure(table, 0.02, seed).difference[0].item() for seed in range(400)])
        for table in (WHOLE, FOLDED)
    )
    assert folded < 0.5 * whole


def test_cells_of_rows_are_those_of_all_tables() -> None:
    places = TablePlaces((FOLDED,), 255)
    assert places.tables == [WHOLE]
    assert places.sizes.tolist() == [6]
    whole = (rows() * 255).round().long()
    expected = torch.stack([side.cell(whole) for side in WHOLE.sides])
    assert torch.equal(places.codes(rows()).long(), expected)


@pytest.mark.parametrize("fine", [False, True])
def test_cells_are_those_of_the_release_whatever_they_are_read_from(fine: bool) -> None:
    """Bins of numbers, as older releases have them, or cells; and categories, some missing."""
    groups = [("age", "pay"), ("town", "grade")]
    features = MarginalFeatures.of(PEOPLE, groups=groups, fine=fine)
    places = TablePlaces(features.groups, 255)
    assert any(side.cells for side in places.sides) == fine
    whole = (encoded_people(500, np.random.default_rng(0)) * 255).round()
    expected = torch.stack([side.cell(whole.long()) for side in places.sides])
    assert torch.equal(places.codes(whole / 255).long(), expected)


def test_a_folded_table_counts_for_one_departure() -> None:
    """Its four cells share their noise, and nothing is known of missing numbers."""
    for table, freedom in ((FOLDED, 1), (WHOLE, WHOLE.dimension)):
        with_categories, of_numbers = departure(table, 0.01).grouped
        assert with_categories.groups == 0
        assert of_numbers.freedom.tolist() == [freedom]
