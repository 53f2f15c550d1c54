"""The cell of a column, or of two or three columns together, in which a record lies.

Marginals (`dpntk.common.features.marginals`) count these cells. A cell is read from an encoded
record in integer arithmetic, so that it is the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...numerics.exact import first_largest
from ...schema.table import LEVELS

CELLS: Final = 64
"""Cells of a number in an embedding, unless each of its values has one."""
FEW_CELLS: Final = 10
"""The same where noise would hide `CELLS`. Their borders are among those of all cells, because
`CELLS` - 1 is an odd multiple of this, less 1."""
MOST_CELLS: Final = 128
"""Columns with at most this many integers have a cell for each."""

Whole = TypeVar("Whole", Tensor, NDArray[np.int64])


def nearest_cell(level: Whole, cells: int) -> Whole:
    """The nearest of `cells` equally spaced cells to numbers at given levels; both int64."""
    return (2 * level * (cells - 1) + LEVELS) // (2 * LEVELS)


@dataclass(frozen=True)
class MarginalColumn:
    """A column's cells, and where they are read from an encoded record.

    Attributes:
        start: the place of its first value in a record: one value if numeric, otherwise one for
            each category.
        count: the number of these values. A number by level also reads its soft bins, which follow
            it and show whether it is a bound.
        cells: for a numeric column, the number of cells, at equally spaced points of its scale; a
            value belongs to the nearest one. 0 for categories, which are cells themselves.
        missing: the place of the value that marks a missing number; -1 if there is none.
        merged: for a numeric column in a group, the first cell of each set of merged neighbouring
            cells. The cell of missing values is never merged.
    """

    start: int
    count: int
    cells: int
    missing: int
    merged: tuple[int, ...] = ()

    @property
    def dimension(self) -> int:
        """The number of cells, including that of missing values (the last one)."""
        return (len(self.merged) or self.cells or self.count) + (self.missing >= 0)

    @property
    def known(self) -> int:
        """The number of cells without that of missing values."""
        return self.dimension - (self.missing >= 0)

    def cell(self, records: Tensor) -> Tensor:
        """The cell of each record.

        Args:
            records: int64 (b, record size), values 0..255.

        Returns:
            int64 (b,), from 0 to `dimension` - 1, for any records.
        """
        if not self.cells:
            return first_largest(records[:, self.start : self.start + self.count])
        level = records[:, self.start]
        nearest = nearest_cell(level, self.cells)
        if self.count > 1:
            bins = records[:, self.start + 1 : self.start + self.count]
            nearest = level.clamp(1, LEVELS - 1)
            nearest = torch.where(bins[:, 0] == LEVELS, 0, nearest)
            nearest = torch.where(bins[:, -1] == LEVELS, LEVELS, nearest)
        if self.missing >= 0:
            nearest = torch.where(records[:, self.missing] > 0, self.cells, nearest)
        return self.merge(nearest)

    def merge(self, cells: Tensor) -> Tensor:
        """Map the column's own cells to merged cells, both int64."""
        if not self.merged:
            return cells
        # The cell of missing values comes last and is never merged.
        firsts = torch.tensor([*self.merged, self.cells], device=cells.device)
        return torch.bucketize(cells, firsts, right=True) - 1

    def in_parts(self, shares: NDArray[np.float64], parts: int) -> MarginalColumn:
        """The numeric column with neighbouring cells merged into about equally frequent parts.

        Args:
            shares: the shares of the column's own cells, without that of missing values, (cells,),
                0 or more.
            parts: the largest number of parts.
        """
        so_far = np.concatenate([[0.0], shares.cumsum()])
        equal = np.arange(parts) * so_far[-1] / parts
        nearest = np.abs(so_far[:-1] - equal[:, None]).argmin(axis=1)
        return replace(self, merged=tuple(np.unique([0, *nearest]).tolist()))

    def by_level(self, bins: int) -> MarginalColumn:
        """The column with one cell per level of a number; the first and last are the bounds.

        Args:
            bins: the number of its soft bins.
        """
        return replace(self, cells=LEVELS + 1, count=1 + bins)

    @property
    def unmerged(self) -> MarginalColumn:
        """The column with its own, unmerged cells."""
        return replace(self, merged=())


@dataclass(frozen=True)
class MarginalGroup:
    """Two or three columns whose cells are counted jointly.

    Attributes:
        sides: the columns. Numbers have their own cells, some perhaps merged; or they belong to the
            nearest of their soft bins, and `cells` is 0.
        folded: for two numbers with at most two cells each: whether one cell counts all records
            with both numbers in the first or both in the second cell, one counts the other records,
            and the last one, if a number may be missing, counts those that lack one.
    """

    sides: tuple[MarginalColumn, ...]
    folded: bool = False

    @property
    def is_pair(self) -> bool:
        """Whether it has two columns."""
        return len(self.sides) == 2

    @property
    def of_numbers(self) -> bool:
        """Whether it has two columns of numbers, with their own cells."""
        return self.is_pair and all(side.cells for side in self.sides)

    @property
    def unfolded(self) -> MarginalGroup:
        """The group with a cell for each pair of the two columns' cells."""
        return replace(self, folded=False)

    @property
    def dimension(self) -> int:
        """The number of cells: one for each combination of the columns' cells."""
        if self.folded:
            return 2 + any(side.missing >= 0 for side in self.sides)
        return math.prod(side.dimension for side in self.sides)

    def cell_among(self, cell_of: Mapping[MarginalColumn, Tensor]) -> Tensor:
        """The cell of each record, int64 (b,), in row-major order of the columns' cells.

        Args:
            cell_of: the cell of each column, int64 (b,).
        """
        found = cell_of[self.sides[0]]
        if self.folded:
            first, second = self.sides
            lacks = (found >= first.known) | (cell_of[second] >= second.known)
            apart = (found != cell_of[second]).to(found)
            return torch.where(lacks, 2, apart)
        for side in self.sides[1:]:
            found = found * side.dimension + cell_of[side]
        return found
