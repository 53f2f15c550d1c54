"""Marginals of several columns of a class, as released, for rows that exchange values.

A release with marginals of pairs or triples of columns (`dpntk.common.features.marginals`) says how
frequent each of their cells is, with noise. Beside what other features ask for, the logarithm of
the rows' law gets a coefficient for each cell (a log-linear model, or Markov random field). The
coefficient is held back by a ridge: the variance of the noise, over that of how cells of its table
differ from independent columns, which is estimated from the released shares less the noise
(empirical Bayes). So a table in which nothing goes together has no effect on the law, and a cell
that hardly any row has little. Tables of two numbers can be denoised better, because neighbouring
cells are alike as far as the two go together as Gaussian numbers would (`copula`). They are held
back less.

Columns that determine one another would hardly get together by chance, exchange by exchange. So
rows begin as the pairs along a tree say, those that say most (Chow and Liu 1968, "Approximating
Discrete Probability Distributions with Dependence Trees"), and so do the coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from torch import Tensor

from ....common.schema.encoding import Block
from .chow_liu import TableShares, chow_liu_tree
from .count_moves import NUMBER, ColumnTables, CountPull, CountTake, RowCells
from .table_departures import ReleasedCounts, TableDeparture, TablePlaces, shares_among
from .table_pooling import PooledTables, pooled_tables
from .table_posterior import Look, posterior_tables

_RATE: Final = 0.2
_BATCH: Final = 2_000
_EXACT: Final = 1e-9
"""Shares of cells, and variances of what goes together, are at least that."""
_SMOOTH: Final = 0.1
"""How much of the ridge of other tables counts for tables of two numbers."""


class Counts:
    """The part of an energy that gives tables of columns their shares: a number for each cell.

    Args:
        released: of the class.
        records: rows with the columns that all rows will have, (n, record size).
        others: how tables of other classes depart from independent columns.
    """

    def __init__(
        self, released: ReleasedCounts, records: Tensor, others: Sequence[TableDeparture] = ()
    ) -> None:
        shares_of = shares_among(records, released.levels)
        own = TableDeparture.of(released, shares_of)
        seen = pooled_tables(own, others)
        looks = _looks(released, own, seen)
        tables, wanted = zip(*posterior_tables(looks, shares_of), strict=True)
        self._places = places = TablePlaces(tables, released.levels)
        self._strides, self._starts = places.strides.T.float(), places.starts[:, None].to(NUMBER)
        self._tables_of = {
            start: ColumnTables.of(torch.tensor(pairs).T, places.strides)
            for start, pairs in places.of_columns.items()
        }
        self._wanted = torch.cat(wanted)
        self._expected = places.independent(shares_of).clamp(min=_EXACT)
        self._scale = self._expected.sqrt()
        # Of all pairs of numbers in few cells what is wanted has been held back: a law says it.
        held = [_SMOOTH if table.of_numbers else 1.0 for table in tables]
        held[: released.coarse] = [0.0] * released.coarse
        ridges = zip(held, wanted, own.tables_of(seen.ridge), strict=True)
        self._ridge = torch.cat(
            [much * ridge if much else torch.zeros_like(cells) for much, cells, ridge in ridges]
        )
        self._theta = torch.zeros_like(self._wanted)

    def begin(self, records: Tensor, blocks: Sequence[Block], random: np.random.Generator) -> None:
        """Put rows together as pairs along a tree say, and let the energy ask for that.

        Every column keeps its values.

        Args:
            records: (n, record size), changed in place.
            blocks: the columns.
            random: breaks ties.
        """
        place_of = {start: block.place for block in blocks for start in block.starts}
        codes, sides = self.codes(records).T.numpy(), self._places.sides
        for parent, table in chow_liu_tree(self._shrunk_tables()):
            cells = slice(table.start, table.start + table.group.dimension)
            ratio = (table.shares.flatten() / self._expected[cells]).clamp(min=_EXACT)
            self._theta[cells] = self._scale[cells] * ratio.log()
            first = table.group.sides[0].start == parent
            of_parent, of_child = table.group.sides if first else table.group.sides[::-1]
            one, other = (sides.index(side) for side in (of_parent, of_child))
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
            moved = [
                at for at, side in enumerate(self._places.sides) if side.start == of_child.start
            ]
            codes[rows[:, None], moved] = codes[values[:, None], moved]

    def _shrunk_tables(self) -> list[TableShares]:
        """What is wanted of each table, moved towards independent columns as the ridge says."""
        shrunk = self._expected + (self._wanted - self._expected) / (1 + self._ridge)
        places = self._places
        cells = shrunk.split(places.sizes.tolist())
        return [
            TableShares(table, shares.view([side.dimension for side in table.sides]), start)
            for table, shares, start in zip(
                places.tables, cells, places.starts.tolist(), strict=True
            )
        ]

    @property
    def coefficients(self) -> Tensor:
        """Coefficient of each cell of each table in the logarithm of the law, float32 (cells,)."""
        return (self._theta / self._scale).float()

    def codes(self, records: Tensor) -> Tensor:
        """The cell of each side in rows (n, record size) of values 0..1, as they would be read.

        Returns:
            int32 (sides, n).
        """
        return self._places.codes(records)

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


def _looks(released: ReleasedCounts, own: TableDeparture, seen: PooledTables) -> list[Look]:
    """What is seen of each table of a class, by what all classes say of it."""
    shares = zip(released.tables, *seen.shares(own), strict=True)
    return [
        Look(table.unfolded, number < released.coarse, table.folded, cells, noise)
        for number, (table, cells, noise) in enumerate(shares)
    ]
