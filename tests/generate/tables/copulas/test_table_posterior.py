"""What rows are to have: cell by cell where cells are seen, by a law where they are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.features.marginals.cells import MarginalColumn, MarginalGroup
from dpntk.generate.tables.copulas.table_posterior import (
    Lacking,
    TableObservation,
    copulas_of,
    known_together,
    posterior_tables,
)
from dpntk.generate.tables.dependence.table_departures import SharesOf, shares_among

ROWS = 20_000
FIRST, SECOND = MarginalColumn(0, 1, 64, -1), MarginalColumn(1, 1, 64, -1)
HALVES = MarginalGroup((replace(FIRST, merged=(0, 32)), replace(SECOND, merged=(0, 32))))


def rows(correlation: float) -> torch.Tensor:
    covariance = [[1, correlation], [correlation, 1]]
    normal = np.random.default_rng(0).multivariate_normal([0, 0], covariance, ROWS)
    return torch.from_numpy(np.clip(0.5 + normal / 8, 0, 1).astype(np.float32))


def shares(table: MarginalGroup, records: torch.Tensor) -> NDArray[np.float64]:
    whole = (records * 255).round().long()
    cells = table.cell_among({side: side.cell(whole) for side in table.sides})
    found = np.bincount(cells, minlength=table.dimension) / len(records)
    return found.astype(np.float64)


def tables_of(
    looks: Sequence[TableObservation], shares_of: SharesOf, *, divide_folded: bool = True
) -> list[tuple[MarginalGroup, torch.Tensor]]:
    copulas = copulas_of(looks, shares_of)
    return posterior_tables(looks, shares_of, copulas, divide_folded=divide_folded)


def test_two_halves_tell_a_table_of_many_cells() -> None:
    """Which rows of correlation .8 have; held to the halves alone, they would have .4."""
    records = rows(0.8)
    look = TableObservation(HALVES, True, True, shares(HALVES, records), 1e-3)
    ((table, found),) = tables_of([look], shares_among(records, 255))
    assert [side.known for side in table.sides] == [8, 8]
    assert found.numpy() == pytest.approx(shares(table, records), abs=0.01)
    assert float(found.sum()) == pytest.approx(1)
    ((same, _),) = tables_of([look], shares_among(records, 255), divide_folded=False)
    assert same == HALVES
    fine = replace(look, coarse=False, folded=False)
    ((same, within),) = tables_of([fine], shares_among(records, 255))
    assert same == HALVES
    assert within.numpy() == pytest.approx(look.shares, abs=0.01)


def test_parts_that_follow_no_law_are_kept() -> None:
    """The second number is the first one's distance from the middle: in three parts that shows."""
    first = rows(0.0)[:, 0]
    records = torch.stack([first, (2 * (first - 0.5)).abs()], dim=1)
    thirds = (replace(FIRST, merged=(0, 28, 36)), replace(SECOND, merged=(0, 7, 15)))
    table = MarginalGroup(thirds)
    look = TableObservation(table, True, False, shares(table, records), 1e-3)
    ((finer, found),) = tables_of([look], shares_among(records, 255), divide_folded=False)
    assert all(len(side.merged) >= 8 for side in finer.sides)
    levels = torch.cartesian_prod(torch.arange(256), torch.arange(256))
    cell, part = (
        group.cell_among({side: side.cell(levels) for side in group.sides})
        for group in (finer, table)
    )
    part_of = dict(zip(cell.tolist(), part.tolist(), strict=True))
    of_part = np.zeros(table.dimension)
    for number, share in enumerate(found.tolist()):
        of_part[part_of[number]] += share
    assert of_part == pytest.approx(look.shares, abs=0.01)


def test_cells_that_are_drowned_are_as_the_halves_have_them() -> None:
    """A table of 4,096 cells of the same numbers, each with ten times as much noise as it has."""
    records = rows(0.8)
    many = MarginalGroup((FIRST, SECOND))
    noise = 10 / many.dimension
    noisy = shares(many, records) + np.random.default_rng(0).normal(0, noise, many.dimension)
    halves = TableObservation(HALVES, True, True, shares(HALVES, records), 1e-3)
    drowned = TableObservation(many, False, False, noisy, noise)
    assert drowned.has_low_signal
    _, (table, found) = tables_of([halves, drowned], shares_among(records, 255))
    assert table == many
    assert float((found - torch.from_numpy(shares(many, records))).abs().sum()) < 0.2


def test_what_is_measured_in_more_cells_is_not_said_by_a_law_as_well() -> None:
    """Numbers fall within each half, and rise from one half to the other.

    The halves in more cells, by a law of numbers that rise, asked for the opposite of what was
    measured, and rows had neither.
    """
    first = rows(0.0)[:, 0]
    second = torch.where(first < 0.5, 0.5 - first, 1.5 - first)
    records = torch.stack([first, second], dim=1)
    parts = tuple(replace(side, merged=tuple(range(0, 64, 4))) for side in (FIRST, SECOND))
    finer = MarginalGroup(parts)
    seen = shares(finer, records)
    halves = TableObservation(HALVES, True, False, shares(HALVES, records), 1e-3)
    measured = TableObservation(finer, False, False, seen, 1e-3)
    shares_of = shares_among(records, 255)
    (table, kept), (_, found) = tables_of([halves, measured], shares_of)
    assert table == HALVES
    assert kept.numpy() == pytest.approx(halves.shares, abs=0.01)
    assert found.numpy() == pytest.approx(seen, abs=0.01)
    drowned = replace(measured, noise=2 / finer.dimension)
    assert drowned.has_low_signal
    (table, _), _ = tables_of([halves, drowned], shares_of)
    assert table.dimension > HALVES.dimension


def test_columns_are_those_of_the_rows() -> None:
    records = rows(0.0)
    shares_of = shares_among(records, 255)
    seen = shares(HALVES, rows(0.8)) + np.array([0.05, 0.0, 0.0, 0.0])
    for folded in (False, True):
        ((table, found),) = tables_of(
            [TableObservation(HALVES, True, folded, seen, 0.01)], shares_of
        )
        cells = found.view([side.dimension for side in table.sides])
        for axis, side in enumerate(table.sides):
            assert cells.sum(dim=1 - axis).numpy() == pytest.approx(
                shares_of(side).numpy(), abs=1e-6
            )


def test_a_number_that_no_row_has_goes_with_nothing() -> None:
    gone = MarginalColumn(1, 1, 64, 2, merged=(0, 32))
    table = MarginalGroup((HALVES.sides[0], gone))
    records = torch.cat([rows(0.8), torch.ones(ROWS, 1)], dim=1)
    look = TableObservation(table, True, True, shares(table, records), 0.01)
    ((_, found),) = tables_of([look], shares_among(records, 255))
    assert float(found.sum()) == pytest.approx(1)


GAPS = MarginalColumn(0, 1, 64, 2), MarginalColumn(1, 1, 64, 3)
"""Two numbers that may be missing."""
GAPS_HALVED = MarginalGroup(tuple(replace(side, merged=(0, 32)) for side in GAPS))


def rows_with_gaps(together: float, alone: float) -> torch.Tensor:
    """Rows of correlation .8; both numbers are missing in a share of them, each alone in others."""
    records = torch.cat([rows(0.8), torch.zeros(ROWS, 2)], dim=1)
    chance = torch.from_numpy(np.random.default_rng(1).random(ROWS))
    for number in range(2):
        lacks = chance < together
        first = together + number * alone
        lacks |= (chance >= first) & (chance < first + alone)
        records[lacks, number], records[lacks, 2 + number] = 0.0, 1.0
    return records


@pytest.mark.parametrize(("together", "alone"), [(0.3, 0.01), (0.05, 0.25), (0.09, 0.21)])
def test_numbers_are_missing_together_as_often_as_the_tables_show(
    together: float, alone: float
) -> None:
    """Even if noise hides every cell but that of rows in which both are."""
    records = rows_with_gaps(together, alone)
    shares_of = shares_among(records, 255)
    many = MarginalGroup(GAPS)
    noise = 10 / many.dimension
    noisy = shares(many, records) + np.random.default_rng(0).normal(0, noise, many.dimension)
    halved = shares(GAPS_HALVED, records)
    looks = [
        TableObservation(GAPS_HALVED, True, False, halved, 1e-3),
        TableObservation(many, False, False, noisy, noise),
    ]
    _, (_, found) = tables_of(looks, shares_of)
    cells = found.view(65, 65)
    assert float(cells[-1, -1]) == pytest.approx(together, abs=0.005)
    true = torch.from_numpy(shares(many, records)).view(65, 65)
    assert float((cells - true)[:-1, :-1].abs().sum()) < 0.2
    for axis, side in enumerate(GAPS):
        assert cells.sum(dim=1 - axis).numpy() == pytest.approx(shares_of(side).numpy(), abs=1e-4)


def test_folded_tables_show_how_many_rows_lack_either() -> None:
    records = rows_with_gaps(0.3, 0.01)
    shares_of = shares_among(records, 255)
    known = shares(GAPS_HALVED, records).reshape(3, 3)[:2, :2]
    same = known.trace() - known[0, 1] - known[1, 0]
    cells = np.outer(*(shares_of(side).numpy() for side in GAPS_HALVED.sides))
    cells[:2, :2] += same / 4 * np.array([[1, -1], [-1, 1]])  # as the halves are unfolded
    look = TableObservation(
        GAPS_HALVED, True, True, cells.ravel(), 1e-3, Lacking(1 - float(known.sum()), 1e-3)
    )
    (together,) = known_together([look], shares_of).values()
    assert together == pytest.approx(float(known.sum()), abs=1e-3)
    ((_, found),) = tables_of([look], shares_of)
    assert float(found[-1]) == pytest.approx(0.3, abs=0.01)
    copulas = copulas_of([look], shares_of)
    assert copulas is not None
    estimate = copulas.correlation(look.pair)
    assert estimate is not None
    assert estimate.mean == pytest.approx(0.8, abs=0.03)  # .95 if taken to be independent
    silent = known_together([replace(look, lacking=None)], shares_of)
    assert silent == {}


def test_what_noise_explains_of_missing_together_is_not_believed() -> None:
    records = rows_with_gaps(0.09, 0.21)  # independent
    shares_of = shares_among(records, 255)
    seen = shares(GAPS_HALVED, records)
    alone = [float(shares_of(side)[-1]) for side in GAPS_HALVED.sides]
    independent = (1 - alone[0]) * (1 - alone[1])
    for error, believed in ((0.05, 0.0), (0.2, 0.75 * 0.2)):
        off = np.array([*seen[:-1], alone[0] * alone[1] + error])
        look = TableObservation(GAPS_HALVED, True, False, off, 0.1)
        (together,) = known_together([look], shares_of).values()
        assert together == pytest.approx(independent + believed)
