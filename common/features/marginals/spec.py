"""Marginals in a file, as plain lists of numbers, which anybody may have written."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ...errors import SchemaError
from ...schema.table import LEVELS
from .cells import MOST_CELLS, MarginalColumn, MarginalGroup

MOST: Final = 1 << 24
"""The most values in a record, and the most cells in a feature."""
SIDES: Final = (2, 3)
"""The allowed numbers of columns in a group."""


def unknown_spec() -> SchemaError:
    """The error for a spec that does not describe marginals."""
    return SchemaError("feature map: not marginals that this dpntk knows")


def rows_of(groups: Sequence[MarginalGroup]) -> tuple[list[list[int]], list[list[int]]]:
    """Groups in a `spec`: the sides of each, and the first cells of each side with merged cells."""
    sides = [group.sides for group in groups]
    rows = [[number for side in each for number in (side.start, side.count)] for each in sides]
    merged = {side.start: side.merged for each in sides for side in each}
    return rows, [[start, *firsts] for start, firsts in sorted(merged.items()) if firsts]


def read_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Read what `MarginalFeatures.spec` wrote.

    Returns:
        The fields of `MarginalFeatures` by name, which it checks for consistency itself.

    Raises:
        SchemaError: it holds anything but lists of numbers of the right form.
    """
    rows, pairs, coarse = spec.get("columns"), spec.get("pairs", []), spec.get("coarse", [])
    merging, coarsely = spec.get("pairs_merged", []), spec.get("coarse_merged", [])
    by_level, inputs = spec.get("by_level", []), spec.get("inputs")
    named = spec.get("pairs_named", [])
    if type(inputs) is not int or spec.get("levels") != LEVELS:
        raise unknown_spec()
    lists = (rows, pairs, coarse, merging, coarsely, by_level, named)
    if not all(isinstance(each, list) for each in lists):
        raise unknown_spec()
    assert isinstance(rows, list)
    lengths = [spec.get(f"{kind}_length") for kind in ("pairs", "coarse", "by_level")]
    if not all(isinstance(length, float | None) for length in lengths):
        raise unknown_spec()
    for row, known in (
        *((row, {4}) for row in rows),  # start, count, cells, missing
        *((row, {2 * sides for sides in SIDES}) for row in pairs),  # start and count of each side
        *((row, {2 * 2}) for row in coarse),  # likewise, for two sides
        *((row, {2}) for row in by_level),  # start, count
        *(([number], {1}) for number in named),
        *((row, range(2, MOST_CELLS + 2)) for row in (*merging, *coarsely)),  # start, first cells
    ):
        if not isinstance(row, list) or len(row) not in known:
            raise unknown_spec()
        if not all(type(number) is int and -1 <= number <= MOST for number in row):
            raise unknown_spec()
    columns = tuple(MarginalColumn(*row) for row in rows)
    bins_of = dict(by_level)
    return {
        "columns": columns,
        "record_size": inputs,
        "groups": _groups_from(pairs, columns, merging),
        "group_length": lengths[0],
        "undecided": spec.get("pairs_undecided") is True,
        "named": tuple(named),
        "coarse": _groups_from(coarse, columns, coarsely, folded=spec.get("coarse_folded") is True),
        "coarse_length": lengths[1],
        "by_level": tuple(
            column.by_level(bins_of[column.start] - 1)
            for column in columns
            if column.start in bins_of
        ),
        "by_level_length": lengths[2],
    }


def _groups_from(
    rows: Sequence[Sequence[int]],
    columns: Sequence[MarginalColumn],
    merging: Sequence[Sequence[int]],
    *,
    folded: bool = False,
) -> tuple[MarginalGroup, ...]:
    """Read groups from a `spec`; their columns have their own cells or soft bins."""
    firsts = {start: tuple(cells) for start, *cells in merging}
    numbers = {
        (each.start, each.count): replace(each, merged=firsts.get(each.start, ()))
        for each in columns
        if each.cells
    }

    def side(start: int, count: int) -> MarginalColumn:
        return numbers.get((start, count)) or MarginalColumn(start, count, 0, -1)

    sides = (itertools.starmap(side, zip(row[::2], row[1::2], strict=True)) for row in rows)
    return tuple(MarginalGroup(tuple(each), folded) for each in sides)
