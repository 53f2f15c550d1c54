"""In which cell of a column, or of two or three columns together, a record lies.

What marginals (`dpntk.common.features.marginals`) are made of: where a cell is read off in an
encoded record, in whole numbers, so that it is the same on every machine.
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
MOST_CELLS: Final = 128
"""Columns of no more integers than this have a cell for each."""

Whole = TypeVar("Whole", Tensor, NDArray[np.int64])


def nearest_cell(level: Whole, cells: int) -> Whole:
    """The nearest of `cells` equally spaced cells to numbers at some levels; int64 both."""
    return (2 * level * (cells - 1) + LEVELS) // (2 * LEVELS)


@dataclass(frozen=True)
class MarginalColumn:
    """Where a column's cells are read off in an encoded record.

    Attributes:
        start: of the values: one if the column is numeric, otherwise one for each category.
        count: how many these are. By its levels a number is read off its soft bins, too, which
            stand behind it: whether it is a bound shows there.
        cells: of a numeric column: at how many equally spaced points of its scale a cell lies; a
            value belongs to the nearest one. 0 for categories, which are cells.
        missing: place of the value that says that a number is missing; -1 if there is none.
        merged: of a numeric column in a group, if neighbouring cells are one there: the first cell
            of each. Not that of missing values, which stays by itself.
    """

    start: int
    count: int
    cells: int
    missing: int
    merged: tuple[int, ...] = ()

    @property
    def dimension(self) -> int:
        """Number of cells, that of missing values (the last one) included."""
        return (len(self.merged) or self.cells or self.count) + (self.missing >= 0)

    @property
    def known(self) -> int:
        """Number of cells but that of missing values."""
        return self.dimension - (self.missing >= 0)

    def cell(self, records: Tensor) -> Tensor:
        """The cell of each record.

        Args:
            records: int64 (b, record size), values 0..255.

        Returns:
            int64 (b,), from 0 to `dimension` - 1, for whatever records.
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
        """What cells that it has by itself are merged to, int64 both."""
        if not self.merged:
            return cells
        # That of missing values comes after all others, and begins a cell of its own.
        firsts = torch.tensor([*self.merged, self.cells], device=cells.device)
        return torch.bucketize(cells, firsts, right=True) - 1

    def in_parts(self, shares: NDArray[np.float64], parts: int) -> MarginalColumn:
        """A number with neighbouring cells merged into parts that are about equally frequent.

        Args:
            shares: of the cells that it has by itself, but for that of missing values, (cells,), 0
                or more.
            parts: how many there are to be, at most.
        """
        so_far = np.concatenate([[0.0], shares.cumsum()])
        equal = np.arange(parts) * so_far[-1] / parts
        nearest = np.abs(so_far[:-1] - equal[:, None]).argmin(axis=1)
        return replace(self, merged=tuple(np.unique([0, *nearest]).tolist()))

    def by_level(self, bins: int) -> MarginalColumn:
        """With a cell for each level of a number, of which the first and the last are the bounds.

        Args:
            bins: how many soft bins it has.
        """
        return replace(self, cells=LEVELS + 1, count=1 + bins)

    @property
    def unmerged(self) -> MarginalColumn:
        """With the cells that it has by itself."""
        return replace(self, merged=())


@dataclass(frozen=True)
class MarginalGroup:
    """Two or three columns whose cells are looked at together.

    Attributes:
        sides: the columns. Numbers have the cells that they have by themselves, some of them
            merged perhaps; or they lie in the nearest of their soft bins, and `cells` are 0.
        folded: of two numbers with two cells each at most: whether one cell is of all records that
            have both in the first or both in the second, one of those that have not, and the last
            one, if either may be missing, of those that lack one.
    """

    sides: tuple[MarginalColumn, ...]
    folded: bool = False

    @property
    def is_pair(self) -> bool:
        """Whether they are two."""
        return len(self.sides) == 2

    @property
    def of_numbers(self) -> bool:
        """Whether they are two columns of numbers, in cells of their own."""
        return self.is_pair and all(side.cells for side in self.sides)

    @property
    def unfolded(self) -> MarginalGroup:
        """With a cell for each cell of the first column and of the second."""
        return replace(self, folded=False)

    @property
    def dimension(self) -> int:
        """Number of cells: one for each cell of the first column and of the second, and so on."""
        if self.folded:
            return 2 + any(side.missing >= 0 for side in self.sides)
        return math.prod(side.dimension for side in self.sides)

    def cell_among(self, cell_of: Mapping[MarginalColumn, Tensor]) -> Tensor:
        """The cell of each record, int64 (b,): row by row, the first column's cell is the row.

        Args:
            cell_of: that of each column, int64 (b,).
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
