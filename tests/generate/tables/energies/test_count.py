"""Columns of which a release says how they go together come back so, and noise makes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.features.joint import parts_of
from dpntk.common.features.marginals.map import GroupChoice, MarginalFeatures
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.encoding import blocks_of
from dpntk.common.schema.table import TableSchema
from dpntk.embed import SourceOptions, TangentOptions, embed
from dpntk.generate.tables.dependence.table_departures import ReleasedCounts
from dpntk.generate.tables.energies.count import CountEnergy
from dpntk.generate.tables.refinement import Refinement, refinement_of
from dpntk.release import PrivacyParameters
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.helpers.tables import PEOPLE, encoded_people

ROWS = 6000
PARITY = TableSchema(tuple(Column.boolean(name) for name in "abcd"), None).with_ranks()


def parity() -> NDArray[np.bool_]:
    """Three columns of which any two are independent, and the last is what the others say."""
    found = np.random.default_rng(0).integers(0, 2, (ROWS, 4)).astype(bool)
    found[:, 3] = found[:, 0] ^ found[:, 2]
    return found


def refined(values: NDArray[np.bool_], path: Path, pairs: Sequence[str], eps: float) -> Refinement:
    lines = ["a,b,c,d", *(",".join(str(bool(value)).lower() for value in row) for row in values)]
    path.write_text("\n".join(lines) + "\n")
    options = TangentOptions(width=10, pairs=tuple(pairs), marginals=0.6)
    made = embed(path, options, SourceOptions(schema=PARITY))
    found = refinement_of(unrecorded_release(made, PrivacyParameters(eps, 1e-5)))
    assert found is not None
    return found


def encoded(values: NDArray[np.bool_]) -> NDArray[np.float32]:
    columns = [block.encode(values[:, n]) for n, block in enumerate(blocks_of(PARITY))]
    return (np.concatenate(columns, axis=1) / np.float32(255)).astype(np.float32)


def read(rows: NDArray[np.float32]) -> NDArray[np.bool_]:
    return np.stack([rows[:, block.first] > 0.5 for block in blocks_of(PARITY)], axis=1)


def kept(values: NDArray[np.bool_]) -> float:
    """How many rows have the parity that all records have."""
    return float((values[:, 0] ^ values[:, 2] == values[:, 3]).mean())


def test_rows_get_what_three_columns_have_together(tmp_path: Path) -> None:
    """Rows begin with independent columns; no pair of them says anything."""
    values = parity()
    assert kept(values) == 1
    apart = encoded(np.random.default_rng(1).permuted(values, axis=0))
    assert kept(read(apart)) < 0.53
    refinement = refined(values, tmp_path / "a.csv", ["a,c,d", "a,b"], 20.0)
    random = np.random.default_rng(2)
    drawn = refinement.draw(0, 4000, lambda label, count: apart[:count].copy(), random)
    assert kept(read(drawn)) > 0.95
    assert np.sort(drawn, axis=0) == pytest.approx(np.sort(apart[:4000], axis=0))


def test_noise_alone_makes_nothing_go_together(tmp_path: Path) -> None:
    """Where noise on a share is above 1, no cell has a coefficient that would move a row."""
    values = np.random.default_rng(0).integers(0, 2, (ROWS, 4)).astype(bool)
    refinement = refined(values, tmp_path / "a.csv", ["a,c,d", "a,b"], 0.0005)
    counts = refinement.goal(0).counts
    assert counts is not None
    assert (counts.noise > 1).all()
    rows = torch.from_numpy(encoded(values))
    energy = CountEnergy(counts, rows)
    for _ in range(20):
        energy.learn(rows)
    pairs = torch.arange(len(rows) // 2)
    gains = [energy.swap_gains(rows).gain(block, pairs) for block in blocks_of(PARITY)]
    # A coefficient is the noise over its variance: so small, and the less, the more noise there is.
    assert max(float(torch.as_tensor(gain).abs().max()) for gain in gains) < 30 / counts.noise.min()


def test_gains_are_differences_of_the_energy_and_cells_follow(tmp_path: Path) -> None:
    """Against cells counted anew by the feature map, of numbers and categories, missing or not.

    A pair of numbers is there twice, its cells merged in two ways.
    """
    groups = [("age", "pay"), ("town", "age", "grade")]
    features = MarginalFeatures.of(PEOPLE, groups=groups, fine=True)
    numbers = [column for column in features.columns if column.cells]
    coarse = GroupChoice([0], 0.3, {each: replace(each, merged=(0, 9, 40)) for each in numbers})
    fine = GroupChoice([0, 1], 0.5, {numbers[1]: replace(numbers[1], merged=(0, 1, 30))})
    features = features.choosing(fine, coarse)
    random = np.random.default_rng(0)
    tables = (*features.coarse, *features.groups)
    cells = sum(group.dimension for group in tables)
    rows = encoded_people(12, random)
    released = ReleasedCounts(tables, 255, random.random(cells), np.array([1e-3, 2e-3, 3e-3]))
    energy = CountEnergy(released, rows)
    energy.learn(rows)
    gains = energy.swap_gains(rows)
    columns = sum(column.dimension for column in features.columns)

    def places(rows: torch.Tensor) -> torch.Tensor:
        """Of the groups alone."""
        return features.hits((rows * 255).round())[:, len(features.columns) :] - columns

    assert torch.equal(energy.cells(energy.codes(rows)).T, places(rows))
    value = energy.coefficients
    for column in (0, 3, 1, 2, 0):
        block = blocks_of(PEOPLE)[column]
        then = rows.clone()
        then[:6, block.place], then[6:, block.place] = rows[6:, block.place], rows[:6, block.place]
        change = (value[places(then)] - value[places(rows)]).sum(dim=1).view(2, 6).sum(dim=0)
        pairs = torch.tensor([5, 0, 3, 2])
        gain = torch.as_tensor(gains.gain(block, pairs))
        assert torch.allclose(gain, change[pairs], atol=1e-4)
        chosen = torch.tensor([0, 3, 5])
        both = torch.cat([chosen, chosen + 6])
        rows[both, block.place] = then[both, block.place]
        gains.accept(block, chosen)


def test_shares_are_those_of_the_release(tmp_path: Path) -> None:
    """With next to no noise, what is read off a release is how often records have each cell."""
    values = parity()
    refinement = refined(values, tmp_path / "a.csv", ["d,a,c"], 4e4)
    made = refinement.goal(0).counts
    assert made is not None
    code = values[:, [0, 2, 3]] @ np.array([4, 2, 1])
    assert made.shares[-8:] == pytest.approx(np.bincount(code, minlength=8) / ROWS, abs=2e-3)
    marginals = parts_of(refinement.feature_map).marginals
    assert marginals is not None
    assert made.tables == (*marginals.coarse, *marginals.groups)


SIZES = TableSchema(
    tuple(
        Column.continuous(name, 0.0, upper)
        for name, upper in (
            ("weight", 60.0),
            ("price", 60_000.0),
            ("length", 40.0),
            ("width", 60.0),
        )
    ),
    None,
)


def sizes(count: int) -> NDArray[np.float64]:
    """Of things that are mostly small: all follow from one another, far from the upper bounds."""
    random = np.random.default_rng(0)
    length = np.exp(random.normal(1.0, 0.3, count))
    weight = length**3 / 25 * np.exp(random.normal(0, 0.03, count))
    price = 800 * weight**1.6 * np.exp(random.normal(0, 0.15, count))
    width = length * np.exp(random.normal(0, 0.02, count))
    return np.stack([weight, price, length, width], axis=1)


def encoded_sizes(values: NDArray[np.float64]) -> NDArray[np.float32]:
    columns = [block.encode(values[:, n]) for n, block in enumerate(blocks_of(SIZES))]
    return (np.concatenate(columns, axis=1) / np.float32(255)).astype(np.float32)


def rank_correlations(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    numbers = [rows[:, block.first] for block in blocks_of(SIZES)]
    ranks = np.argsort(np.argsort(numbers, axis=1), axis=1)
    every = np.asarray(np.corrcoef(ranks), dtype=np.float64)
    found: NDArray[np.float64] = every[np.triu_indices(4, 1)]
    return found


def test_skewed_numbers_between_wide_bounds_come_back_together(tmp_path: Path) -> None:
    """Nearly all of each lies in one or two of twenty equal parts of its range."""
    values = sizes(20_000)
    lines = ["weight,price,length,width", *(",".join(f"{x:.4f}" for x in row) for row in values)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    made = embed(tmp_path / "a.csv", TangentOptions(width=20), SourceOptions(schema=SIZES))
    refinement = refinement_of(unrecorded_release(made, PrivacyParameters(1.0, 1e-5)))
    assert refinement is not None
    rows = encoded_sizes(values)
    assert rank_correlations(rows).min() > 0.9
    random = np.random.default_rng(1)
    apart = encoded_sizes(random.permuted(values, axis=0))
    assert np.abs(rank_correlations(apart)).max() < 0.05
    drawn = refinement.draw(0, 4000, lambda label, count: apart[:count].copy(), random)
    assert rank_correlations(drawn).min() > 0.85


def test_rows_begin_as_pairs_along_a_tree_say() -> None:
    """Of three columns in a circle the two pairs that say most; columns keep their values."""
    features = MarginalFeatures.of(
        PEOPLE, groups=[("age", "pay"), ("pay", "grade"), ("age", "grade")]
    )
    random = np.random.default_rng(0)
    grade = random.integers(0, 3, 4000)
    age, pay = (
        20 + 25 * grade + random.integers(0, 5, 4000),
        10.0 ** (grade + random.random(4000) / 5),
    )
    columns = {"age": age, "pay": pay, "grade": grade, "town": random.integers(0, 3, 4000)}
    blocks = blocks_of(PEOPLE)
    encoded_ = [block.encode(columns[block.column.name]) for block in blocks]
    true = torch.from_numpy(np.concatenate(encoded_, axis=1)).float() / 255
    shares = np.zeros(features.dimension)
    np.add.at(shares, features.hits((true * 255).round()).numpy(), 1 / 4000)
    tables = features.places[len(features.columns)].start
    apart = true.clone()
    for block in blocks:
        apart[:, block.place] = true[torch.from_numpy(random.permutation(4000))][:, block.place]
    released = ReleasedCounts(features.groups, 255, shares[tables:], np.full(3, 1e-6))
    energy = CountEnergy(released, apart)
    rows = apart.clone()
    energy.initialise(rows, blocks, random)
    for block in blocks:
        before, after = (each[:, block.place].sum(dim=1).sort().values for each in (apart, rows))
        assert torch.equal(before, after)
    wanted = torch.from_numpy(shares[tables:])
    off = (energy.shares(rows) - wanted).abs()
    before_ = (energy.shares(apart) - wanted).abs().sum()
    assert float(before_) > 2.0
    assert float(off.sum()) < 0.3
    # The town is in no pair, and stays where it was.
    town = blocks[3].place
    assert torch.equal(rows[:, town], apart[:, town])
    assert float(energy.coefficients.abs().max()) < 100
