"""The departure of released tables of columns from independence.

A release with marginals of pairs or triples of columns (`dpntk.common.features.marginals`) holds
noisy shares of their cells. If columns were independent, these shares would be products of
marginals. The difference is the evidence of dependence between columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....common.features.joint import Parts
from ....common.features.marginals.cells import MarginalColumn, MarginalGroup
from .grouped_departures import GroupedDepartures

SharesOf = Callable[[MarginalColumn], Tensor]
"""Gives the share of each cell of a column among rows, float64 (cells,)."""

CELL: Final = torch.int32
"""Type of a cell's index among those of all tables, which are fewer than 2^24."""
_EXACT: Final = 1e-9
"""Floor for shares of cells."""
_NO_NOISE: Final = 1e-12
"""Floor for variances of the noise."""
_SAME: Final = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
"""1 if two numbers are both in their lower or both in their upper half, else -1."""
_FOLDED_CELLS: Final = 4
_FOLDED_LESS: Final = 8.0
"""Noise variance of a folded table's share, over that of a cell of the unfolded table."""


@dataclass(frozen=True, eq=False)
class ReleasedCounts:
    """The released marginals of pairs and triples of columns of one class.

    Attributes:
        tables: the columns of each.
        levels: records hold integers 0..levels.
        shares: noisy shares of the cells of all tables, float64 (cells,).
        noise: standard deviation of the noise on the shares of each table, float64 (tables,).
        coarse: how many of the first tables are coarse pairs, of all pairs of numbers.
    """

    tables: tuple[MarginalGroup, ...]
    levels: int
    shares: NDArray[np.float64]
    noise: NDArray[np.float64]
    coarse: int = 0

    @classmethod
    def of(cls, parts: Parts, mean: NDArray[np.float32], noise: float) -> ReleasedCounts | None:
        """Extract the tables from a class's mean feature; None if it holds none.

        Args:
            parts: of the feature map.
            mean: noisy, float32 (d,).
            noise: standard deviation of the noise on an entry of it.
        """
        features = parts.marginals
        if features is None or not features.groups:
            return None
        tables = (*features.coarse, *features.groups)
        sizes = parts.weight * features.entries[-len(tables) :]
        cells = [table.dimension for table in tables]
        noisy = mean[parts.coarse_place.start : parts.group_place.stop].astype(np.float64)
        shares = noisy / np.repeat(sizes, cells)
        return cls(tables, features.levels, shares, noise / sizes, len(features.coarse))


class TablePlaces:
    """The layout of the cells of tables of columns.

    Args:
        tables: the columns of each.
        levels: records hold integers 0..levels.

    Attributes:
        tables: the same, with folded tables unfolded to all of their cells.
        sides: the distinct sides of all tables.
        sizes: number of cells of each table, int64 (tables,).
    """

    def __init__(self, tables: Sequence[MarginalGroup], levels: int) -> None:
        self.tables, self._levels = [table.unfolded for table in tables], levels
        self.sizes = torch.tensor([table.dimension for table in self.tables])
        self.sides = list(dict.fromkeys(side for table in tables for side in table.sides))
        self._merging = [
            side.merge(torch.arange(side.unmerged.dimension)).to(CELL) for side in self.sides
        ]
        places: list[int] = []
        self._numeric = {}
        for column in {side.unmerged for side in self.sides if side.cells}:
            self._numeric[column] = _read_from(column, len(places))
            places += range(column.start, column.start + column.count)
            places += [column.missing] * (column.missing >= 0)
        self._places = torch.tensor(places, dtype=torch.int64)

    @cached_property
    def starts(self) -> Tensor:
        """Where the cells of each table begin among all cells, int64 (tables,)."""
        return self.sizes.cumsum(0) - self.sizes

    @cached_property
    def strides(self) -> Tensor:
        """How far a table's cell moves if a side's cell moves by one, int64 (sides, tables).

        0 where the table does not have the side.
        """
        found = torch.zeros(len(self.sides), len(self.tables), dtype=torch.int64)
        for number, table in enumerate(self.tables):
            step = 1
            for side in reversed(table.sides):
                found[self.sides.index(side), number] = step
                step *= side.dimension
        return found

    @cached_property
    def of_columns(self) -> dict[int, list[tuple[int, int]]]:
        """The (side, table) pairs of each column, by where it begins in a record."""
        found: dict[int, list[tuple[int, int]]] = {}
        for number, table in enumerate(self.tables):
            for side in table.sides:
                found.setdefault(side.start, []).append((self.sides.index(side), number))
        return found

    def codes(self, records: Tensor) -> Tensor:
        """The cell of each side in rows (n, record size) of values 0..1, as read back.

        Rows have one category of each column of categories; a number is in one of its bins, or
        between two neighbouring ones. So the centre, rounded, is the largest, and a product is
        much faster than `argmax`.

        Returns:
            int32 (sides, n).
        """
        found = torch.empty(len(self.sides), len(records), dtype=CELL)
        numbers = records.index_select(1, self._places)
        levels = numbers.clamp_(0, 1).mul_(self._levels).round_().to(torch.int64)
        own = {column: here.cell(levels) for column, here in self._numeric.items()}
        for row, side, merged in zip(found, self.sides, self._merging, strict=True):
            if side.cells:
                torch.index_select(merged, 0, own[side.unmerged], out=row)
            else:
                of_side = records[:, side.start : side.start + side.count]
                centre = of_side @ torch.arange(side.count, dtype=records.dtype)
                row.copy_(centre.round_())
        return found

    def independent(self, shares_of: SharesOf) -> Tensor:
        """The shares of the cells of all tables under independence, float64 (cells,).

        Args:
            shares_of: gives the shares of the cells of a side.
        """
        found = []
        for table in self.tables:
            of_table = torch.ones(1, dtype=torch.float64)
            for side in table.sides:
                of_table = torch.outer(of_table, shares_of(side)).flatten()
            found.append(of_table)
        return torch.cat(found)


def _read_from(column: MarginalColumn, start: int) -> MarginalColumn:
    """A numeric column of records in which its values begin at another place."""
    end = start + column.count
    return replace(column, start=start, missing=end if column.missing >= 0 else -1)


def shares_among(records: Tensor, levels: int) -> SharesOf:
    """A function that gives the shares of a column's cells among rows, float64 (cells,).

    Args:
        records: (n, record size) of values 0..1, as read back.
        levels: records hold integers 0..levels.
    """
    whole = (records.clamp(0, 1) * levels).round().to(torch.int64)

    @cache
    def shares_of(column: MarginalColumn) -> Tensor:
        return torch.bincount(column.cell(whole), minlength=column.dimension).double() / len(whole)

    return shares_of


@dataclass(frozen=True, eq=False)
class TableDeparture:
    """How the tables of a class differ from those of independent columns.

    The unit of each cell is the root of its share under independence, in which sampled shares of
    independent rows have equal variance in all cells.

    Attributes:
        sizes: number of cells of each table, int64 (tables,).
        tied: how many cells of a table share the same noise, up to its sign, int64 (tables,).
        of_numbers: which tables are of numbers alone, bool (tables,).
        observed: which cells the release says anything about, bool (cells,).
        expected: shares of cells under independence, positive, float64 (cells,).
        difference: the released shares minus these, in these units, (cells,).
        noise: variance of the noise on each of these, (cells,).
    """

    sizes: Tensor
    tied: Tensor
    of_numbers: Tensor
    observed: Tensor
    expected: Tensor
    difference: Tensor
    noise: Tensor

    @classmethod
    def of(cls, released: ReleasedCounts, shares_of: SharesOf) -> TableDeparture:
        """The departure of a class.

        Args:
            released: tables of the class.
            shares_of: gives the shares of its columns' cells.
        """
        places = TablePlaces(released.tables, released.levels)
        independent = places.independent(shares_of)
        expected = independent.clamp(min=_EXACT)
        shares = torch.from_numpy(released.shares)
        cells = shares.split([table.dimension for table in released.tables])
        parts = independent.split(places.sizes.tolist())
        apart = [
            _unfolded(table, seen, part) if table.folded else seen - part
            for table, seen, part in zip(released.tables, cells, parts, strict=True)
        ]
        folded = torch.tensor([table.folded for table in released.tables])
        # Unfolding moves each cell by a quarter of the difference of two noisy shares.
        noise = torch.from_numpy(released.noise).square() / torch.where(folded, _FOLDED_LESS, 1.0)
        return cls(
            places.sizes,
            torch.where(folded, _FOLDED_CELLS, 1),
            torch.tensor([table.of_numbers for table in released.tables]),
            torch.cat([_told(table) for table in released.tables]),
            expected,
            torch.cat(apart) / expected.sqrt(),
            noise.repeat_interleave(places.sizes) / expected,
        )

    @cached_property
    def places(self) -> tuple[Tensor, Tensor]:
        """The cells of tables with categories, and of those of numbers, bool (cells,) each."""
        of_numbers = self.each(self.of_numbers)
        return ~of_numbers, of_numbers

    @cached_property
    def grouped(self) -> tuple[GroupedDepartures, ...]:
        """The same, by tables, for each of `places`."""
        return tuple(map(self._grouped, self.places))

    def _grouped(self, place: Tensor) -> GroupedDepartures:
        tables, group = torch.unique(
            self.each(torch.arange(len(self.sizes)))[place], return_inverse=True
        )
        return GroupedDepartures(
            difference=self.difference[place],
            noise=self.noise[place].clamp(min=_NO_NOISE),
            frequency=self.scale[place],
            weight=(self.observed.double() / self.each(self.tied))[place],
            group=group,
            groups=len(tables),
        )

    @cached_property
    def scale(self) -> Tensor:
        """The units, (cells,)."""
        return self.expected.sqrt()

    def of_tables(self, numbers: Tensor) -> Tensor:
        """Sums over the cells of each table, (tables,)."""
        return torch.stack([one.sum() for one in self.tables_of(numbers)])

    def tables_of(self, cells: Tensor) -> tuple[Tensor, ...]:
        """Split values of all cells by table."""
        found: tuple[Tensor, ...] = cells.split(self.sizes.tolist())
        return found

    def each(self, of_tables: Tensor) -> Tensor:
        """Expand values of tables to their cells, (cells,)."""
        return of_tables.repeat_interleave(self.sizes)


def _told(table: MarginalGroup) -> Tensor:
    """The cells that a table says anything about: a folded one excludes missing numbers."""
    observed = torch.ones([side.dimension for side in table.sides], dtype=torch.bool)
    if table.folded:
        first, second = table.sides
        observed[first.known :], observed[:, second.known :] = False, False
    return observed.flatten()


def _unfolded(table: MarginalGroup, seen: Tensor, independent: Tensor) -> Tensor:
    """The departure of a folded table's cells: the same size in all four, with signs.

    Args:
        table: of two numbers.
        seen: noisy shares of both numbers in the same half, and in different halves, (2,) or more.
        independent: shares of all cells under independence, (cells,).

    Returns:
        float64 (cells,).
    """
    first, second = table.sides
    apart = torch.zeros(first.dimension, second.dimension, dtype=torch.float64)
    if first.known == second.known == len(_SAME):
        known = independent.view_as(apart)[: len(_SAME), : len(_SAME)]
        together = seen[0] - seen[1] - (known * _SAME).sum()
        apart[: len(_SAME), : len(_SAME)] = together / _FOLDED_CELLS * _SAME
    return apart.flatten()
