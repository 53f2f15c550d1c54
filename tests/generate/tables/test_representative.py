"""Rows that are kept of many: distributed as all of them are, closer than by chance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from dpntk.common.schema.encoding import blocks_of
from dpntk.generate.tables.representative import representative
from tests.helpers.tables import PEOPLE

BLOCKS = blocks_of(PEOPLE)
COLUMNS = [block for block in BLOCKS if block.column.name in ("grade", "town", "ill")]


def rows(count: int, seed: int) -> NDArray[np.float32]:
    """Encoded rows; the town depends on the grade, and half of the pay is missing."""
    random = np.random.default_rng(seed)
    grade = random.integers(0, 3, count)
    pay = np.where(random.random(count) < 0.5, np.nan, random.exponential(50, count))
    values = {
        "age": random.normal(50, 15, count).clip(0, 99).round(),
        "pay": pay,
        "grade": grade,
        "town": np.where(random.random(count) < 0.7, grade, random.integers(0, 3, count)),
        "ill": (random.random(count) < 0.1).astype(np.int64),
    }
    found = np.zeros((count, PEOPLE.record_size), dtype=np.float32)
    for block in BLOCKS:
        found[:, block.place] = block.encode(values[block.column.name]) / 255
    return found


def shares(records: NDArray[np.float32]) -> NDArray[np.float32]:
    """How frequent each choice of each column is."""
    return np.concatenate([records[:, block.shares].mean(axis=0) for block in BLOCKS])


def together(records: NDArray[np.float32]) -> NDArray[np.float32]:
    """How frequent each two categories of two columns are in one row."""
    parts = [
        records[:, block.shares]
        for block in BLOCKS
        if block.column.name in ("grade", "town", "ill")
    ]
    pairs = [one.T @ other for one, other in itertools.combinations(parts, 2)]
    return np.concatenate([pair.ravel() / np.float32(len(records)) for pair in pairs])


@pytest.mark.parametrize(
    ("total", "count", "most"), [(1000, 240, 0.25), (1000, 760, 0.25), (400, 20, 0.7)]
)
def test_rows_that_are_kept_stand_for_all(total: int, count: int, most: float) -> None:
    """Columns and pairs are much nearer to those of all rows than by chance."""
    records, random = rows(total, seed=count), np.random.default_rng(0)
    kept = representative(records, count, BLOCKS, random)
    assert len(np.unique(kept)) == len(kept) == count
    assert 0 <= kept.min() <= kept.max() < total
    by_chance = [random.choice(total, count, replace=False) for _ in range(20)]
    for figures in (shares, together):
        of_all = figures(records)
        off = [np.abs(figures(records[some]) - of_all).sum() for some in (kept, *by_chance)]
        assert off[0] < most * np.mean(off[1:])


@pytest.mark.parametrize("count", [0, 1, 40])
def test_none_one_and_all_can_be_kept(count: int) -> None:
    kept = representative(rows(40, 0), count, BLOCKS, np.random.default_rng(0))
    assert len(set(kept.tolist())) == count
    assert set(kept.tolist()) <= set(range(40))
