"""The file of a generator of rows: each part is stored under its own names, and read back whole.

And that of its rows, which is written part by part.
"""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from dpntk.common.errors import GeneratorError
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions
from dpntk.generate import load_generator
from dpntk.generate.tables import export
from dpntk.generate.tables.export import SavedTableGenerator, write_csv, write_table
from dpntk.generate.tables.marginals.levels import Levels
from dpntk.generate.tables.marginals.released import (
    ColumnMarginal,
    marginals_from_arrays,
    marginals_to_arrays,
)
from dpntk.generate.tables.refinement import Refinement
from dpntk.generate.tables.reweighting import Reweighting
from dpntk.generate.tables.sampling import RowModel, draw_rows
from tests.helpers.tables import PEOPLE, random_generator, random_marginals

SHARES = np.array([0.5, 0.5])


@pytest.fixture
def reweighting() -> Reweighting:
    feature_map, _ = TangentOptions(width="2").prepare(PEOPLE)
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
    model = RowModel(PEOPLE, generator, marginals, reweighting, refinement)
    return SavedTableGenerator(model, SHARES, {})


@pytest.fixture
def two_rows(saved: SavedTableGenerator) -> pa.Table:
    return draw_rows(RowModel(PEOPLE, saved.model.generator), 2, SHARES, 0).table


def test_parts_stand_under_the_names_that_earlier_files_have(
    saved: SavedTableGenerator, two_rows: pa.Table, tmp_path: Path
) -> None:
    model = saved.model
    assert model.generator is not None
    assert model.reweighting is not None
    write_table(tmp_path / "s", saved, two_rows, {})
    stored = load_file(tmp_path / "s" / "generator.safetensors")
    parts = {name for name in stored if name.startswith(("marginals.", "tilting.", "arrangement."))}
    assert set(stored) - parts == set(model.generator.state_dict())
    of_map = {
        f"{part}.map.{name}"
        for part in ("tilting", "arrangement")
        for name in model.reweighting.feature_map.weights()
    }
    assert parts == of_map | {
        *(f"marginals.{number}" for number in range(len(model.marginals))), "marginals.noise",
        "marginals.1.levels",
        "tilting.theta", "tilting.candidates", "tilting.pooled",
        "arrangement.mean", "arrangement.noise",
    }  # fmt: skip

    again = load_generator(tmp_path / "s")
    assert isinstance(again, SavedTableGenerator)
    for one, other in zip(model.marginals, again.model.marginals, strict=True):
        assert one.block == other.block
        assert np.array_equal(one.shares, other.shares)
        assert np.array_equal(one.noise, other.noise)
        assert (one.levels is None) == (other.levels is None)
        if one.levels is not None and other.levels is not None:
            assert np.array_equal(one.levels.shares, other.levels.shares)
            assert np.array_equal(one.levels.spikes, other.levels.spikes)
    for name in ("reweighting", "refinement"):
        before, after = getattr(model, name).to_arrays(), getattr(again.model, name).to_arrays()
        assert before.keys() == after.keys()
        assert all(np.array_equal(before[part], after[part]) for part in before)


def test_arrays_that_are_no_part_are_refused(saved: SavedTableGenerator) -> None:
    """They would be left over, and whatever they are for would be missing."""
    reweighting, refinement = saved.model.reweighting, saved.model.refinement
    assert reweighting is not None
    assert refinement is not None
    more = {"other": np.zeros(2)}
    with pytest.raises(GeneratorError, match="contradict"):
        marginals_from_arrays(marginals_to_arrays(saved.model.marginals, PEOPLE) | more, PEOPLE)
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
    arrays = marginals_to_arrays(saved.model.marginals, PEOPLE)
    with pytest.raises(GeneratorError, match="contradict"):
        marginals_from_arrays(arrays | {"1.levels": wrong}, PEOPLE)
    with pytest.raises(GeneratorError, match="contradict"):  # of categories
        marginals_from_arrays(arrays | {"2.levels": arrays["1.levels"]}, PEOPLE)


def test_shares_without_noise_are_no_generator(
    saved: SavedTableGenerator, two_rows: pa.Table, tmp_path: Path
) -> None:
    with pytest.raises(KeyError):
        marginals_from_arrays({"0": saved.model.marginals[0].shares}, PEOPLE)
    assert marginals_from_arrays({}, PEOPLE) == ()
    without = replace(saved, model=RowModel(PEOPLE, saved.model.generator))
    write_table(tmp_path / "s", without, two_rows, {})
    again = load_generator(tmp_path / "s")
    assert isinstance(again, SavedTableGenerator)
    assert again.model.marginals == ()
    assert (again.model.reweighting, again.model.refinement) == (None, None)


@pytest.fixture
def of_columns(saved: SavedTableGenerator) -> SavedTableGenerator:
    """Rows are put together from columns without noise, and no network has a say in them."""
    random = np.random.default_rng(0)
    marginals = tuple(
        replace(one, shares=random.dirichlet(np.ones(one.shares.shape[1]), 2), noise=np.zeros(2))
        for one in saved.model.marginals
    )
    model = RowModel(PEOPLE, None, marginals, refinement=saved.model.refinement)
    return replace(saved, model=model)


@pytest.mark.usefixtures("hasty_rows")
def test_without_a_network_its_file_holds_none(
    of_columns: SavedTableGenerator, tmp_path: Path
) -> None:
    rows = of_columns.draw(1_000, 0).table
    write_table(tmp_path / "s", of_columns, rows, {})
    stored = load_file(tmp_path / "s" / "generator.safetensors")
    assert {name.split(".")[0] for name in stored} == {"marginals", "arrangement"}
    again = load_generator(tmp_path / "s")
    assert isinstance(again, SavedTableGenerator)
    assert again.draw(1_000, 0).table.equals(rows)


@pytest.mark.usefixtures("hasty_rows")
def test_an_earlier_file_holds_a_network_that_has_no_say(
    saved: SavedTableGenerator, of_columns: SavedTableGenerator, two_rows: pa.Table, tmp_path: Path
) -> None:
    """And the feature map among what chose among its rows, of which there was no choice either."""
    earlier = replace(saved, model=replace(saved.model, marginals=of_columns.model.marginals))
    write_table(tmp_path / "s", earlier, two_rows, {})
    path = tmp_path / "s" / "generator.safetensors"
    stored = load_file(path)
    with safe_open(path, "numpy") as file:
        description = json.loads(file.metadata()["dpntk"])
    del description["arrangement"]
    for name in [name for name in stored if name.startswith("arrangement.map.")]:
        del stored[name]
    save_file(stored, path, {"dpntk": json.dumps(description)})
    again = load_generator(path)
    assert isinstance(again, SavedTableGenerator)
    assert again.draw(1_000, 0).table.equals(of_columns.draw(1_000, 0).table)


def test_a_file_without_what_rows_are_made_from_is_refused(
    of_columns: SavedTableGenerator, tmp_path: Path
) -> None:
    write_table(tmp_path / "s", of_columns, of_columns.draw(2, 0).table, {})
    path = tmp_path / "s" / "generator.safetensors"
    whole = load_file(path)
    with safe_open(path, "numpy") as file:
        said = file.metadata()
    description = json.loads(said["dpntk"])
    del description["arrangement"]
    of_no_features = {"dpntk": json.dumps(description)}
    without = {name: array for name, array in whole.items() if not name.startswith("arrangement.")}
    unmapped = {name: array for name, array in whole.items() if ".map." not in name}
    noisy = whole | {"marginals.noise": np.full(2, 0.1)}
    for stored, says, message in (
        (without, said, "nothing that its rows could be made from"),
        (noisy, said, "nothing that its rows could be made from"),
        (whole | {"by_class": np.zeros(2, np.float32)}, said, "weights do not fit"),
        (whole, of_no_features, "do not fit"),
        (unmapped, of_no_features, "cannot be arranged"),
    ):
        save_file(stored, path, says)
        with pytest.raises(GeneratorError, match=message):
            load_generator(path)


def test_a_long_table_is_written_without_holding_all_its_texts(
    saved: SavedTableGenerator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has the same bytes, however many rows of it are texts at a time."""
    table = draw_rows(RowModel(PEOPLE, saved.model.generator), 4_050, SHARES, 0).table
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


@pytest.mark.parametrize("names", [("\ufeff",), ("\ufeffa", "b")])
def test_a_name_that_begins_with_a_byte_order_mark_is_read_back(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    schema = TableSchema(tuple(Column.integer(name, 0, 9) for name in names))
    table = pa.table({name: [1, 2, 3] for name in names})
    write_csv(table, schema, tmp_path / "table.csv")
    assert len(open_source(tmp_path / "table.csv", SourceOptions(schema=schema))) == 3
