"""Energy gains of moves under the energy of tables of columns (`count`).

Each row's cell in every table is kept, so that a changed value updates only few of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ....common.schema.encoding import Block
from ..dependence.table_departures import CELL


@dataclass(frozen=True, eq=False)
class ColumnTables:
    """The places of a column in tables.

    Attributes:
        tables: the tables that contain it, (k,).
        sides: the side that it forms in each, (k,).
        strides: how far the cell of each table moves with that of the side, int32 (k, 1).
        own: all distinct sides that it forms, (s,).
        among: index of each of `sides` in `own`, (k,).
    """

    tables: Tensor
    sides: Tensor
    strides: Tensor
    own: Tensor
    among: Tensor

    @classmethod
    def of(cls, pairs: Tensor, stride: Tensor) -> ColumnTables:
        """Build from sides and tables (2, k), and the strides of all (sides, tables)."""
        sides, tables = pairs
        own, among = sides.unique(return_inverse=True)
        return cls(tables, sides, stride[sides, tables][:, None].to(CELL), own, among)


@dataclass(frozen=True, eq=False)
class RowCells:
    """The cells of rows in tables, with the energy of each cell.

    Attributes:
        codes: cells of sides, int32 (sides, n), changed in place.
        cells: cells of tables, int32 (tables, n), changed in place.
        energy: energy of each cell, float32.
        tables_of: the places of each column, by where its values begin in a record.
    """

    codes: Tensor
    cells: Tensor
    energy: Tensor
    tables_of: dict[int, ColumnTables]

    def column(self, block: Block) -> ColumnTables | None:
        """The places of a column; None if it is in no table."""
        return next((self.tables_of[at] for at in block.starts if at in self.tables_of), None)

    def gain(self, column: ColumnTables, rows: Tensor, moved: Tensor) -> Tensor:
        """The gain, (m,), if the cells of a column's tables move by (k, m) in some rows (m,)."""
        cells = self.cells[column.tables[:, None], rows]
        gain: Tensor = (self._energy_of(cells + moved) - self._energy_of(cells)).sum(dim=0)
        return gain

    def move(self, column: ColumnTables, rows: Tensor, new: Tensor) -> None:
        """Give some rows, int64 (m,), new cells (s, m) of a column's sides."""
        moved = (new - self.codes[column.own[:, None], rows])[column.among] * column.strides
        self.cells[column.tables[:, None], rows] += moved
        self.codes[column.own[:, None], rows] = new

    def _energy_of(self, cells: Tensor) -> Tensor:
        # Faster than indexing in two dimensions.
        return self.energy.index_select(0, cells.flatten()).view_as(cells)


class CountCopyGains:
    """The energy gains of rows that take values of others.

    Args:
        places: cells of the rows.
        others: cells of sides in the other rows, int32 (sides, k).
    """

    def __init__(self, places: RowCells, others: Tensor) -> None:
        self._places, self._others = places, others

    def gain(self, block: Block, rows: Tensor, source: Tensor) -> Tensor | float:
        """The gain for each of some rows that take a column's value from others, (m,).

        Args:
            block: the column.
            rows: int64 (m,).
            source: the row that each takes its value from, int64 (m,).
        """
        if (column := self._places.column(block)) is None:
            return 0.0
        sides = column.sides[:, None]
        moved = (self._others[sides, source] - self._places.codes[sides, rows]) * column.strides
        return self._places.gain(column, rows, moved)

    def accept(self, block: Block, rows: Tensor, source: Tensor) -> None:
        """Record that rows have taken the values; args are those of `gain`."""
        if (column := self._places.column(block)) is not None:
            self._places.move(column, rows, self._others[column.own[:, None], source])


class CountSwapGains:
    """The energy gains of swaps between pairs of rows.

    Args:
        places: cells of 2 n rows; row i may swap values with row n + i.
    """

    def __init__(self, places: RowCells) -> None:
        self._places, self._half = places, places.codes.shape[1] // 2

    def gain(self, block: Block, pairs: Tensor) -> Tensor | float:
        """The gain for each of some pairs, (m,), that swap their values of a column, (m,)."""
        if (column := self._places.column(block)) is None:
            return 0.0
        rows, sides = torch.cat([pairs, pairs + self._half]), column.sides[:, None]
        one, other = self._places.codes[sides, rows].chunk(2, dim=1)
        moved = (other - one) * column.strides
        gain = self._places.gain(column, rows, torch.cat([moved, -moved], dim=1))
        return gain.view(2, len(pairs)).sum(dim=0)

    def accept(self, block: Block, chosen: Tensor) -> None:
        """Record that some pairs, int64 (m,), have swapped their values of a column."""
        if (column := self._places.column(block)) is not None:
            rows = torch.cat([chosen, chosen + self._half])
            new = self._places.codes[column.own[:, None], rows.roll(len(chosen))]
            self._places.move(column, rows, new)
