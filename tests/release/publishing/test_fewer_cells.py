"""Where noise would hide the cells of numbers, a release has fewer, as if it had always been so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpntk.common.adjacency import Adjacency
from dpntk.common.features.joint import parts_of
from dpntk.common.features.marginals.cells import CELLS, FEW_CELLS, nearest_cell
from dpntk.common.features.marginals.map import MarginalFeatures
from dpntk.embed import (
    Column,
    Embedding,
    SourceOptions,
    TableSchema,
    TangentOptions,
    embed,
    save_embedding,
)
from dpntk.generate import generate
from dpntk.release import PrivacyParameters, open_release, release
from dpntk.release.mechanism.gaussian import NoiseScale
from dpntk.release.publishing import fewer_cells, measurement
from dpntk.release.publishing.fewer_cells import added_up, of_few_cells, with_fewer_cells
from dpntk.release.publishing.lengths import is_undecided
from dpntk.release.publishing.parameters import noise_for
from dpntk.release.publishing.pipeline import unrecorded_release
from dpntk.release.publishing.plan import plan
from tests.helpers.neighbours import Integers

OPTIONS = TangentOptions(width=5)
SCHEMA = TableSchema(
    (
        Column.continuous("height", 0.0, 2.0, missing=True),
        Column.integer("age", 0, 90),  # each has a cell
        Column.continuous("pay", 0.0, 1e6, transform="log1p"),
        Column.categorical("ward", ["a", "b", "c"], missing=True),
        Column.boolean("ill", ["no", "yes"]),
    ),
    label="ill",
)


def rows(count: int, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    found = pd.DataFrame(
        {
            "height": random.beta(9, 2, count) * 2,
            "age": random.integers(0, 91, count),
            "pay": np.exp(random.normal(8, 2, count)).clip(0, 1e6),
            "ward": random.choice(["a", "b", "c"], count),
            "ill": random.choice(["no", "yes"], count),
        }
    )
    found.loc[random.random(count) < 0.1, ["height"]] = np.nan
    found.loc[random.random(count) < 0.1, ["ward"]] = None
    return found


def embedded(count: int = 300) -> Embedding:
    return embed(rows(count), OPTIONS, SourceOptions(SCHEMA))


def test_borders_of_fewer_cells_are_among_those_of_all() -> None:
    levels = np.arange(256)
    pairs = set(zip(nearest_cell(levels, CELLS), nearest_cell(levels, FEW_CELLS), strict=True))
    assert len(pairs) == CELLS


def test_sums_are_to_the_bit_those_of_an_embedding_with_fewer_cells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In columns, their levels and pairs; so they have its norm, and its guarantee."""
    made = embedded()
    before = made.feature_map
    assert is_undecided(before)
    after = of_few_cells(before)
    monkeypatch.setattr(vars(MarginalFeatures)["of"].__func__, "__defaults__", (FEW_CELLS,))
    direct = embedded()
    assert direct.feature_map.spec() == after.spec()
    np.testing.assert_array_equal(added_up(made.sums, before, after), direct.sums)


def test_only_much_noise_makes_them_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    made = embedded()
    found = []
    for epsilon in (30.0, 1.0, 0.2, 0.05):
        scale = noise_for(made, PrivacyParameters(epsilon, 1e-5))
        fewer = with_fewer_cells(made, scale, made.records)
        marginals = parts_of(fewer.feature_map).marginals
        assert marginals is not None
        height, age, pay, _ = marginals.columns
        assert age.cells == 91
        assert height.cells == pay.cells
        assert (fewer is made) == (height.cells == CELLS)
        found.append(height.cells)
    assert found == sorted(found, reverse=True)
    assert found[0] == CELLS
    assert found[-1] == FEW_CELLS


@pytest.mark.parametrize("adjacency", Adjacency)
def test_how_many_there_are_follows_from_noisy_counts_where_the_number_is_protected(
    adjacency: Adjacency, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(_: Integers, scale: NoiseScale) -> Integers:
        return np.array([10**6, 10**6]) * scale.count_weight

    monkeypatch.setattr(measurement, "noisy_counts", held)
    made = unrecorded_release(embedded(), PrivacyParameters(0.2, 1e-5, adjacency))
    marginals = parts_of(made.feature_map).marginals
    assert marginals is not None
    if adjacency is Adjacency.ADD_REMOVE:
        assert marginals.columns[0].cells == CELLS
    else:
        assert marginals.columns[0].cells == FEW_CELLS


@pytest.mark.parametrize("adjacency", Adjacency)
def test_a_release_has_them_and_rows_are_made_from_it(
    tmp_path: Path, adjacency: Adjacency, hasty_rows: None
) -> None:
    """A plan says the same; a reader accepts it."""
    made = embedded(500)  # by the noisy counts there are never 1,600, which have more cells
    parameters = PrivacyParameters(0.1, 1e-5, adjacency)
    save_embedding(made, tmp_path / "e.h5")
    release(tmp_path / "e.h5", tmp_path / "r.h5", parameters)
    marginals = parts_of(open_release(tmp_path / "r.h5").release.feature_map).marginals
    assert marginals is not None
    assert marginals.columns[0].cells == FEW_CELLS
    planned = plan(made.feature_map, made.grid, 2, made.records, parameters)
    if adjacency is Adjacency.REPLACE_ONE:
        of_plan = parts_of(planned.feature_map).marginals
        assert of_plan is not None
        assert of_plan.columns == marginals.columns
    found = generate(tmp_path / "r.h5", tmp_path / "s", count=50).records()
    assert len(found) == 50
    assert found["pay"].between(0, 1e6).all()


def test_means_of_many_numbers_in_few_rows_have_half_the_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random, names = np.random.default_rng(0), [f"c{number}" for number in range(60)]
    schema = TableSchema(tuple(Column.continuous(name, 0.0, 1.0) for name in names))
    centres = random.uniform(0.1, 0.9, 60)
    data = pd.DataFrame(random.normal(centres, 0.1, (800, 60)).clip(0, 1), columns=names)
    made = embed(data, OPTIONS, SourceOptions(schema))
    off = []
    for much in (fewer_cells.MUCH_NOISE, np.inf):
        monkeypatch.setattr(fewer_cells, "MUCH_NOISE", much)
        released = unrecorded_release(made, PrivacyParameters(1.0, 1e-5))
        noise = parts_of(released.feature_map).marginals
        assert noise is not None
        off.append(noise.noise_on_means(1.0))
    assert off[0] < 0.6 * off[1]
