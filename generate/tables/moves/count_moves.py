"""By how much the energy of tables of columns grows if rows take values of others.

Cells of all tables are kept row by row, so that a value that changes moves few of them (`counts`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from ....common.schema.encoding import Block

NUMBER: Final = torch.int32
"""Type of a cell's number among those of all tables, which are fewer than 2^24."""


@dataclass(frozen=True, eq=False)
class ColumnTables:
    """Where a column is in tables.

    Attributes:
        tables: of which it is, (k,).
        sides: as which side in each, (k,).
        strides: by how much the cell of each moves with that of the side, int32 (k, 1).
        own: all sides that it is, (s,).
        among: at which of these each of `sides` stands, (k,).
    """

    tables: Tensor
    sides: Tensor
    strides: Tensor
    own: Tensor
    among: Tensor

    @classmethod
    def of(cls, pairs: Tensor, stride: Tensor) -> ColumnTables:
        """By sides and tables (2, k), and strides of all (sides, tables)."""
        sides, tables = pairs
        own, among = sides.unique(return_inverse=True)
        return cls(tables, sides, stride[sides, tables][:, None].to(NUMBER), own, among)


@dataclass(frozen=True, eq=False)
class RowCells:
    """Where rows are, and what that is worth.

    Attributes:
        codes: cells of sides, int32 (sides, n), changed in place.
        cells: of tables, int32 (tables, n), changed in place.
        energy: of each cell, float32.
        tables_of: by where the values of a column begin in a record.
    """

    codes: Tensor
    cells: Tensor
    energy: Tensor
    tables_of: dict[int, ColumnTables]

    def column(self, block: Block) -> ColumnTables | None:
        """None if it is of no table."""
        return next((self.tables_of[at] for at in block.starts if at in self.tables_of), None)

    def gain(self, column: ColumnTables, moved: Tensor) -> Tensor:
        """By how much the energy grows if cells of its tables move so far (k, n), (n,)."""
        cells = self.cells.index_select(0, column.tables)
        gain: Tensor = (self._energy_of(cells + moved) - self._energy_of(cells)).sum(dim=0)
        return gain

    def move(self, column: ColumnTables, rows: Tensor, new: Tensor) -> None:
        """Some rows, int64 (m,), have other cells of a column's sides (s, m) now."""
        moved = (new - self.codes[column.own[:, None], rows])[column.among] * column.strides
        self.cells[column.tables[:, None], rows] += moved
        self.codes[column.own[:, None], rows] = new

    def _energy_of(self, cells: Tensor) -> Tensor:
        # Faster than an index of two dimensions.
        return self.energy.index_select(0, cells.flatten()).view_as(cells)


class CountTake:
    """By how much the energy grows if rows take values of others.

    Args:
        places: of the rows.
        others: cells of sides in the other rows, int32 (sides, k).
    """

    def __init__(self, places: RowCells, others: Tensor) -> None:
        self._places, self._others = places, others

    def gain(self, block: Block, source: Tensor) -> Tensor | float:
        """The growth for each row, if it takes a column's value from another one, (n,)."""
        if (column := self._places.column(block)) is None:
            return 0.0
        new = self._others[column.sides[:, None], source]
        old = self._places.codes.index_select(0, column.sides)
        return self._places.gain(column, (new - old) * column.strides)

    def taken(self, block: Block, source: Tensor, chosen: Tensor) -> None:
        """Some of the rows, int64 (m,), have done so."""
        if (column := self._places.column(block)) is not None:
            new = self._others[column.own[:, None], source[chosen]]
            self._places.move(column, chosen, new)


class CountPull:
    """By how much the energy grows if two rows exchange their values of a column.

    Args:
        places: of 2 n rows; row i may exchange values with row n + i.
    """

    def __init__(self, places: RowCells) -> None:
        self._places, self._half = places, places.codes.shape[1] // 2

    def gain(self, block: Block) -> Tensor | float:
        """The growth for each pair of rows, if they exchange their values of a column, (n,)."""
        if (column := self._places.column(block)) is None:
            return 0.0
        one, other = self._places.codes.index_select(0, column.sides).split(self._half, dim=1)
        moved = (other - one) * column.strides
        gain = self._places.gain(column, torch.cat([moved, -moved], dim=1))
        return gain[: self._half] + gain[self._half :]

    def exchanged(self, block: Block, chosen: Tensor) -> None:
        """Some pairs, int64 (m,), have exchanged their values of a column."""
        if (column := self._places.column(block)) is not None:
            rows = torch.cat([chosen, chosen + self._half])
            new = self._places.codes[column.own[:, None], rows.roll(len(chosen))]
            self._places.move(column, rows, new)
