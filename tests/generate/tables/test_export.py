"""The file of a generator of rows: each part is stored under its own names, and read back whole.

And that of its rows, which is written part by part.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file

from dpntk.common.errors import GeneratorError
from dpntk.embed import FeatureOptions
from dpntk.generate import load_generator
from dpntk.generate.tables import export
from dpntk.generate.tables.export import SavedTableGenerator, write_csv, write_table
from dpntk.generate.tables.levels import Levels
from dpntk.generate.tables.marginals import (
    ColumnMarginal,
    marginals_from_arrays,
    marginals_to_arrays,
)
from dpntk.generate.tables.refinement import Refinement
from dpntk.generate.tables.reweighting import Reweighting
from dpntk.generate.tables.sampling import sample_rows
from tests.helpers.tables import PEOPLE, random_generator, random_marginals

SHARES = np.array([0.5, 0.5])


@pytest.fixture
def reweighting() -> Reweighting:
    feature_map, _ = FeatureOptions(width="2").prepare(PEOPLE)
    theta = np.random.default_rng(0).normal(size=(2, feature_map.dimension)).astype(np.float32)
    return Reweighting(feature_map, theta, np.array([1, 2]), np.array([False, True]))


def with_random_levels(marginals: tuple[ColumnMarginal, ...]) -> tuple[ColumnMarginal, ...]:
    """Of the second column, which is numeric."""
    age, pay, *others = marginals
    parts = np.random.default_rng(0).random((2, 256))
    return age, replace(pay, levels=Levels(pay.block, pay.points, *parts)), *others


@pytest.fixture
def saved(reweighting: Reweighting) -> SavedTableGenerator:
    mean, noise = -reweighting.theta, np.array([0.1, 0.2])
    refinement = Refinement(reweighting.feature_map, PEOPLE, mean, noise)
    marginals = with_random_levels(random_marginals(PEOPLE, 0))
    generator = random_generator(PEOPLE)
    return SavedTableGenerator(generator, SHARES, marginals, {}, reweighting, refinement)


def test_parts_stand_under_the_names_that_earlier_files_have(
    saved: SavedTableGenerator, tmp_path: Path
) -> None:
    write_table(tmp_path / "s", saved, sample_rows(saved.generator, 2, SHARES, 0), {})
    stored = load_file(tmp_path / "s" / "generator.safetensors")
    parts = {name for name in stored if name.startswith(("marginals.", "tilting.", "arrangement."))}
    assert set(stored) - parts == set(saved.generator.state_dict())
    of_map = {f"tilting.map.{name}" for name in saved.reweighting.feature_map.weights()}  # type: ignore[union-attr]
    assert parts == of_map | {
        *(f"marginals.{number}" for number in range(len(saved.marginals))), "marginals.noise",
        "marginals.1.levels",
        "tilting.theta", "tilting.candidates", "tilting.pooled",
        "arrangement.mean", "arrangement.noise",
    }  # fmt: skip

    again = load_generator(tmp_path / "s")
    assert isinstance(again, SavedTableGenerator)
    for one, other in zip(saved.marginals, again.marginals, strict=True):
        assert one.block == other.block
        assert np.array_equal(one.shares, other.shares)
        assert np.array_equal(one.noise, other.noise)
        assert (one.levels is None) == (other.levels is None)
        if one.levels is not None and other.levels is not None:
            assert np.array_equal(one.levels.shares, other.levels.shares)
            assert np.array_equal(one.levels.spikes, other.levels.spikes)
    for name in ("reweighting", "refinement"):
        before, after = getattr(saved, name).to_arrays(), getattr(again, name).to_arrays()
        assert before.keys() == after.keys()
        assert all(np.array_equal(before[part], after[part]) for part in before)


def test_arrays_that_are_no_part_are_refused(saved: SavedTableGenerator) -> None:
    """They would be left over, and whatever they are for would be missing."""
    reweighting, refinement = saved.reweighting, saved.refinement
    assert reweighting is not None
    assert refinement is not None
    more = {"other": np.zeros(2)}
    with pytest.raises(GeneratorError, match="contradict"):
        marginals_from_arrays(marginals_to_arrays(saved.marginals, PEOPLE) | more, PEOPLE)
    spec = reweighting.feature_map.spec()
    with pytest.raises(GeneratorError, match="do not fit"):
        Reweighting.from_arrays(reweighting.to_arrays() | more, spec, PEOPLE)
    with pytest.raises(GeneratorError, match="do not fit"):
        Refinement.from_arrays(refinement.to_arrays() | more, refinement.feature_map, PEOPLE)


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((2, 255)),
        np.zeros((3, 256)),
        np.zeros((2, 256), dtype=np.float32),
        np.full((2, 256), -1.0),
        np.full((2, 256), 2.0),
        np.full((2, 256), np.nan),
    ],
)
def test_levels_that_cannot_be_are_refused(
    saved: SavedTableGenerator, wrong: NDArray[np.float64]
) -> None:
    arrays = marginals_to_arrays(saved.marginals, PEOPLE)
    with pytest.raises(GeneratorError, match="contradict"):
        marginals_from_arrays(arrays | {"1.levels": wrong}, PEOPLE)
    with pytest.raises(GeneratorError, match="contradict"):  # of categories
        marginals_from_arrays(arrays | {"2.levels": arrays["1.levels"]}, PEOPLE)


def test_shares_without_noise_are_no_generator(saved: SavedTableGenerator, tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        marginals_from_arrays({"0": saved.marginals[0].shares}, PEOPLE)
    assert marginals_from_arrays({}, PEOPLE) == ()
    without = replace(saved, marginals=(), reweighting=None, refinement=None)
    write_table(tmp_path / "s", without, sample_rows(saved.generator, 2, SHARES, 0), {})
    again = load_generator(tmp_path / "s")
    assert isinstance(again, SavedTableGenerator)
    assert (again.marginals, again.reweighting, again.refinement) == ((), None, None)


def test_a_long_table_is_written_without_holding_all_its_texts(
    saved: SavedTableGenerator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has the same bytes, however many rows of it are texts at a time."""
    table = sample_rows(saved.generator, 4_050, SHARES, 0)
    written, peaks = [], []
    for at_once in (10_000, 100):
        monkeypatch.setattr(export, "_WRITTEN_AT_ONCE", at_once)
        tracemalloc.start()
        write_csv(table, PEOPLE, tmp_path / "table.csv")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        written.append((tmp_path / "table.csv").read_bytes())
    assert written[0] == written[1]
    assert written[0].count(b"\n") == 1 + table.num_rows
    assert peaks[1] < peaks[0] / 5
