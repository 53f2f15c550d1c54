"""Checks that a spec's marginals can be read from a record, and that none occurs twice."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence

from .cells import MOST_CELLS, MarginalColumn, MarginalGroup
from .spec import SIDES


def are_groups_of(
    columns: Collection[MarginalColumn],
    groups: Sequence[MarginalGroup],
    coarse: Sequence[MarginalGroup],
) -> bool:
    """Whether each group consists of two or three of the columns, and none occurs twice.

    Args:
        columns: the single columns.
        groups: pairs and triples of columns.
        coarse: pairs of numbers in few cells.
    """
    several, known = (*coarse, *groups), frozenset(columns)
    return (
        all(len(set(kind)) == len(kind) for kind in (coarse, groups))
        and all(side.cells for group in coarse for side in group.sides)
        and all(len(set(group.sides)) == len(group.sides) in SIDES for group in several)
        and all(_is_side(side, known) for group in several for side in group.sides)
    )


def _is_side(side: MarginalColumn, columns: Collection[MarginalColumn]) -> bool:
    """Whether a side of a group is one of the columns, with any merged cells in order."""
    firsts = side.merged
    return (
        (not side.cells or side.unmerged in columns)
        and (not firsts or (firsts[0] == 0 and firsts[-1] < side.cells))
        and all(before < after for before, after in itertools.pairwise(firsts))
    )


def may_be_folded(groups: Sequence[MarginalGroup], coarse: Sequence[MarginalGroup]) -> bool:
    """Whether only groups that may be are folded: pairs in few cells, all of them or none."""
    folded = [group for group in coarse if group.folded]
    return (
        not any(group.folded for group in groups)
        and len(folded) in (0, len(coarse))
        and all(side.known <= 2 for group in folded for side in group.sides)
    )


def are_in_records(
    columns: Sequence[MarginalColumn], sides: Iterable[MarginalColumn], record_size: int
) -> bool:
    """Whether each cell can be read from a record, and only groups have merged cells.

    Args:
        columns: the single columns.
        sides: the columns in groups.
        record_size: number of values in a record.
    """
    return not any(column.merged for column in columns) and all(
        column.start >= 0
        and column.count >= 1
        and column.start + column.count <= record_size
        and 0 <= column.cells <= MOST_CELLS
        and column.cells != 1
        and (column.count == 1 or not column.cells)
        and -1 <= column.missing < record_size
        and (column.missing < 0 or column.cells > 0)
        for column in (*columns, *sides)
    )


def are_levels_of(
    columns: Sequence[MarginalColumn], by_level: Sequence[MarginalColumn], record_size: int
) -> bool:
    """Whether the columns by level are numeric ones of the columns, in their order.

    Args:
        columns: the single columns.
        by_level: numeric columns with one cell per level.
        record_size: number of values in a record.
    """
    by_start = {column.start: column for column in columns if column.cells}
    starts = [column.start for column in by_level]
    return starts == [start for start in by_start if start in starts] and all(
        column.count > 2
        and column.start + column.count <= record_size
        and column == by_start[column.start].by_level(column.count - 1)
        for column in by_level
    )
