"""Tables to compare with, and the undersampling that published tables were made with."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .table import Table

INDEPENDENT: Final = "independent columns of"
"""Prefix of the rows of figures about `independent_columns`."""


def independent_columns(table: Table, seed: int) -> Table:
    """Shuffle each column on its own, which keeps one-way marginals and nothing else."""
    random = np.random.default_rng(seed)
    columns = {name: random.permutation(values) for name, values in table.columns.items()}
    return Table(table.schema, columns, {})


def some_rows(table: Table, most: int, seed: int) -> Table:
    """Draw at most `most` rows at random, without replacement."""
    if len(table) <= most:
        return table
    return rows_of(table, np.random.default_rng(seed).choice(len(table), most, replace=False))


def keep_negatives(table: Table, positive: int, rate: float, seed: int) -> Table:
    """Keep all rows of the positive class, and a random share of the others.

    DP-MERF, DP-HP and DP-NTK balanced their tables in this way before anything else.

    Args:
        table: with a label.
        positive: index of the positive class.
        rate: share 0..1 of the other rows that stay.
        seed: of the draw.
    """
    others = np.flatnonzero(table.labels != positive)
    kept = np.random.default_rng(seed).permutation(others)[: int(len(others) * rate)]
    return rows_of(table, np.sort(np.concatenate([np.flatnonzero(table.labels == positive), kept])))


def rows_of(table: Table, rows: NDArray[np.int64]) -> Table:
    """Some rows of a table, by their numbers."""
    return replace(table, columns={name: values[rows] for name, values in table.columns.items()})
