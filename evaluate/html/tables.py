"""What a report shows of tables. The first one is synthetic; the others are compared with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from ...common.schema.column import Column
from ...common.text import counted
from ..tables.fidelity.marginals import binned, column_distances
from ..tables.fidelity.pairs import strengths
from ..tables.table import Table

_MOST_COLUMNS: Final = 60
_MOST_IN_GRID: Final = 20
_MOST_CATEGORIES: Final = 12
_MOST_PAIRS: Final = 12
_RANGES: Final = 10


@dataclass(frozen=True)
class Bars:
    """The distribution of a column.

    Attributes:
        name: of the column.
        rows: value, or range of values, to its share of each table's rows.
        distance: total variation distance of the first two tables; None if there is one.
    """

    name: str
    rows: list[tuple[str, list[float]]]
    distance: float | None


@dataclass(frozen=True)
class PairStrength:
    """How strongly two columns go together in each table."""

    names: tuple[str, str]
    values: list[float]


@dataclass(frozen=True)
class TableView:
    """What there is to see of tables.

    Attributes:
        columns: how many there are.
        bars: of the first columns.
        in_grid: names of the columns in the grids.
        grids: for each table how strongly these go together, row by row, below the diagonal; None
            where nobody has looked.
        pairs: those that differ most; of one table alone those that go together most.
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
    values = _ranges(column) if column.kind.numeric else list(column.categories)
    values.append("(missing)")
    shares = np.array(
        [
            np.bincount(binned(table, column, _RANGES), minlength=len(values)) / len(table)
            for table in tables
        ]
    )
    rows = [(value, shares[:, place].tolist()) for place, value in enumerate(values)]
    if not shares[:, -1].any():
        rows.pop()
    if len(rows) <= _MOST_CATEGORIES:
        return rows
    common = np.sort(np.argsort(-shares[0, : len(rows)], kind="stable")[: _MOST_CATEGORIES - 1])
    rest = np.maximum(1 - shares[:, common].sum(axis=1), 0)
    others = counted(len(rows) - len(common), "other")
    return [*(rows[place] for place in common), (others, rest.tolist())]


def _ranges(column: Column) -> list[str]:
    """The bins of a numeric column, each by where it begins and ends."""
    assert column.lower is not None
    assert column.upper is not None
    ends = np.linspace(column.lower, column.upper, _RANGES + 1).tolist()
    if column.kind.timed:
        texts = [column.bound_text(math.floor(end)) for end in ends]
    else:
        texts = [f"{end:,.4g}" if abs(end) < 1000 else f"{end:,.0f}" for end in ends]
    return [f"{first} to {last}" for first, last in pairwise(texts)]
