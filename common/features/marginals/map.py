"""Marginals of a table as a feature map, which marks the record's cell in each column.

The class-wise mean of these features is a histogram of every column, and of the pairs of columns
that were asked for or that a release chooses. Beside a network's features
(`dpntk.common.features.joint`) they share its noise, and tell stage three how frequent each value
is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any, ClassVar, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...display.text import counted
from ...errors import SchemaError
from ...schema import Schema
from ...schema.encoding import blocks_of
from ...schema.table import LEVELS, TableSchema
from ..base import FEATURE_MAPS
from .cells import CELLS, MarginalColumn, MarginalGroup
from .consistency import are_groups_of, are_in_records, are_levels_of, may_be_folded
from .of_schema import binned, column_of, groups_of, level_column_of
from .spec import MOST, read_spec, rows_of, unknown_spec

LARGE_ON_MEANS: Final = 0.15
"""About the standard deviation of numbers between their bounds, in parts of the distance of these.
With more noise on their means, single columns are mostly noise."""


@dataclass(frozen=True)
class GroupChoice:
    """The groups that a release chooses among those of an embedding.

    Attributes:
        numbers: the indices of the groups, in the order of the embedding's map.
        length: the length of their part of the feature, above 0 and below 1.
        merging: maps sides to the same ones with merged cells.
        folded: whether a pair of numbers only counts whether both are in the same part.
    """

    numbers: Sequence[int]
    length: float
    merging: Mapping[MarginalColumn, MarginalColumn]
    folded: bool = False


@FEATURE_MAPS.add("marginals")
@dataclass(frozen=True)
class MarginalFeatures:
    """For each column and each group, a constant at the record's cell, and 0 elsewhere.

    The constant is 1 / sqrt(columns + groups), unless groups have their own length.

    Attributes:
        columns: the single columns, and where their cells are read.
        record_size: number of values in a record.
        groups: pairs and triples of columns with joint cells.
        levels: records hold integers 0..levels.
        group_length: the length of the groups' part of the feature, above 0 and below 1; None if
            all columns and groups have the same constant.
        undecided: whether a release from this embedding is to choose among the groups.
        named: the indices of the groups that its owner named, in increasing order. A release that
            is to choose takes these; in it, they are all of its groups.
        coarse: pairs of numbers in few cells, most of them merged, whether or not they are among
            the groups. In the feature they stand between columns and groups.
        coarse_length: the length of their part of the feature; None if there are none.
        by_level: numeric columns that also have a cell for each level. In the feature they follow
            the columns.
        by_level_length: the length of their part of the feature in a release; None if there are
            none, and in an embedding, where they have the same constant as columns.

    Guarantee:
        norm_bound: every record has one nonzero entry for each column and group, and their squares
        add up to 1. nonnegative: no entry is negative. (docs/privacy/proofs.md, statements 1 and
        2.)
    """

    columns: tuple[MarginalColumn, ...]
    record_size: int
    groups: tuple[MarginalGroup, ...] = ()
    levels: int = LEVELS
    group_length: float | None = None
    undecided: bool = False
    named: tuple[int, ...] = ()
    coarse: tuple[MarginalGroup, ...] = ()
    coarse_length: float | None = None
    by_level: tuple[MarginalColumn, ...] = ()
    by_level_length: float | None = None
    norm_bound: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        sides = [side for group in (*self.coarse, *self.groups) for side in group.sides]
        if not (
            self.columns
            and self.levels == LEVELS
            and 0 < self.record_size <= MOST
            and are_groups_of(self.columns, self.groups, self.coarse)
            and may_be_folded(self.groups, self.coarse)
            and are_in_records(self.columns, sides, self.record_size)
            and self.dimension <= MOST
            and are_levels_of(self.columns, self.by_level, self.record_size)
            and self._lengths_fit()
            and self._named_fit()
        ):
            raise SchemaError("feature map: marginals of columns that a record does not have")

    def _lengths_fit(self) -> bool:
        """Whether exactly the existing parts have lengths, and leave some for the columns."""
        lengths = [self.group_length, self.coarse_length, self.by_level_length]
        kinds = [self.groups, self.coarse, self.by_level]
        if self.group_length is None and lengths != [None, None, None]:
            return False
        if self.undecided and (not self.groups or self.group_length is not None):
            return False
        return (
            all(
                length is None or (kind and 0 < length < 1)
                for kind, length in zip(kinds, lengths, strict=True)
            )
            and not (self.coarse and self.coarse_length is None)
            and not (self.by_level and (self.by_level_length is None) != self.undecided)
            and self._of_several < 1
        )

    def _named_fit(self) -> bool:
        """Whether the named groups are among those to choose from, or all that were chosen."""
        if not self.named:
            return True
        every = range(len(self.groups))
        if not self.undecided:
            return self.group_length is not None and self.named == tuple(every)
        return self.named == tuple(sorted(set(self.named))) and set(self.named) <= set(every)

    @classmethod
    def of(
        cls,
        schema: TableSchema,
        usual: int = CELLS,
        *,
        numbers: bool = True,
        groups: Sequence[tuple[str, ...]] = (),
        fine: bool = False,
        undecided: bool = False,
        named: Sequence[tuple[str, ...]] = (),
    ) -> MarginalFeatures:
        """The marginals of a table's columns except the label, which has the class counts.

        Args:
            schema: the table's schema.
            usual: the number of cells of a numeric column, unless it has few integers.
            numbers: whether to include numeric columns, not only categories.
            groups: the names of two or three columns each, in any order, never the label.
            fine: whether numbers have their own cells in groups, some of which a release merges;
                otherwise they belong to their soft bins.
            undecided: whether a release is to choose among the groups. Then numbers with more
                values than cells are also counted by level.
            named: those of the groups that it is to take.

        Raises:
            SchemaError: there are no such columns, or a group occurs twice or has too many cells.
        """
        blocks = [block for block in blocks_of(schema) if numbers or not block.column.kind.numeric]
        columns = [column_of(block, usual) for block in blocks]
        by_level = map(level_column_of, blocks, columns) if undecided else ()
        sides = columns if fine else [binned(block) for block in blocks_of(schema)]
        found = groups_of(schema, groups, sides)
        taken = groups_of(schema, named, sides)
        return cls(
            tuple(columns),
            schema.record_size,
            found,
            undecided=undecided,
            named=tuple(number for number, group in enumerate(found) if group in taken),
            by_level=tuple(column for column in by_level if column is not None),
        )

    @property
    def tables(self) -> tuple[MarginalColumn | MarginalGroup, ...]:
        """All columns and groups with cells, in the order of the feature."""
        return *self.columns, *self.by_level, *self.coarse, *self.groups

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """The coordinates of each of the tables in a feature."""
        found, start = [], 0
        for table in self.tables:
            found.append(slice(start, start + table.dimension))
            start += table.dimension
        return tuple(found)

    @property
    def dimension(self) -> int:
        """The number of cells in all tables."""
        return sum(table.dimension for table in self.tables)

    @property
    def entry(self) -> float:
        """The entry at a record's cells in columns."""
        if self.group_length is None:
            return 1 / math.sqrt(len(self.tables))
        return math.sqrt((1 - self._of_several) / len(self.columns))

    @property
    def _of_several(self) -> float:
        """The squared length of the feature's parts other than columns, if these have lengths."""
        lengths = (self.group_length, self.coarse_length, self.by_level_length)
        return sum((length or 0.0) ** 2 for length in lengths)

    @property
    def group_entry(self) -> float:
        """The entry at a record's cells in groups."""
        if self.group_length is None:
            return self.entry
        return self.group_length / math.sqrt(len(self.groups))

    @property
    def entries(self) -> NDArray[np.float64]:
        """The entry at a record's cell in each of the tables, float64 (tables,)."""
        coarse = (self.coarse_length or 0.0) / math.sqrt(len(self.coarse) or 1)
        sizes = [len(self.columns), len(self.by_level), len(self.coarse), len(self.groups)]
        return np.repeat([self.entry, self.level_entry, coarse, self.group_entry], sizes)

    @property
    def level_entry(self) -> float:
        """The entry at a record's levels."""
        if self.group_length is None:
            return self.entry
        return (self.by_level_length or 0.0) / math.sqrt(len(self.by_level) or 1)

    @property
    def unmerged(self) -> MarginalFeatures:
        """The map with columns and groups only, whose groups have unmerged cells and no names."""
        groups = (tuple(side.unmerged for side in group.sides) for group in self.groups)
        return replace(
            self,
            groups=tuple(map(MarginalGroup, groups)),
            named=(),
            coarse=(),
            coarse_length=None,
            by_level=(),
            by_level_length=None,
        )

    def choosing(
        self,
        chosen: GroupChoice | None,
        coarse: GroupChoice | None = None,
        by_level: float | None = None,
    ) -> MarginalFeatures:
        """The same columns with the chosen groups.

        Args:
            chosen: the chosen groups; None for none.
            coarse: the pairs of numbers to include in few cells as well; None for none.
            by_level: length of the part of numbers by level; None leaves them out.
        """
        groups, group_length = self._chosen(chosen)
        rough, coarse_length = self._chosen(coarse)
        return replace(
            self,
            groups=groups,
            group_length=group_length,
            undecided=False,
            named=tuple(range(len(groups))) if self.named else (),
            coarse=rough,
            coarse_length=coarse_length,
            by_level=self.by_level if by_level is not None else (),
            by_level_length=by_level,
        )

    def _chosen(self, choice: GroupChoice | None) -> tuple[tuple[MarginalGroup, ...], float | None]:
        if choice is None or not choice.numbers:
            return (), None
        groups = (self.groups[number].sides for number in choice.numbers)
        merged = (tuple(choice.merging.get(side, side) for side in sides) for sides in groups)
        return tuple(MarginalGroup(sides, choice.folded) for sides in merged), choice.length

    @property
    def pairs_of_numbers(self) -> list[int]:
        """The indices of the groups that consist of two columns of numbers."""
        return [number for number, group in enumerate(self.groups) if group.of_numbers]

    def noise_on_correlations(self, noise: float) -> float:
        """The approximate error from noise of small correlations, read from pairs in few cells.

        Gaussian numbers with correlation r have the share p_i p_j + r a_i a_j in cell (i, j), where
        a_i is p_i times the mean of a standard normal number there.

        Args:
            noise: standard deviation of the noise on an entry of the feature.

        Returns:
            The error; infinity if there are no such pairs.
        """
        if not self.coarse or self.coarse_length is None:
            return math.inf
        on_share = noise * math.sqrt(len(self.coarse)) / self.coarse_length
        parts = max(side.known for group in self.coarse for side in group.sides)
        normal = NormalDist()
        density = [normal.pdf(normal.inv_cdf(part / parts)) for part in range(1, parts)]
        told = sum((one - other) ** 2 for one, other in itertools.pairwise([0.0, *density, 0.0]))
        if not told:
            return math.inf
        return on_share / told * (math.sqrt(0.5) if self.coarse[0].folded else 1.0)

    def noise_on_means(self, noise: float) -> float:
        """The error from noise of the mean of a number, read from its cells, if all are used alike.

        Args:
            noise: standard deviation of the noise on an entry of the feature.

        Returns:
            Its standard deviation, in parts of the distance of the bounds, mean over the numbers; 0
            if there are none.
        """
        on_share = noise / self.entry
        errors = [math.sqrt(column.cells / 12) for column in self.columns if column.cells]
        return on_share * sum(errors) / len(errors) if errors else 0.0

    def hits(self, records: Tensor) -> Tensor:
        """The coordinates at which each record's feature is not 0.

        Args:
            records: integers 0..levels, of any type, (b, record size).

        Returns:
            int64 (b, tables).
        """
        whole = records.to(torch.int64)
        found = [column.cell(whole) for column in (*self.columns, *self.by_level)]
        several = (*self.coarse, *self.groups)
        cell_of = {side: side.cell(whole) for group in several for side in group.sides}
        found += [group.cell_among(cell_of) for group in several]
        starts = (place.start for place in self.places)
        return torch.stack([start + cell for start, cell in zip(starts, found, strict=True)], dim=1)

    def names_of_groups(self, schema: TableSchema) -> list[tuple[str, ...]]:
        """The names of each group's columns.

        Raises:
            SchemaError: the schema has no such columns.
        """
        blocks = blocks_of(schema)
        names = {binned(block): block.column.name for block in blocks}
        of_start = {block.first: block.column.name for block in blocks}
        try:
            names |= {column: of_start[column.start] for column in self.columns if column.cells}
            return [tuple(names[side.unmerged] for side in group.sides) for group in self.groups]
        except KeyError as error:
            raise SchemaError("feature map: columns that there are not") from error

    def describe(self, schema: Schema) -> str:
        """A description for readers of a release."""
        return f"marginals of {counted(len(self.columns), 'column')}"

    def spec(self) -> dict[str, Any]:
        """The whole map, as plain JSON."""
        pairs, merging = rows_of(self.groups)
        coarse, coarsely = rows_of(self.coarse)
        document = {
            "features": "marginals",
            "inputs": self.record_size,
            "levels": self.levels,
            "columns": [[c.start, c.count, c.cells, c.missing] for c in self.columns],
            "pairs": pairs,
            "pairs_merged": merging,
            "pairs_length": self.group_length,
            "pairs_undecided": self.undecided,
            "pairs_named": list(self.named),
            "coarse": coarse,
            "coarse_merged": coarsely,
            "coarse_folded": any(group.folded for group in self.coarse),
            "coarse_length": self.coarse_length,
            "by_level": [[c.start, c.count] for c in self.by_level],
            "by_level_length": self.by_level_length,
        }
        return {name: value for name, value in document.items() if value}  # no part, no entry

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """No weights: the map has none."""
        return {}

    @classmethod
    def from_spec(
        cls, spec: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]
    ) -> MarginalFeatures:
        """Rebuild a map from `spec()`.

        Raises:
            SchemaError: it does not describe such a map.
        """
        rebuilt = cls(**read_spec(spec))
        if weights or rebuilt.spec() != dict(spec):
            raise unknown_spec()
        return rebuilt
