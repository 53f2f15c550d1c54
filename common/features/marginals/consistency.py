"""Whether the marginals that a spec describes can be read off a record, and none is there twice."""

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
    """Whether no group is there twice, and each is of two or three of the columns.

    Args:
        columns: that have cells by themselves.
        groups: pairs and triples of them.
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
    """Whether a number in a group is one of the columns, its merged cells in order."""
    firsts = side.merged
    return (
        (not side.cells or side.unmerged in columns)
        and (not firsts or (firsts[0] == 0 and firsts[-1] < side.cells))
        and all(before < after for before, after in itertools.pairwise(firsts))
    )


def may_be_folded(groups: Sequence[MarginalGroup], coarse: Sequence[MarginalGroup]) -> bool:
    """Whether groups are folded that may be: pairs in few cells, all of them or none."""
    folded = [group for group in coarse if group.folded]
    return (
        not any(group.folded for group in groups)
        and len(folded) in (0, len(coarse))
        and all(side.known <= 2 for group in folded for side in group.sides)
    )


def are_in_records(
    columns: Sequence[MarginalColumn], sides: Iterable[MarginalColumn], record_size: int
) -> bool:
    """Whether each cell can be read off in a record, and only groups have merged ones.

    Args:
        columns: that have cells by themselves.
        sides: those that are in groups.
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
    """Whether columns by level are numbers among the columns, in their order.

    Args:
        columns: that have cells by themselves.
        by_level: numbers whose levels have a cell each.
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
