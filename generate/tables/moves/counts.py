"""Marginals of several columns of a class, as released, for rows that exchange values.

A release with marginals of pairs or triples of columns (`dpntk.common.features.marginals`) says how
often each of their cells is, with noise. Among laws with the columns that rows have, those are
looked for whose logarithm has a coefficient for each cell, beside what other features ask for (a
log-linear model, or Markov random field). A coefficient is held back by a ridge: the variance of
the noise over that of how cells of its table differ from independent columns, which is what the
released shares leave when noise is taken off (empirical Bayes). Of a table in which nothing goes
together, so, nothing is believed, and of cells that hardly any row has, little.

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
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from torch import Tensor

from ....common.features.joint import Parts
from ....common.features.marginals import MarginalColumn, MarginalFeatures, MarginalGroup
from ....common.schema.encoding import Block
from ..denoising import table_shares

_RATE: Final = 0.2
_BATCH: Final = 2_000
_EXACT: Final = 1e-9
"""Shares of cells, and variances of what goes together, are at least that."""
_TINY: Final = 1e-300
_FITTING_STEPS: Final = 20
_PAIR: Final = 2


@dataclass(frozen=True, eq=False)
class ReleasedCounts:
    """The released marginals of pairs and triples of columns of one class.

    Attributes:
        features: of which they are the mean.
        shares: noisy, float64 (cells of all of them,).
        noise: standard deviation of the noise on each.
    """

    features: MarginalFeatures
    shares: NDArray[np.float64]
    noise: float

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
        size = parts.weight * features.group_entry
        noisy = mean[parts.group_place].astype(np.float64)
        return cls(features, noisy / size, noise / size)


class Counts:
    """The part of an energy that gives tables of columns their shares: a number for each cell.

    Args:
        released: of the class.
        records: rows with the columns that all rows will have, (n, record size).
    """

    def __init__(self, released: ReleasedCounts, records: Tensor) -> None:
        tables = released.features.groups
        self._levels = released.features.levels
        self._sides = list(dict.fromkeys(side for table in tables for side in table.sides))
        sizes = torch.tensor([table.dimension for table in tables])
        self._start = sizes.cumsum(0) - sizes
        self._stride = torch.zeros(len(self._sides), len(tables), dtype=torch.int64)
        """By how much the cell of a table moves if that of a side does; 0 if it is not of it."""
        alone = [
            torch.bincount(code, minlength=side.dimension).double() / len(records)
            for code, side in zip(self.codes(records).T, self._sides, strict=True)
        ]
        expected = []
        for number, table in enumerate(tables):
            of_table, stride = torch.ones(1, dtype=torch.float64), 1
            for side in reversed(table.sides):
                place = self._sides.index(side)
                self._stride[place, number] = stride
                of_table = torch.outer(alone[place], of_table).flatten()
                stride *= side.dimension
            expected.append(of_table)
        noisy = np.split(released.shares, sizes.cumsum(0)[:-1])
        likely = [
            _likely(
                shares, released.noise, [alone[self._sides.index(side)] for side in table.sides]
            )
            for table, shares in zip(tables, noisy, strict=True)
        ]
        self._wanted = torch.cat(likely)
        self._expected = torch.cat(expected).clamp(min=_EXACT)
        self._scale = self._expected.sqrt()
        # In these units shares of independent rows have a variance that is alike in all cells.
        lacking = (torch.from_numpy(released.shares) - torch.cat(expected)) / self._scale
        noise = (released.noise / self._scale).square()
        weights = self._scale**4
        left, doubt, total = (
            torch.stack([one.sum() for one in each.split(sizes.tolist())])
            for each in (weights * (lacking.square() - noise), 2 * (weights * noise) ** 2, weights)
        )
        variance = ((left - doubt.sqrt()) / total).clamp(_EXACT, 1.0)
        self._ridge = noise / variance.repeat_interleave(sizes)
        self._theta = torch.zeros_like(self._wanted)
        believed = self._expected + (self._wanted - self._expected) / (1 + self._ridge)
        self._tables = [
            _Table(table, shares.view([side.dimension for side in table.sides]), start)
            for table, shares, start in zip(
                tables, believed.split(sizes.tolist()), self._start.tolist(), strict=True
            )
        ]
        self._tables_of = {
            side.start: (place, self._stride[place].nonzero()[:, 0])
            for place, side in enumerate(self._sides)
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
        codes = self.codes(records).numpy()
        for parent, child, table in self._tree():
            cells = slice(table.start, table.start + table.group.dimension)
            ratio = (table.shares.flatten() / self._expected[cells]).clamp(min=_EXACT)
            self._theta[cells] = self._scale[cells] * ratio.log()
            one, other = (self._sides.index(side) for side in (parent, child))
            shares = table.shares if table.group.sides[0] == parent else table.shares.T
            likely = shares.cumsum(dim=1).numpy()
            drawn = random.random(len(codes)) * likely[codes[:, one], -1]
            wanted = (likely[codes[:, one]] < drawn[:, None]).sum(axis=1)
            # Who wants a cell gets a value from it, or from one near by if there are none left.
            rows, values = (
                torch.from_numpy(np.lexsort((random.random(len(codes)), cells)))
                for cells in (wanted, codes[:, other])
            )
            place = place_of[child.start]
            records[rows, place] = records[values, place]
            codes[rows, other] = codes[values, other]

    def _tree(self) -> list[tuple[MarginalColumn, MarginalColumn, _Table]]:
        """Pairs without a circle, parents first, whose mutual information is largest in all."""
        pairs = [table for table in self._tables if len(table.group.sides) == _PAIR]
        weights = np.zeros((len(self._sides), len(self._sides)))
        between = {}
        for table in pairs:
            one, other = sorted(self._sides.index(side) for side in table.group.sides)
            weights[one, other] = -max(table.information, _EXACT)
            between[one, other] = table
        tree = minimum_spanning_tree(weights)
        found, seen = [], set()
        for root in range(len(self._sides)):
            if root in seen:
                continue
            order, before = breadth_first_order(tree, root, directed=False)
            seen.update(order.tolist())
            for child in order[1:]:
                parent = int(before[child])
                table = between[min(parent, child), max(parent, child)]
                found.append((self._sides[parent], self._sides[child], table))
        return found

    @property
    def coefficients(self) -> Tensor:
        """Of each cell of each table, in the logarithm of the law, float32 (cells,)."""
        return (self._theta / self._scale).float()

    def codes(self, records: Tensor) -> Tensor:
        """The cell of each side in rows (n, record size) of values 0..1, as they would be read."""
        levels = (records.clamp(0, 1) * self._levels).round().to(torch.int64)
        return torch.stack([side.cell(levels) for side in self._sides], dim=1)

    def cells(self, codes: Tensor) -> Tensor:
        """The cell of each table among those of all, int64 (n, tables)."""
        # Whole numbers of at most 24 digits, which floats hold.
        return (codes.double() @ self._stride.double()).to(torch.int64) + self._start

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

    def pull(self, records: Tensor) -> CountPull:
        """What exchanges between the first half of some rows and the other one change."""
        codes = self.codes(records)
        cells = self.cells(codes)
        return CountPull(codes, cells, self.coefficients, self._stride, self._tables_of)


@dataclass(frozen=True, eq=False)
class _Table:
    """Columns together.

    Attributes:
        group: which.
        shares: what is believed of them, float64 (cells of the first column, of the second, and so
            on), positive.
        start: of its cells among those of all tables.
    """

    group: MarginalGroup
    shares: Tensor
    start: int

    @property
    def information(self) -> float:
        """Mutual information of two columns, in nats."""
        alone = torch.outer(self.shares.sum(dim=1), self.shares.sum(dim=0))
        return float(torch.special.xlogy(self.shares, self.shares / alone.clamp(min=_TINY)).sum())


def _likely(noisy: NDArray[np.float64], noise: float, alone: Sequence[Tensor]) -> Tensor:
    """Shares of a table's cells as they are likely to be, and of columns as rows have them.

    Args:
        noisy: of all cells, (cells,).
        noise: standard deviation on each.
        alone: shares of the cells of each column, (cells of that,).

    Returns:
        float64 (cells,).
    """
    shares = torch.from_numpy(table_shares(noisy, noise)).view([len(each) for each in alone])
    for _ in range(_FITTING_STEPS):  # iterative proportional fitting (Deming and Stephan 1940)
        for axis, each in enumerate(alone):
            others = [other for other in range(shares.dim()) if other != axis]
            ratio = each / shares.sum(dim=others).clamp(min=_TINY)
            shares = shares * ratio.view([-1 if at == axis else 1 for at in range(shares.dim())])
    return shares.flatten()


class CountPull:
    """By how much the energy grows if two rows exchange their values of a column.

    Args:
        codes: cells of sides, int64 (2 n, sides), changed in place; row i may exchange values with
            row n + i.
        cells: of tables, int64 (2 n, tables), changed in place.
        energy: of each cell.
        stride: by how much the cell of a table moves with that of a side, int64 (sides, tables).
        tables_of: by where the values of a side begin in a record, which one it is, and of which
            tables.
    """

    def __init__(
        self,
        codes: Tensor,
        cells: Tensor,
        energy: Tensor,
        stride: Tensor,
        tables_of: dict[int, tuple[int, Tensor]],
    ) -> None:
        self._codes, self._cells, self._energy = codes, cells, energy
        self._stride, self._tables_of, self._half = stride, tables_of, len(codes) // 2

    def gain(self, block: Block) -> Tensor | float:
        """Of each pair of rows, if they exchange their values of a column, (n,)."""
        if (found := self._of(block)) is None:
            return 0.0
        side, tables = found
        one, other = self._cells[:, tables].split(self._half)
        moved = self._moved(side, tables)
        now = self._energy[one] + self._energy[other]
        gain: Tensor = (self._energy[one + moved] + self._energy[other - moved] - now).sum(dim=1)
        return gain

    def exchanged(self, block: Block, chosen: Tensor) -> None:
        """Some pairs, int64 (m,), have exchanged their values of a column."""
        if (found := self._of(block)) is None:
            return
        side, tables = found
        moved = self._moved(side, tables)[chosen]
        self._cells[chosen[:, None], tables] += moved
        self._cells[chosen[:, None] + self._half, tables] -= moved
        both = torch.stack([chosen, chosen + self._half])
        self._codes[both, side] = self._codes[both.flip(0), side]

    def _of(self, block: Block) -> tuple[int, Tensor] | None:
        """Which side a column is, and of which tables; None if it is of none."""
        return next((self._tables_of[at] for at in block.starts if at in self._tables_of), None)

    def _moved(self, side: int, tables: Tensor) -> Tensor:
        """How far cells of tables move in rows of the first half, (n, tables)."""
        one, other = self._codes[:, side].split(self._half)
        moved: Tensor = (other - one)[:, None] * self._stride[side, tables]
        return moved
