"""An energy that matches released tables of several columns, for rows that swap values.

A release with marginals of pairs or triples of columns (`dpntk.common.features.marginals`) holds
noisy shares of their cells. Beside the energies of other features, the log density of rows gets a
coefficient for each cell (a log-linear model, or Markov random field). Each coefficient has a ridge
penalty: the noise variance over the variance of the table's departure from independence, estimated
from the released shares minus the noise (empirical Bayes). So a table of independent columns has no
effect, and a cell that hardly any row occupies has little. Tables of two numbers have a smaller
ridge, because they can be denoised better: neighbouring cells are alike if the two depend on each
other as Gaussian numbers do (`copulas.copula`).

Columns that determine one another would hardly be matched by single swaps. So rows, and the
coefficients, are initialised along the tree of the most informative pairs (Chow and Liu 1968,
"Approximating Discrete Probability Distributions with Dependence Trees").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from torch import Tensor

from ....common.features.marginals.cells import MarginalGroup
from ....common.schema.encoding import Block
from ..copulas.attenuation import ProductEvidence
from ..copulas.copula import PairCopulas
from ..copulas.table_posterior import (
    Lacking,
    TableObservation,
    copulas_of,
    posterior_tables,
)
from ..dependence.chow_liu import TableShares, chow_liu_tree
from ..dependence.table_departures import (
    CELL,
    ReleasedCounts,
    TableDeparture,
    TablePlaces,
    shares_among,
)
from ..dependence.table_pooling import PooledTables, pooled_tables
from .copula import CopulaEnergy
from .count_moves import ColumnTables, CountCopyGains, CountSwapGains, RowCells
from .learning_rates import LearningRates

_BATCH: Final = 2_000
_EXACT: Final = 1e-9
"""Floor for shares of cells."""
_SMOOTH: Final = 0.1
"""Factor on the ridge for tables of two numbers."""


class CountEnergy:
    """The energy of tables of columns: one coefficient for each cell.

    Args:
        released: tables of the class.
        records: rows with the columns that all rows will have, (n, record size).
        others: departures of the other classes' tables.
        beside_copula: whether rows have the energy of a Gaussian copula of all numbers as well,
            if there are tables of all of their pairs.
        products: what is known of products of numbers, for that energy; None if there are none.
        combine: see `CopulaEnergy`.

    Attributes:
        copula: that energy, or None.
    """

    def __init__(
        self,
        released: ReleasedCounts,
        records: Tensor,
        others: Sequence[TableDeparture] = (),
        *,
        beside_copula: bool = False,
        products: ProductEvidence | None = None,
        combine: bool = False,
    ) -> None:
        shares_of = shares_among(records, released.levels)
        own = TableDeparture.of(released, shares_of)
        pooled = pooled_tables(own, others)
        observations = _observations(released, own, pooled)
        copulas = copulas_of(observations, shares_of)
        self.copula = None
        if beside_copula and copulas is not None and released.coarse:
            numbers = _numbers(observations, copulas)
            self.copula = CopulaEnergy(copulas, numbers, records, products, combine=combine)
        posterior = posterior_tables(
            observations, shares_of, copulas, divide_folded=self.copula is None
        )
        tables, wanted = zip(*posterior, strict=True)
        self._places = places = TablePlaces(tables, released.levels)
        self._strides, self._starts = places.strides.T.float(), places.starts[:, None].to(CELL)
        self._tables_of = {
            start: ColumnTables.of(torch.tensor(pairs).T, places.strides)
            for start, pairs in places.of_columns.items()
        }
        self._wanted = torch.cat(wanted)
        self._expected = places.independent(shares_of).clamp(min=_EXACT)
        self._scale = self._expected.sqrt()
        ridges = [
            _ridge_of(each, table, ridge, of_copula=self.copula is not None)
            for each, table, ridge in zip(
                observations, tables, own.tables_of(pooled.ridge), strict=True
            )
        ]
        self._ridge = torch.cat(ridges)
        self._theta = torch.zeros_like(self._wanted)
        self._rates = LearningRates(self._ridge)

    def initialise(
        self, records: Tensor, blocks: Sequence[Block], random: np.random.Generator
    ) -> None:
        """Arrange rows by the pairs along a tree, and set the coefficients to match.

        Every column keeps its values. Pairs of numbers that have the energy of a copula keep
        coefficients of 0: that energy begins with all of their dependence.

        Args:
            records: (n, record size), changed in place.
            blocks: the columns.
            random: draws cells and breaks ties.
        """
        place_of = {start: block.place for block in blocks for start in block.starts}
        codes, sides = self.codes(records).T.numpy(), self._places.sides
        for parent, table in chow_liu_tree(self._shrunk_tables()):
            cells = slice(table.start, table.start + table.group.dimension)
            if self.copula is None or not table.group.of_numbers:
                ratio = (table.shares.flatten() / self._expected[cells]).clamp(min=_EXACT)
                self._theta[cells] = self._scale[cells] * ratio.log()
            first = table.group.sides[0].start == parent
            of_parent, of_child = table.group.sides if first else table.group.sides[::-1]
            one, other = (sides.index(side) for side in (of_parent, of_child))
            shares = table.shares if first else table.shares.T
            below = shares.cumsum(dim=1).numpy()
            drawn = random.random(len(codes)) * below[codes[:, one], -1]
            wanted = (below[codes[:, one]] < drawn[:, None]).sum(axis=1)
            # A row gets a value from its wanted cell, or from a nearby one if none is left.
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
        """The targets of each table, shrunk towards independence by the ridge."""
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
        """Coefficient of each cell of each table in the log density, float32 (cells,)."""
        return ((self._theta + self._rates.lead) / self._scale).float()

    def codes(self, records: Tensor) -> Tensor:
        """See `TablePlaces.codes`."""
        return self._places.codes(records)

    def cells(self, codes: Tensor) -> Tensor:
        """The index of each row's cell in each table, among the cells of all, int32 (tables, n)."""
        # Integers of at most 24 bits, which float32 holds exactly.
        return (self._strides @ codes.float()).to(CELL) + self._starts

    def shares(self, records: Tensor) -> Tensor:
        """The share of each cell among rows."""
        found = torch.zeros(len(self._wanted), dtype=torch.int64)
        for batch in records.split(_BATCH):
            cells = self.cells(self.codes(batch)).flatten()
            found += torch.bincount(cells, minlength=len(found))
        return found.double() / len(records)

    def learn(self, records: Tensor) -> None:
        """Update the energy by what the tables of the current rows still lack."""
        residual = (self._wanted - self.shares(records)) / self._scale
        self._theta = self._rates.step(self._theta, residual)

    def copy_gains(self, records: Tensor, others: Tensor) -> CountCopyGains:
        """The gains of rows that take values of others."""
        return CountCopyGains(self._row_cells(records), self.codes(others))

    def swap_gains(self, records: Tensor) -> CountSwapGains:
        """The gains of swaps between the first half of the rows and the second."""
        return CountSwapGains(self._row_cells(records))

    def _row_cells(self, records: Tensor) -> RowCells:
        codes = self.codes(records)
        return RowCells(codes, self.cells(codes), self.coefficients, self._tables_of)


def _ridge_of(
    observation: TableObservation, table: MarginalGroup, ridge: Tensor, *, of_copula: bool
) -> Tensor:
    """The ridge of the cells of a table.

    Args:
        observation: of it.
        table: the same columns, in as many cells as rows are fitted to.
        ridge: noise over prior variance of the cells of the observation, (its cells,).
        of_copula: whether rows have the energy of a copula besides.
    """
    if observation.coarse and not of_copula:
        # None: the targets are already shrunk to a copula.
        return torch.zeros(table.dimension, dtype=ridge.dtype)
    if table.dimension != len(ridge):
        ridge = ridge.mean().expand(table.dimension)
    return _SMOOTH * ridge if table.of_numbers else ridge


def _numbers(observations: Sequence[TableObservation], copulas: PairCopulas) -> dict[int, int]:
    """The place of each number with a copula, and of its mark of missing values, in order."""
    known = {place for pair in copulas.angles for place in pair}
    sides = {side for each in observations if each.coarse for side in each.table.sides}
    return dict(sorted((side.start, side.missing) for side in sides if side.start in known))


def _observations(
    released: ReleasedCounts, own: TableDeparture, pooled: PooledTables
) -> list[TableObservation]:
    """The observation of each table of a class, pooled over all classes."""
    shares = zip(released.tables, *pooled.shares(own), strict=True)
    ends = np.cumsum([table.dimension for table in released.tables])
    return [
        TableObservation(
            table.unfolded,
            number < released.coarse,
            table.folded,
            cells,
            noise,
            lacking=(
                Lacking(float(released.shares[end - 1]), float(released.noise[number]))
                if table.folded
                else None
            ),
        )
        for number, ((table, cells, noise), end) in enumerate(zip(shares, ends, strict=True))
    ]
