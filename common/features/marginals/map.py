"""Marginals of a table as a feature map: in which cell of each column a record lies.

The class-wise mean of these features is a histogram of every column, and of those pairs of columns
that were asked for, or that a release chooses. Beside the features of a network
(`dpntk.common.features.joint`) they share its noise, and stage three knows how often each value is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

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


@dataclass(frozen=True)
class GroupChoice:
    """Some of the groups that an embedding counts, as a release has them.

    Attributes:
        numbers: which, in the order of the embedding's map.
        length: of their part of the feature, above 0 and below 1.
        merging: sides with merged cells in place of others.
        folded: whether a pair of numbers only counts whether both are in the same part.
    """

    numbers: Sequence[int]
    length: float
    merging: Mapping[MarginalColumn, MarginalColumn]
    folded: bool = False


@FEATURE_MAPS.add("marginals")
@dataclass(frozen=True)
class MarginalFeatures:
    """For each column, and each group, a number at the record's cell, else 0.

    The number is 1 / sqrt(columns + groups), unless groups have a length of their own.

    Attributes:
        columns: where the cells of each are read off.
        record_size: number of values in a record.
        groups: pairs and triples of columns that have cells of their own.
        levels: records hold integers 0..levels.
        group_length: of the part of the feature that is groups', above 0 and below 1; None if all
            columns and groups have the same number.
        undecided: whether a release of this embedding is to choose among the groups.
        coarse: pairs of numbers in few cells, most of them merged, whether or not they are among
            the groups. In the feature they stand between columns and groups.
        coarse_length: of their part of the feature; None if there are none.
        by_level: columns of numbers that have a cell for each level here, beside their own cells.
            In the feature they stand behind the columns.
        by_level_length: of their part of the feature in a release; None if there are none, and in
            an embedding, where they have the same number as columns.

    Guarantee:
        norm_bound: one entry for each column and group, whatever the record is, and their squares
        add up to 1. nonnegative: no entry is negative. (docs/privacy/proofs.md, statements 1 and
        2.)
    """

    columns: tuple[MarginalColumn, ...]
    record_size: int
    groups: tuple[MarginalGroup, ...] = ()
    levels: int = LEVELS
    group_length: float | None = None
    undecided: bool = False
    coarse: tuple[MarginalGroup, ...] = ()
    coarse_length: float | None = None
    by_level: tuple[MarginalColumn, ...] = ()
    by_level_length: float | None = None

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
        ):
            raise SchemaError("feature map: marginals of columns that a record does not have")

    def _lengths_fit(self) -> bool:
        """Whether parts have lengths where there are such parts, and leave some to the columns."""
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
    ) -> MarginalFeatures:
        """The marginals of the columns of a table but the label, which has its counts.

        Args:
            schema: of the table.
            usual: cells of a numeric column, unless it is of few integers.
            numbers: whether numeric columns are among them, or categories alone.
            groups: names of two or three columns each, in any order; none is the label.
            fine: whether numbers have as many cells in groups as by themselves, where a release
                merges some; otherwise they lie in their soft bins.
            undecided: whether a release is to choose among the groups. Numbers with more values
                than cells are there by their levels then, too.

        Raises:
            SchemaError: there are no such columns, a group is there twice, or has too many cells.
        """
        blocks = [block for block in blocks_of(schema) if numbers or not block.column.kind.numeric]
        columns = [column_of(block, usual) for block in blocks]
        by_level = map(level_column_of, blocks, columns) if undecided else ()
        sides = columns if fine else [binned(block) for block in blocks_of(schema)]
        return cls(
            tuple(columns),
            schema.record_size,
            groups_of(schema, groups, sides),
            undecided=undecided,
            by_level=tuple(column for column in by_level if column is not None),
        )

    @property
    def tables(self) -> tuple[MarginalColumn | MarginalGroup, ...]:
        """All that have cells of their own, in the order of the feature."""
        return *self.columns, *self.by_level, *self.coarse, *self.groups

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """Where the cells of each of these lie in a feature."""
        found, start = [], 0
        for table in self.tables:
            found.append(slice(start, start + table.dimension))
            start += table.dimension
        return tuple(found)

    @property
    def dimension(self) -> int:
        """Number of cells of all of them."""
        return sum(table.dimension for table in self.tables)

    @property
    def entry(self) -> float:
        """What stands at a record's cells of columns."""
        if self.group_length is None:
            return 1 / math.sqrt(len(self.tables))
        return math.sqrt((1 - self._of_several) / len(self.columns))

    @property
    def _of_several(self) -> float:
        """The part of the feature's square that is not columns', where other parts have lengths."""
        lengths = (self.group_length, self.coarse_length, self.by_level_length)
        return sum((length or 0.0) ** 2 for length in lengths)

    @property
    def group_entry(self) -> float:
        """What stands at a record's cells of groups."""
        if self.group_length is None:
            return self.entry
        return self.group_length / math.sqrt(len(self.groups))

    @property
    def entries(self) -> NDArray[np.float64]:
        """What stands at a record's cells of each of the tables, float64 (tables,)."""
        coarse = (self.coarse_length or 0.0) / math.sqrt(len(self.coarse) or 1)
        sizes = [len(self.columns), len(self.by_level), len(self.coarse), len(self.groups)]
        return np.repeat([self.entry, self.level_entry, coarse, self.group_entry], sizes)

    @property
    def level_entry(self) -> float:
        """What stands at a record's levels."""
        if self.group_length is None:
            return self.entry
        return (self.by_level_length or 0.0) / math.sqrt(len(self.by_level) or 1)

    @property
    def unmerged(self) -> MarginalFeatures:
        """Columns and groups alone, with the cells in these that columns have by themselves."""
        groups = (tuple(side.unmerged for side in group.sides) for group in self.groups)
        return replace(
            self,
            groups=tuple(map(MarginalGroup, groups)),
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
        """The same columns with some of the groups.

        Args:
            chosen: which; None for none.
            coarse: which pairs of numbers to have in few cells as well; None for none.
            by_level: length of the part of numbers by their levels; None leaves them out.
        """
        groups, group_length = self._chosen(chosen)
        rough, coarse_length = self._chosen(coarse)
        return replace(
            self,
            groups=groups,
            group_length=group_length,
            undecided=False,
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
        """Which of the groups are of two columns of numbers."""
        return [number for number, group in enumerate(self.groups) if group.of_numbers]

    def noise_on_correlations(self, noise: float) -> float:
        """About how far noise moves small correlations, as pairs of numbers in few cells show them.

        With correlation r Gaussian numbers have a share p_i p_j + r a_i a_j of cell (i, j), a_i
        being the mean of a standard normal number there, times p_i.

        Args:
            noise: standard deviation of the noise on an entry of the feature.

        Returns:
            Infinity if there are no such pairs.
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
        """The names of the columns of each group.

        Raises:
            SchemaError: the schema has no such columns.
        """
        blocks = blocks_of(schema)
        names = {binned(block): block.column.name for block in blocks}
        of_start = {block.first: block.column.name for block in blocks}
        names |= {column: of_start[column.start] for column in self.columns if column.cells}
        try:
            return [tuple(names[side.unmerged] for side in group.sides) for group in self.groups]
        except KeyError as error:
            raise SchemaError("feature map: pairs of columns that there are not") from error

    def describe(self, schema: Schema) -> str:
        """In words, for whoever reads a release."""
        return f"marginals of {counted(len(self.columns), 'column')}"

    def spec(self) -> dict[str, Any]:
        """All that there is to it, as plain JSON."""
        pairs, merging = rows_of(self.groups)
        coarse, coarsely = rows_of(self.coarse)
        return {
            "features": "marginals",
            "inputs": self.record_size,
            "levels": self.levels,
            "columns": [[c.start, c.count, c.cells, c.missing] for c in self.columns],
            **({"pairs": pairs} if pairs else {}),
            **({"pairs_merged": merging} if merging else {}),
            **({"pairs_length": self.group_length} if self.group_length is not None else {}),
            **({"pairs_undecided": True} if self.undecided else {}),
            **({"coarse": coarse} if coarse else {}),
            **({"coarse_merged": coarsely} if coarsely else {}),
            **({"coarse_folded": True} if any(g.folded for g in self.coarse) else {}),
            **({"coarse_length": self.coarse_length} if self.coarse_length is not None else {}),
            **({"by_level": [[c.start, c.count] for c in self.by_level]} if self.by_level else {}),
            **({"by_level_length": by_level} if (by_level := self.by_level_length) else {}),
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
        rebuilt = cls(**read_spec(spec))
        if weights or rebuilt.spec() != dict(spec):
            raise unknown_spec()
        return rebuilt
