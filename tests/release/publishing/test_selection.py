"""Pairs are chosen by what noisy products show, be it little, and never by their place."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from dpntk.common.features.joint import Parts, parts_of
from dpntk.common.features.marginals.cells import MarginalColumn, MarginalGroup
from dpntk.common.features.moments import CONSTANT, INDICATOR
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions, embed
from dpntk.release.publishing import selection
from dpntk.release.publishing.selection import Dependence, dependences, select_pairs

Floats = NDArray[np.float64]
WIDE, NARROW = 12, 4
"""So many columns of ten categories, and of two."""
ROWS, RARE = 4000, 80
DRAWS = 20
COLUMNS = (
    *(Column.categorical(f"wide{n}", map(str, range(10))) for n in range(WIDE)),
    *(Column.categorical(f"narrow{n}", ["0", "1"]) for n in range(NARROW)),
)
SCHEMA = TableSchema((*COLUMNS, Column.boolean("ill", ["no", "yes"])), "ill")
PAIRS = list(itertools.combinations([column.name for column in COLUMNS], 2))
TOGETHER = PAIRS.index(("narrow2", "narrow3"))
"""The last pair of all: the only one whose columns go together, in nine of ten rows."""


@cache
def table() -> tuple[Parts, Floats]:
    """A map's parts, and exact products in units of one record's."""
    random = np.random.default_rng(0)
    rows = {f"wide{n}": random.integers(0, 10, ROWS) for n in range(WIDE)}
    rows |= {f"narrow{n}": random.integers(0, 2, ROWS) for n in range(NARROW)}
    rows["narrow3"] = rows["narrow2"] ^ (random.random(ROWS) < 0.1)
    frame = pd.DataFrame(rows).astype(str)
    frame["ill"] = np.where(np.arange(ROWS) < RARE, "yes", "no")
    embedding = embed(frame, TangentOptions(width=1), SourceOptions(SCHEMA))
    parts = parts_of(embedding.feature_map)
    assert parts.marginals is not None
    assert parts.marginals.names_of_groups(SCHEMA) == PAIRS
    sums = embedding.sums[parts.moment_place].astype(float)
    # The trace of z z^T / |z|^2 is 1, for each record.
    k = round(len(sums) ** 0.5)
    one = sums.reshape(k, k, 2).trace().sum() / ROWS
    return parts, sums / one


def chosen_with(noise: float, signal: float = 1.0) -> list[list[int]]:
    """Ten pairs for each of some draws of noise."""
    parts, products = table()
    found = []
    for seed in range(DRAWS):
        drawn = np.random.default_rng(seed).normal(0, noise, products.shape)
        found.append(select_pairs(parts, SCHEMA, signal * products + drawn, noise, 10))
    return found


def test_a_pair_is_found_where_no_product_by_itself_says_how_large_a_class_is() -> None:
    """All products together do. Of two columns of two values a quarter of the noise is left."""
    _, products = table()
    noise = products[0].max() / 2  # of the constant with itself, in the larger class
    chosen = chosen_with(noise)
    assert sum(TOGETHER in pairs for pairs in chosen) > 0.9 * DRAWS


def test_where_nothing_is_known_no_place_is_better_than_another() -> None:
    """All is noise: every draw has ten pairs of its own, and none is divided by nothing."""
    chosen = chosen_with(1.0, signal=0.0)
    assert len({tuple(pairs) for pairs in chosen}) == DRAWS
    assert {len(pairs) for pairs in chosen} == {10}
    assert list(range(10)) not in chosen
    # As large as its noise is a class at least; and of tables in which nothing is seen the small
    # ones come first, since noise is the least part of their counts.
    parts, products = table()
    narrow = {n for n, pair in enumerate(PAIRS) if all(name.startswith("narrow") for name in pair)}
    assert len(narrow) == 6
    assert narrow < set(select_pairs(parts, SCHEMA, np.zeros_like(products), 1.0, 10))


def test_a_class_of_which_hardly_anything_is_known_has_no_say() -> None:
    parts, products = table()
    noise = products[0].min() / 10
    drawn = np.random.default_rng(0).normal(0, noise, products.shape)
    other = np.random.default_rng(1).normal(0, noise, products.shape) * [0, 1]
    found = [select_pairs(parts, SCHEMA, products + n, noise, 10) for n in (drawn, drawn + other)]
    assert found[0] == found[1]


def test_without_noise_nothing_is_divided_by_it_and_all_may_be_chosen() -> None:
    parts, products = table()
    assert select_pairs(parts, SCHEMA, products, 0.0, 1) == [TOGETHER]
    assert select_pairs(parts, SCHEMA, products * [1, 0], 0.0, 1) == [TOGETHER]
    assert select_pairs(parts, SCHEMA, products, 0.0, 1000) == list(range(len(PAIRS)))


def test_the_size_of_a_class_is_read_off_with_the_noise_that_is_said() -> None:
    """Chances are below 1e-8 that the deviation of so many draws is off by six standard errors."""
    parts, products = table()
    assert parts.moments is not None
    square = CONSTANT**2 + INDICATOR**2 * (WIDE + NARROW)  # of every record
    shares, deviation = selection._of_size(parts.moments)
    for column, records in zip(products.T, (ROWS - RARE, RARE), strict=True):
        found = float((shares * column.reshape(shares.shape)).sum())
        assert found == pytest.approx(records / square, rel=1e-6)
    draws = np.random.default_rng(0).normal(size=(1000, shares.size)) @ shares.ravel()
    assert np.mean(draws**2) / deviation**2 == pytest.approx(1, abs=6 * (2 / 1000) ** 0.5)
    alone = CONSTANT**-2  # if the constant with itself were all
    assert deviation < alone / 5


SIDES = (MarginalColumn(0, 1, 3, -1), MarginalColumn(1, 1, 4, -1), MarginalColumn(2, 1, 3, 5))
TABLES = [MarginalGroup((SIDES[0], SIDES[1])), MarginalGroup((SIDES[0], SIDES[2]))]


def counts_of_tables(records: int) -> NDArray[np.int64]:
    """Of two classes: columns of the first go together, those of the second do not."""
    random = np.random.default_rng(0)
    rows, columns = random.dirichlet(np.full(3, 9.0)), random.dirichlet(np.full(4, 9.0))
    apart = np.outer(rows, columns)
    together = apart.copy()
    together[:2, :2] += 0.05 * np.array([[1, -1], [-1, 1]])
    both = np.stack([together, apart], axis=-1).reshape(12, 2)
    found: NDArray[np.int64] = np.rint(records * np.concatenate([both, both])).astype(np.int64)
    return found


def test_dependence_without_noise_is_that_of_the_table() -> None:
    """Pearson's, as for any contingency table."""
    cells = counts_of_tables(10**9)
    table = cells[:12, 0].reshape(3, 4)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    phi = ((table - expected) ** 2 / expected).sum() / table.sum()
    for found in dependences(TABLES, cells, 0.0):
        assert found.squares == pytest.approx([phi, 0], abs=1e-6)
        assert found.variances == pytest.approx([0, 0])


HALVES = MarginalGroup(
    (
        MarginalColumn(0, 1, 64, -1, merged=(0, 9)),
        MarginalColumn(1, 1, 64, 2, merged=(0, 30)),
    ),
    folded=True,
)


def folded_counts(records: int, first: float, second: float, beyond: float) -> NDArray[np.int64]:
    """Of one class, of which a tenth lacks the second number."""
    same = first * second + (1 - first) * (1 - second) + 2 * beyond
    shares = np.array([0.9 * same, 0.9 * (1 - same), 0.1])
    counts: NDArray[np.int64] = np.rint(records * shares[:, None]).astype(np.int64)
    return counts


@pytest.mark.parametrize(("first", "second"), [(0.5, 0.5), (0.9, 0.8), (0.3, 0.9)])
@pytest.mark.parametrize("beyond", [0.0, 0.01, -0.01])
def test_a_folded_table_says_the_same_however_frequent_parts_are(
    first: float, second: float, beyond: float
) -> None:
    """Numbers that both are mostly 0 are in the same part mostly, and need not go together."""
    halves = dict(zip(HALVES.sides, (first, second), strict=True))
    cells = folded_counts(10**9, first, second, beyond)
    (found,) = dependences([HALVES], cells, 0.0, halves)
    phi = beyond**2 / (first * (1 - first) * second * (1 - second))
    assert found.squares == pytest.approx([phi], abs=1e-7)
    assert found.variances == pytest.approx([0])


def test_noise_on_a_folded_table_is_taken_off_and_doubted() -> None:
    halves = dict(zip(HALVES.sides, (0.4, 0.7), strict=True))
    cells, noise = folded_counts(100_000, 0.4, 0.7, 0.0), 2_000.0
    random, drawn = np.random.default_rng(0), []
    for _ in range(2000):
        noisy = np.rint(cells + random.normal(0, noise, cells.shape)).astype(np.int64)
        (found,) = dependences([HALVES], noisy, noise, halves)
        drawn.append((float(found.squares[0]), float(found.variances[0])))
    squares, variances = np.array(drawn).T
    by_noise = 2 * (noise / 90_000) ** 2 / (16 * 0.24 * 0.21)
    assert abs(squares.mean()) < 0.1 * by_noise
    assert np.sqrt(variances.mean()) == pytest.approx(squares.std(), rel=0.15)


def test_dependence_is_estimated_without_bias_and_doubted_as_noise_is() -> None:
    """Of 2,000 draws, always the same."""
    cells, noise = counts_of_tables(100_000).astype(np.float64), 1500.0
    random = np.random.default_rng(1)
    exact = [found.squares for found in dependences(TABLES, cells.astype(np.int64), 0.0)]
    drawn, doubt = [], []
    for _ in range(2000):
        noisy = np.rint(cells + random.normal(0, noise, cells.shape)).astype(np.int64)
        found = list(dependences(TABLES, noisy, noise))
        drawn.append([each.squares for each in found])
        doubt.append([each.variances for each in found])
    means, deviations = np.mean(drawn, axis=0), np.std(drawn, axis=0)
    # Expected shares have noise as well: of what it makes, a little is left.
    by_noise = (1 - 1 / 3) * (1 - 1 / 4) * 144 * (noise / 100_000) ** 2
    assert np.abs(means[:, 1]).max() < 0.08 * by_noise
    assert means[:, 0] == pytest.approx(np.array(exact)[:, 0], rel=0.03)
    of_none = np.sqrt(np.mean(doubt, axis=0))[:, 1]
    assert of_none == pytest.approx(deviations[:, 1], rel=0.25)


def test_tables_of_numbers_point_to_pairs_that_products_do_not_show() -> None:
    parts, products = table()
    other = PAIRS.index(("wide3", "wide7"))
    nothing = Dependence(np.zeros(2), np.zeros(2))
    much = Dependence(np.array([5.0, 5.0]), np.zeros(2))
    for together, expected in (({other: much}, other), ({other: nothing}, TOGETHER)):
        assert select_pairs(parts, SCHEMA, products, 0.0, 1, together) == [expected]
    doubted = {other: Dependence(np.array([5.0, 5.0]), np.full(2, 100.0))}
    assert select_pairs(parts, SCHEMA, products, 0.0, 1, doubted) == [TOGETHER]
