"""Marginals of a table as a feature map: in which cell of each column a record lies.

The class-wise mean of these features is a histogram of every column, and of those pairs of columns
that were asked for. Beside the features of a network (`dpntk.common.features.joint`) they share its
noise, and stage three knows how often each value is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import SchemaError
from ..numerics.exact import first_largest
from ..schema import Schema
from ..schema.column import ColumnKind, Missing
from ..schema.encoding import Block, blocks_of
from ..schema.table import LEVELS, TableSchema
from ..text import counted
from .base import FEATURE_MAPS

CELLS: Final = 64
MOST_CELLS: Final = 128
"""Integers that are no more have a cell each."""
_LARGEST: Final = 1 << 24


@dataclass(frozen=True)
class MarginalColumn:
    """Where a column's cells are read off in an encoded record.

    Attributes:
        start: of the values: one if the column is numeric, otherwise one for each category.
        count: how many these are.
        cells: of a numeric column: at how many equally spaced points of its scale a cell lies; a
            value belongs to the nearest one. 0 for categories, which are cells.
        missing: place of the value that says that a number is missing; -1 if there is none.
    """

    start: int
    count: int
    cells: int
    missing: int

    @property
    def dimension(self) -> int:
        """Number of cells, that of missing values (the last one) included."""
        return (self.cells or self.count) + (self.missing >= 0)

    def cell(self, records: Tensor) -> Tensor:
        """The cell of each record.

        Args:
            records: int64 (b, record size), values 0..255.

        Returns:
            int64 (b,), from 0 to `dimension` - 1, for whatever records.
        """
        if not self.cells:
            return first_largest(records[:, self.start : self.start + self.count])
        nearest = (2 * records[:, self.start] * (self.cells - 1) + LEVELS) // (2 * LEVELS)
        if self.missing >= 0:
            nearest = torch.where(records[:, self.missing] > 0, self.cells, nearest)
        return nearest


@dataclass(frozen=True)
class MarginalPair:
    """Two columns whose cells are looked at together: numbers by the nearest of their soft bins.

    Attributes:
        first: one column; its `cells` are 0.
        second: another one, likewise.
    """

    first: MarginalColumn
    second: MarginalColumn

    @property
    def dimension(self) -> int:
        """Number of cells: one for each cell of the first column and of the second."""
        return self.first.dimension * self.second.dimension

    def cell(self, records: Tensor) -> Tensor:
        """The cell of each record, int64 (b,): row by row, the first column's cell is the row."""
        rows, columns = self.first.cell(records), self.second.cell(records)
        return rows * self.second.dimension + columns


@FEATURE_MAPS.add("marginals")
@dataclass(frozen=True)
class MarginalFeatures:
    """For each column, and each pair, 1 / sqrt(columns + pairs) at the record's cell, else 0.

    Attributes:
        columns: where the cells of each are read off.
        record_size: number of values in a record.
        pairs: those that have cells of their own.
        levels: records hold integers 0..levels.

    Guarantee:
        norm_bound: one entry for each column and pair, whatever the record is, so the norm is 1.
        nonnegative: no entry is negative. (docs/privacy/proofs.md, statements 1 and 2.)
    """

    columns: tuple[MarginalColumn, ...]
    record_size: int
    pairs: tuple[MarginalPair, ...] = ()
    levels: int = LEVELS

    def __post_init__(self) -> None:
        wrong = SchemaError("feature map: marginals of columns that a record does not have")
        if not self.columns or self.levels != LEVELS or not 0 < self.record_size <= _LARGEST:
            raise wrong
        sides = [side for pair in self.pairs for side in (pair.first, pair.second)]
        if any(side.cells for side in sides) or len(set(self.pairs)) < len(self.pairs):
            raise wrong
        for column in (*self.columns, *sides):
            if column.start < 0 or column.count < 1 or not 0 <= column.cells <= MOST_CELLS:
                raise wrong
            if column.start + column.count > self.record_size or column.cells == 1:
                raise wrong
            if not -1 <= column.missing < self.record_size:
                raise wrong
            if column.count != 1 and column.cells:
                raise wrong
            if column.missing >= 0 and not column.cells:
                raise wrong
        if self.dimension > _LARGEST:
            raise wrong

    @classmethod
    def of(
        cls,
        schema: TableSchema,
        usual: int = CELLS,
        *,
        numbers: bool = True,
        pairs: Sequence[tuple[str, str]] = (),
    ) -> MarginalFeatures:
        """The marginals of the columns of a table but the label, which has its counts.

        Args:
            schema: of the table.
            usual: cells of a numeric column, unless it is of few integers.
            numbers: whether numeric columns are among them, or categories alone.
            pairs: names of two columns each, in any order; neither is the label.

        Raises:
            SchemaError: there are no such columns, or a pair twice.
        """
        columns = []
        for block in blocks_of(schema):
            if block.column.kind.numeric and not numbers:
                continue
            column, start = block.column, block.place.start
            if column.lower is None or column.upper is None:
                ranked = column.kind is ColumnKind.ORDINAL
                columns.append(MarginalColumn(start + ranked, column.choices, 0, -1))
                continue
            values = column.different
            cells = usual if values is None or values > MOST_CELLS else values
            missing = column.missing is Missing.INDICATOR
            columns.append(MarginalColumn(start, 1, cells, block.place.stop - 1 if missing else -1))
        return cls(tuple(columns), schema.record_size, _pairs_of(schema, pairs))

    @property
    def tables(self) -> tuple[MarginalColumn | MarginalPair, ...]:
        """All that have cells of their own, in the order of the feature."""
        return *self.columns, *self.pairs

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """Where each column's cells lie in a feature, and then each pair's."""
        found, start = [], 0
        for table in self.tables:
            found.append(slice(start, start + table.dimension))
            start += table.dimension
        return tuple(found)

    @property
    def dimension(self) -> int:
        """Number of cells of all columns and pairs."""
        return sum(table.dimension for table in self.tables)

    @property
    def entry(self) -> float:
        """What stands at a record's cells."""
        return 1 / math.sqrt(len(self.tables))

    @property
    def norm_bound(self) -> float:
        """1: see the class docstring."""
        return 1.0

    @property
    def nonnegative(self) -> bool:
        """Always: see the class docstring."""
        return True

    def hits(self, records: Tensor) -> Tensor:
        """Where the feature of each record is not 0.

        Args:
            records: whole numbers 0..levels, of any type, (b, record size).

        Returns:
            int64 (b, columns + pairs).
        """
        whole = records.to(torch.int64)
        return torch.stack(
            [
                place.start + table.cell(whole)
                for table, place in zip(self.tables, self.places, strict=True)
            ],
            dim=1,
        )

    def names_of_pairs(self, schema: TableSchema) -> list[tuple[str, str]]:
        """The names of the columns of each pair.

        Raises:
            SchemaError: the schema has no such columns.
        """
        names = {_shares(block): block.column.name for block in blocks_of(schema)}
        try:
            return [(names[pair.first], names[pair.second]) for pair in self.pairs]
        except KeyError as error:
            raise SchemaError("feature map: pairs of columns that there are not") from error

    def describe(self, schema: Schema) -> str:
        """In words, for whoever reads a release."""
        return f"marginals of {counted(len(self.columns), 'column')}"

    def spec(self) -> dict[str, Any]:
        """All that there is to it, as plain JSON."""
        sides = ((pair.first, pair.second) for pair in self.pairs)
        pairs = [[a.start, a.count, b.start, b.count] for a, b in sides]
        return {
            "features": "marginals",
            "inputs": self.record_size,
            "levels": self.levels,
            "columns": [[c.start, c.count, c.cells, c.missing] for c in self.columns],
            **({"pairs": pairs} if pairs else {}),
        }

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """It has none."""
        return {}

    @classmethod
    def from_spec(
        cls, spec: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]
    ) -> MarginalFeatures:
        """Rebuild a map from `spec()`.

        Raises:
            SchemaError: it does not describe such a map.
        """
        wrong = SchemaError("feature map: not marginals that this dpntk knows")
        rows, pairs = spec.get("columns"), spec.get("pairs", [])
        inputs, levels = spec.get("inputs"), spec.get("levels")
        if weights or not isinstance(rows, list) or type(inputs) is not int or levels != LEVELS:
            raise wrong
        if not isinstance(pairs, list):
            raise wrong
        for row in (*rows, *pairs):
            if not isinstance(row, list) or len(row) != 4:
                raise wrong
            if not all(type(number) is int and -1 <= number <= _LARGEST for number in row):
                raise wrong
        rebuilt = cls(
            tuple(MarginalColumn(*row) for row in rows),
            inputs,
            tuple(
                MarginalPair(MarginalColumn(a, b, 0, -1), MarginalColumn(c, d, 0, -1))
                for a, b, c, d in pairs
            ),
        )
        if rebuilt.spec() != dict(spec):
            raise wrong
        return rebuilt


def _shares(block: Block) -> MarginalColumn:
    """A column by its categories or soft bins, and whether it is missing."""
    return MarginalColumn(block.shares.start, block.shares.stop - block.shares.start, 0, -1)


def _pairs_of(schema: TableSchema, names: Sequence[tuple[str, str]]) -> tuple[MarginalPair, ...]:
    """Pairs of columns, in the order of the columns.

    Raises:
        SchemaError: a name is not one of a column but the label, or a pair is there twice.
    """
    blocks = blocks_of(schema)
    order = {block.column.name: number for number, block in enumerate(blocks)}
    found = set()
    for pair in names:
        if pair[0] == pair[1] or not all(name in order for name in pair):
            raise SchemaError(f"marginals: {pair[0]} and {pair[1]} are no pair of columns")
        first, second = sorted(order[name] for name in pair)
        if (first, second) in found:
            raise SchemaError(f"marginals: the pair {pair[0]} and {pair[1]} is there twice")
        found.add((first, second))
    return tuple(
        MarginalPair(_shares(blocks[first]), _shares(blocks[second]))
        for first, second in sorted(found)
    )
