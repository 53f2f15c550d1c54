"""Marginals of several columns of a class, as released, for rows that exchange values.

A release with marginals of pairs or triples of columns (`dpntk.common.features.marginals`) says how
often each of their cells is, with noise. Among laws with the columns that rows have, those are
looked for whose logarithm has a coefficient for each cell, beside what other features ask for (a
log-linear model, or Markov random field). A coefficient is held back by a ridge: the variance of
the noise over that of how cells of its table differ from independent columns, which is what the
released shares leave when noise is taken off (empirical Bayes). Of a table in which nothing goes
together, so, nothing is believed, and of cells that hardly any row has, little. Tables of two
numbers are denoised by more: neighbouring cells are alike, as far as the two go together as
Gaussian ones would (`copula`), and so they are held back less.

Columns that determine one another hardly get together by chance, exchange by exchange: rows begin
as the pairs along a tree say (Chow and Liu 1968, "Approximating Discrete Probability Distributions
with Dependence Trees"), the pairs that say most, and so do the coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....common.features.cells import MarginalGroup
from ....common.features.joint import Parts
from ....common.schema.encoding import Block
from ..copula import copula_shares
from ..denoising import table_shares
from .chow_liu import TableShares, chow_liu_tree
from .count_moves import NUMBER, ColumnTables, CountPull, CountTake, RowCells

_RATE: Final = 0.2
_BATCH: Final = 2_000
_EXACT: Final = 1e-9
"""Shares of cells, and variances of what goes together, are at least that."""
_TINY: Final = 1e-300
_FITTING_STEPS: Final = 20
_SMOOTH: Final = 0.1
"""So many times as much as others tables of two numbers are held back."""


@dataclass(frozen=True, eq=False)
class ReleasedCounts:
    """The released marginals of pairs and triples of columns of one class.

    Attributes:
        tables: the columns of each.
        levels: records hold integers 0..levels.
        shares: noisy, float64 (cells of all of them,).
        noise: standard deviation of the noise on those of each table, float64 (tables,).
    """

    tables: tuple[MarginalGroup, ...]
    levels: int
    shares: NDArray[np.float64]
    noise: NDArray[np.float64]

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
        return cls(tables, features.levels, noisy / np.repeat(sizes, cells), noise / sizes)


class Counts:
    """The part of an energy that gives tables of columns their shares: a number for each cell.

    Args:
        released: of the class.
        records: rows with the columns that all rows will have, (n, record size).
    """

    def __init__(self, released: ReleasedCounts, records: Tensor) -> None:
        tables, self._levels = released.tables, released.levels
        self._sides = list(dict.fromkeys(side for table in tables for side in table.sides))
        self._merging = [
            side.merge(torch.arange(side.unmerged.dimension)).to(NUMBER) for side in self._sides
        ]
        sizes = torch.tensor([table.dimension for table in tables])
        starts = sizes.cumsum(0) - sizes
        # By how much the cell of a table moves if that of a side does; 0 if it is not of it.
        stride = torch.zeros(len(self._sides), len(tables), dtype=torch.int64)
        alone = [
            torch.bincount(code, minlength=side.dimension).double() / len(records)
            for code, side in zip(self.codes(records), self._sides, strict=True)
        ]
        expected = []
        for number, table in enumerate(tables):
            of_table, step = torch.ones(1, dtype=torch.float64), 1
            for side in reversed(table.sides):
                place = self._sides.index(side)
                stride[place, number] = step
                of_table = torch.outer(alone[place], of_table).flatten()
                step *= side.dimension
            expected.append(of_table)
        noisy = np.split(released.shares, sizes.cumsum(0)[:-1])
        wanted = [
            _posterior_shares(
                table, shares, noise, [alone[self._sides.index(side)] for side in table.sides]
            )
            for table, shares, noise in zip(tables, noisy, released.noise, strict=True)
        ]
        self._wanted = torch.cat(wanted)
        self._expected = torch.cat(expected).clamp(min=_EXACT)
        self._scale = self._expected.sqrt()
        # In these units shares of independent rows have a variance that is alike in all cells.
        lacking = (torch.from_numpy(released.shares) - torch.cat(expected)) / self._scale
        deviation = torch.from_numpy(released.noise).repeat_interleave(sizes)
        noise = (deviation / self._scale).square()
        weights = self._scale**4
        left, doubt, total = (
            torch.stack([one.sum() for one in each.split(sizes.tolist())])
            for each in (weights * (lacking.square() - noise), 2 * (weights * noise) ** 2, weights)
        )
        variance = ((left - doubt.sqrt()) / total).clamp(_EXACT, 1.0)
        held = torch.tensor([_SMOOTH if table.of_numbers else 1.0 for table in tables])
        self._ridge = noise * (held / variance).repeat_interleave(sizes)
        self._theta = torch.zeros_like(self._wanted)
        believed = self._expected + (self._wanted - self._expected) / (1 + self._ridge)
        self._tables = [
            TableShares(table, shares.view([side.dimension for side in table.sides]), start)
            for table, shares, start in zip(
                tables, believed.split(sizes.tolist()), starts.tolist(), strict=True
            )
        ]
        self._strides, self._starts = stride.T.float(), starts[:, None].to(NUMBER)
        of_column: dict[int, list[tuple[int, int]]] = {}
        for number, table in enumerate(tables):
            for side in table.sides:
                of_column.setdefault(side.start, []).append((self._sides.index(side), number))
        self._tables_of = {
            start: ColumnTables.of(torch.tensor(pairs).T, stride)
            for start, pairs in of_column.items()
        }

    def begin(self, records: Tensor, blocks: Sequence[Block], random: np.random.Generator) -> None:
        """Put rows together as pairs along a tree say, and let the energy ask for that.

        Every column keeps its values.

        Args:
            records: (n, record size), changed in place.
            blocks: the columns.
            random: breaks ties.
        """
        place_of = {start: block.place for block in blocks for start in block.starts}
        codes = self.codes(records).T.numpy()
        for parent, table in chow_liu_tree(self._tables):
            cells = slice(table.start, table.start + table.group.dimension)
            ratio = (table.shares.flatten() / self._expected[cells]).clamp(min=_EXACT)
            self._theta[cells] = self._scale[cells] * ratio.log()
            first = table.group.sides[0].start == parent
            of_parent, of_child = table.group.sides if first else table.group.sides[::-1]
            one, other = (self._sides.index(side) for side in (of_parent, of_child))
            shares = table.shares if first else table.shares.T
            below = shares.cumsum(dim=1).numpy()
            drawn = random.random(len(codes)) * below[codes[:, one], -1]
            wanted = (below[codes[:, one]] < drawn[:, None]).sum(axis=1)
            # Who wants a cell gets a value from it, or from one near by if there are none left.
            rows, values = (
                torch.from_numpy(np.lexsort((random.random(len(codes)), cells)))
                for cells in (wanted, codes[:, other])
            )
            place = place_of[of_child.start]
            records[rows, place] = records[values, place]
            moved = [at for at, side in enumerate(self._sides) if side.start == of_child.start]
            codes[rows[:, None], moved] = codes[values[:, None], moved]

    @property
    def coefficients(self) -> Tensor:
        """Of each cell of each table, in the logarithm of the law, float32 (cells,)."""
        return (self._theta / self._scale).float()

    def codes(self, records: Tensor) -> Tensor:
        """The cell of each side in rows (n, record size) of values 0..1, as they would be read.

        Returns:
            int32 (sides, n).
        """
        levels = (records.clamp(0, 1) * self._levels).round().to(torch.int64)
        own = {column: column.cell(levels) for column in {side.unmerged for side in self._sides}}
        sides = zip(self._sides, self._merging, strict=True)
        return torch.stack([merged[own[side.unmerged]] for side, merged in sides])

    def cells(self, codes: Tensor) -> Tensor:
        """The cell of each table among those of all, int32 (tables, n)."""
        # Whole numbers of at most 24 digits, which floats hold.
        return (self._strides @ codes.float()).to(NUMBER) + self._starts

    def shares(self, records: Tensor) -> Tensor:
        """How often each cell is among rows."""
        found = torch.zeros(len(self._wanted), dtype=torch.int64)
        for batch in records.split(_BATCH):
            cells = self.cells(self.codes(batch)).flatten()
            found += torch.bincount(cells, minlength=len(found))
        return found.double() / len(records)

    def learn(self, records: Tensor) -> None:
        """Change the energy by what the tables of rows, as they stand, still lack."""
        missing = (self._wanted - self.shares(records)) / self._scale
        # The ridge counts at the new coefficients: else a large one would make the steps diverge.
        self._theta = (self._theta + _RATE * missing) / (1 + _RATE * self._ridge)

    def take(self, records: Tensor, others: Tensor) -> CountTake:
        """What changes if rows take values of others."""
        return CountTake(self._row_cells(records), self.codes(others))

    def pull(self, records: Tensor) -> CountPull:
        """What exchanges between the first half of some rows and the other one change."""
        return CountPull(self._row_cells(records))

    def _row_cells(self, records: Tensor) -> RowCells:
        codes = self.codes(records)
        return RowCells(codes, self.cells(codes), self.coefficients, self._tables_of)


def _posterior_shares(
    table: MarginalGroup, noisy: NDArray[np.float64], noise: float, alone: Sequence[Tensor]
) -> Tensor:
    """Shares of a table's cells as they are likely to be, and of columns as rows have them.

    Args:
        table: its columns.
        noisy: of all cells, (cells,).
        noise: standard deviation on each.
        alone: shares of the cells of each column, (cells of that,).

    Returns:
        float64 (cells,).
    """
    by_copula = None
    if table.of_numbers:
        rows, columns = (each.numpy() for each in alone)
        by_law = np.outer(rows, columns).clip(_EXACT)
        # That a number is missing has no place among them.
        known = tuple(slice(side.dimension - (side.missing >= 0)) for side in table.sides)
        of_both = noisy.reshape(by_law.shape)[known]
        if rows[known[0]].any() and columns[known[1]].any():
            by_law[known] = copula_shares(of_both, rows[known[0]], columns[known[1]])
        by_copula = by_law.flatten()
    shares = torch.from_numpy(table_shares(noisy, noise, by_copula))
    shares = shares.view([len(each) for each in alone])
    for _ in range(_FITTING_STEPS):  # iterative proportional fitting (Deming and Stephan 1940)
        for axis, each in enumerate(alone):
            others = [other for other in range(shares.dim()) if other != axis]
            ratio = each / shares.sum(dim=others).clamp(min=_TINY)
            shares = shares * ratio.view([-1 if at == axis else 1 for at in range(shares.dim())])
    return shares.flatten()
