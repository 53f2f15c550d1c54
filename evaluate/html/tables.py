"""The tables in a report: the first one is synthetic, and others are compared with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...common.display.text import counted
from ...common.schema.columns.column import Column
from ...common.schema.columns.kinds import ColumnKind
from ...common.schema.encoding import from_scale, to_scale
from ..tables.fidelity.marginals import binned, column_distances
from ..tables.fidelity.pairs import strengths
from ..tables.table import Table

_MOST_COLUMNS: Final = 60
_MOST_IN_GRID: Final = 20
_MOST_CATEGORIES: Final = 12
_MOST_PAIRS: Final = 12
_RANGES: Final = 10
_TWO_DAYS: Final = 2 * 86_400
_A_DATE: Final = len("2000-01-01")


@dataclass(frozen=True)
class Bars:
    """The distribution of a column.

    Attributes:
        name: of the column.
        rows: a value, or range of values, and its share of each table's rows.
        distance: total variation distance of the first two tables; None if there is one.
    """

    name: str
    rows: list[tuple[str, list[float]]]
    distance: float | None


@dataclass(frozen=True)
class PairStrength:
    """The strength of dependence between two columns in each table."""

    names: tuple[str, str]
    values: list[float]


@dataclass(frozen=True)
class TableView:
    """The view of tables in a report.

    Attributes:
        columns: number of columns.
        bars: distributions of the first columns.
        in_grid: names of the columns in the grids.
        grids: for each table the strengths of dependence between these, row by row, below the
            diagonal; None where not computed.
        pairs: the pairs that differ most; for a single table, the strongest ones.
    """

    columns: int
    bars: list[Bars]
    in_grid: list[str]
    grids: list[list[list[float | None]]]
    pairs: list[PairStrength]


def view_tables(tables: Sequence[Table]) -> TableView:
    """Look at one table, or at two side by side."""
    columns = tables[0].schema.columns
    apart = column_distances(tables[0], tables[1]) if len(tables) > 1 else {}
    found = [strengths(table) for table in tables]
    pairs = [PairStrength(pair, [one[pair] for one in found]) for pair in found[0]]
    pairs.sort(key=lambda pair: -abs(pair.values[0] - sum(pair.values[1:])))
    names = [column.name for column in columns[:_MOST_IN_GRID]]
    return TableView(
        columns=len(columns),
        bars=[
            Bars(column.name, _shares(column, tables), apart.get(column.name))
            for column in columns[:_MOST_COLUMNS]
        ],
        in_grid=names,
        grids=[
            [[one.get((names[j], names[i])) for j in range(i)] for i in range(len(names))]
            for one in found
        ],
        pairs=pairs[:_MOST_PAIRS],
    )


def _shares(column: Column, tables: Sequence[Table]) -> list[tuple[str, list[float]]]:
    if column.kind.numeric:
        starts, values = _ranges(column)
        places = [_in_ranges(table.columns[column.name], starts) for table in tables]
    else:
        values, places = list(column.categories), [binned(table, column) for table in tables]
    known = len(values)
    values += ["(missing)"] if column.kind.numeric else ["(not listed)", "(missing)"]
    shares = np.array([np.bincount(found, minlength=len(values)) / len(found) for found in places])
    there = (np.arange(len(values)) < known) | shares.any(axis=0)
    values, shares = np.array(values)[there].tolist(), shares[:, there]
    rows = [(value, shares[:, place].tolist()) for place, value in enumerate(values)]
    if len(rows) <= _MOST_CATEGORIES:
        return rows
    common = np.sort(np.argsort(-shares[0], kind="stable")[: _MOST_CATEGORIES - 1])
    rest = np.maximum(1 - shares[:, common].sum(axis=1), 0)
    others = counted(len(rows) - len(common), "other")
    return [*(rows[place] for place in common), (others, rest.tolist())]


def _ranges(column: Column) -> tuple[NDArray[np.float64], list[str]]:
    """Ranges of a numeric column, of equal width on its scale.

    Returns:
        The beginning of each, float64 (k,), and its name. Ranges of integers include their end; if
        there are few integers, each is a range.
    """
    least, most = column.bounds
    if column.values:
        listed = np.array(column.values, dtype=np.float64)
        names = _texts(listed)
        return listed, names if len(set(names)) == len(names) else list(map(str, listed.tolist()))
    if column.kind is ColumnKind.INTEGER and column.different is not None:
        step = (most - least) / (column.different - 1)
        together = 1 if column.different < _MOST_CATEGORIES else -(-column.different // _RANGES)
        first = np.arange(0, column.different, together, dtype=np.float64)
        last = np.minimum(first + together, column.different) - 1
        starts: NDArray[np.float64] = least + step * first
        pairs = zip(_texts(starts), _texts(least + step * last), strict=True)
        return starts, [start if start == end else f"{start} to {end}" for start, end in pairs]
    lower, upper = to_scale(np.array(column.bounds), column.transform).tolist()
    ends = from_scale(np.linspace(lower, upper, _RANGES + 1), column.transform)
    if column.kind.timed:
        ends = np.unique(np.ceil(ends))
        return ends[:-1], [f"from {start}" for start in _times(column, ends)[:-1]]
    ends = np.unique(column.rounded(ends))
    return ends[:-1], [f"{first} to {last}" for first, last in pairwise(_texts(ends))]


def _in_ranges(values: NDArray[np.float64], starts: NDArray[np.float64]) -> NDArray[np.int64]:
    """The index of each value's range; the number of ranges for a missing value."""
    found = np.clip(np.searchsorted(starts, values, side="right") - 1, 0, len(starts) - 1)
    return np.where(np.isnan(values), len(starts), found)


def _texts(values: NDArray[np.float64]) -> list[str]:
    return [f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}" for value in values.tolist()]


def _times(column: Column, values: NDArray[np.float64]) -> list[str]:
    """Format dates, without the time of day if they are far apart, or durations."""
    steps = [int(value) for value in values.tolist()]
    if not column.kind.temporal:
        return column.duration_format.write(np.array(steps) * column.seconds)
    far_apart = (steps[1] - steps[0]) * column.seconds > _TWO_DAYS
    return [column.bound_text(step)[: _A_DATE if far_apart else None] for step in steps]
