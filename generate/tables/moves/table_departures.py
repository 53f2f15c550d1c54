"""Tables of columns of a class by a release, compared with those of independent columns.

A release with marginals of pairs or triples of columns (`dpntk.common.features.marginals`) says how
frequent each of their cells is, with noise. If columns were independent, these shares would be
products. How they differ from products is how columns go together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....common.features.joint import Parts
from ....common.features.marginals.cells import MarginalColumn, MarginalGroup
from .count_moves import NUMBER

SharesOf = Callable[[MarginalColumn], Tensor]
"""How often each cell of a column is among rows, float64 (cells,)."""

_EXACT: Final = 1e-9
"""Shares of cells are at least that."""
_SAME: Final = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
"""Whether two numbers are in the same part of two, or in different ones."""
_FOLDED_CELLS: Final = 4
_FOLDED_LESS: Final = 8.0
"""Variance of the noise on a share that is seen folded, over that on the share of a cell that its
table is unfolded to."""


@dataclass(frozen=True, eq=False)
class ReleasedCounts:
    """The released marginals of pairs and triples of columns of one class.

    Attributes:
        tables: the columns of each.
        levels: records hold integers 0..levels.
        shares: of the cells of all of them, noisy, float64 (cells,).
        noise: standard deviation of the noise on those of each table, float64 (tables,).
        coarse: how many of the tables, the first ones, are of all pairs of numbers.
    """

    tables: tuple[MarginalGroup, ...]
    levels: int
    shares: NDArray[np.float64]
    noise: NDArray[np.float64]
    coarse: int = 0

    @classmethod
    def of(cls, parts: Parts, mean: NDArray[np.float32], noise: float) -> ReleasedCounts | None:
        """Read them off a class's mean feature; None if it holds none.

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
    """Where rows are in tables of columns.

    Args:
        tables: the columns of each.
        levels: records hold integers 0..levels.

    Attributes:
        tables: the same with all of their cells, of which folded ones hold sums alone.
        sides: all that are of any table, each once.
        sizes: how many cells each table has, int64 (tables,).
    """

    def __init__(self, tables: Sequence[MarginalGroup], levels: int) -> None:
        self.tables, self._levels = [table.unfolded for table in tables], levels
        self.sizes = torch.tensor([table.dimension for table in self.tables])
        self.sides = list(dict.fromkeys(side for table in tables for side in table.sides))
        self._merging = [
            side.merge(torch.arange(side.unmerged.dimension)).to(NUMBER) for side in self.sides
        ]

    @cached_property
    def starts(self) -> Tensor:
        """Where the cells of each table begin among those of all, int64 (tables,)."""
        return self.sizes.cumsum(0) - self.sizes

    @cached_property
    def strides(self) -> Tensor:
        """How far the cell of a table moves if that of a side moves by one, int64 (sides, tables).

        0 where the side is not one of the table.
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
        """By where a column begins in a record: as which side it is in which table."""
        found: dict[int, list[tuple[int, int]]] = {}
        for number, table in enumerate(self.tables):
            for side in table.sides:
                found.setdefault(side.start, []).append((self.sides.index(side), number))
        return found

    def codes(self, records: Tensor) -> Tensor:
        """The cell of each side in rows (n, record size) of values 0..1, as they would be read.

        Returns:
            int32 (sides, n).
        """
        levels = (records.clamp(0, 1) * self._levels).round().to(torch.int64)
        own = {column: column.cell(levels) for column in {side.unmerged for side in self.sides}}
        sides = zip(self.sides, self._merging, strict=True)
        return torch.stack([merged[own[side.unmerged]] for side, merged in sides])

    def independent(self, shares_of: SharesOf) -> Tensor:
        """How often each cell of all tables is if columns are independent, float64 (cells,).

        Args:
            shares_of: of the cells of a side.
        """
        found = []
        for table in self.tables:
            of_table = torch.ones(1, dtype=torch.float64)
            for side in table.sides:
                of_table = torch.outer(of_table, shares_of(side)).flatten()
            found.append(of_table)
        return torch.cat(found)


def shares_among(records: Tensor, levels: int) -> SharesOf:
    """How often each cell of a column is among rows, float64 (cells,).

    Args:
        records: (n, record size) of values 0..1, as they would be read.
        levels: records hold integers 0..levels.
    """
    whole = (records.clamp(0, 1) * levels).round().to(torch.int64)

    @cache
    def shares_of(column: MarginalColumn) -> Tensor:
        return torch.bincount(column.cell(whole), minlength=column.dimension).double() / len(whole)

    return shares_of


@dataclass(frozen=True, eq=False)
class TableDeparture:
    """By how much tables of columns of a class differ from those of independent ones.

    In units in which shares of independent rows have a variance that is alike in all cells: the
    root of the share of a cell, if columns are independent.

    Attributes:
        sizes: how many cells each table has, int64 (tables,).
        as_one: how many of these have the same noise, up to its sign, int64 (tables,).
        told: of which cells the release says anything by itself, bool (cells,).
        expected: shares of cells if columns are independent, positive, float64 (cells,).
        lacking: the released ones less these, in these units, (cells,).
        noise: variance of the noise on each of these, (cells,).
    """

    sizes: Tensor
    as_one: Tensor
    told: Tensor
    expected: Tensor
    lacking: Tensor
    noise: Tensor

    @classmethod
    def of(cls, released: ReleasedCounts, shares_of: SharesOf) -> TableDeparture:
        """The departure of a class.

        Args:
            released: of the class.
            shares_of: of rows with its columns, each by itself.
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
        # Each cell is moved by a quarter of the difference of two noisy shares.
        noise = torch.from_numpy(released.noise).square() / torch.where(folded, _FOLDED_LESS, 1.0)
        return cls(
            places.sizes,
            torch.where(folded, _FOLDED_CELLS, 1),
            torch.cat([_told(table) for table in released.tables]),
            expected,
            torch.cat(apart) / expected.sqrt(),
            noise.repeat_interleave(places.sizes) / expected,
        )

    @cached_property
    def scale(self) -> Tensor:
        """The units, (cells,)."""
        return self.expected.sqrt()

    def of_tables(self, numbers: Tensor) -> Tensor:
        """Sums over the cells of each table, (tables,)."""
        return torch.stack([one.sum() for one in self.tables_of(numbers)])

    def tables_of(self, cells: Tensor) -> tuple[Tensor, ...]:
        """Each table's part of what there is of all cells."""
        found: tuple[Tensor, ...] = cells.split(self.sizes.tolist())
        return found

    def each(self, of_tables: Tensor) -> Tensor:
        """For each cell, what there is of its table, (cells,)."""
        return of_tables.repeat_interleave(self.sizes)


def _told(table: MarginalGroup) -> Tensor:
    """The cells about which a table says anything: not those of missing numbers if folded."""
    told = torch.ones([side.dimension for side in table.sides], dtype=torch.bool)
    if table.folded:
        first, second = table.sides
        told[first.known :], told[:, second.known :] = False, False
    return told.flatten()


def _unfolded(table: MarginalGroup, seen: Tensor, independent: Tensor) -> Tensor:
    """What cells of a folded table have beyond independent columns: all of four alike, or less.

    Args:
        table: of two numbers.
        seen: noisy shares of both in the same part, and of both in different ones, (2,) or more.
        independent: shares of all cells if columns are independent, (cells,).

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
