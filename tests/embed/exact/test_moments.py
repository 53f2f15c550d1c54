"""Products of numbers: exact, no longer than their share of 1, never at odds with one another."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.errors import SchemaError
from dpntk.common.features.joint import JointFeatures, parts_of
from dpntk.common.features.moments import STEPS, MomentFeatures
from dpntk.common.features.registry import feature_map_from_spec
from dpntk.common.sources import SourceOptions, open_source
from dpntk.embed import FeatureOptions, embed
from dpntk.embed.exact.grid import Grid
from dpntk.embed.exact.joint import ExactJoint, ExactMoments
from tests.helpers.tables import PEOPLE, people

CPU = torch.device("cpu")
GRID = Grid.for_capacity(255, 1 << 20)
WEIGHT = 0.3


def moments() -> MomentFeatures:
    found = MomentFeatures.of(PEOPLE)
    assert found is not None
    return found


def records_of(path: Path) -> NDArray[np.uint8]:
    path.write_text(people(300))
    (batch,) = open_source(path, SourceOptions(schema=PEOPLE)).batches(300)
    return batch.records


def exact(records: NDArray[np.uint8], rows: slice = slice(None)) -> NDArray[np.int64]:
    """The sum over rows, (k, k)."""
    made = ExactMoments(moments(), GRID, CPU, WEIGHT).features(torch.from_numpy(records).double())
    column = torch.zeros(moments().dimension, dtype=torch.int64)
    made.add_to(column, rows)
    return column.numpy().reshape(moments().factors, -1)


def test_sums_are_those_of_products_of_numbers(tmp_path: Path) -> None:
    records = records_of(tmp_path / "a.csv")
    z = moments().steps(records) / STEPS
    expected = WEIGHT * z.T @ z / moments().factors * GRID.units_per_one
    found = exact(records)
    assert np.allclose(found, expected, rtol=1e-6)
    assert np.array_equal(found, found.T)
    parts = [exact(records, slice(start, start + 7)) for start in range(0, 300, 7)]
    assert np.array_equal(np.sum(parts, axis=0), found)


def test_no_record_is_longer_than_its_share_and_none_contradicts_another() -> None:
    """Whole numbers throughout: the corners of all records, and some between."""
    random = np.random.default_rng(0)
    size = PEOPLE.record_size
    corners = random.choice(np.array([0, 255], dtype=np.uint8), (200, size))
    between = random.integers(0, 256, (200, size), dtype=np.uint8)
    records = np.concatenate([corners, between, np.zeros((1, size), np.uint8)])
    single = [exact(records, slice(row, row + 1)).flatten().tolist() for row in range(len(records))]
    longest = int(WEIGHT * GRID.units_per_one) ** 2
    for one in single:
        assert sum(value * value for value in one) <= longest
    for one, other in itertools.pairwise(single):
        assert sum(a * b for a, b in zip(one, other, strict=True)) >= 0


def test_missing_numbers_take_no_part(tmp_path: Path) -> None:
    records = records_of(tmp_path / "a.csv")
    absent = [(n, place) for n, (_, place) in enumerate(moments().numbers) if place >= 0]
    assert absent
    for number, place in absent:
        gone = records[records[:, place] > 0]
        assert len(gone)
        assert not exact(gone)[1 + number].any()


def test_they_have_a_part_of_the_feature_by_default(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(people(200))
    made = embed(tmp_path / "a.csv", FeatureOptions(width=3), SourceOptions(schema=PEOPLE))
    parts = parts_of(made.feature_map)
    assert parts.moments == moments()
    assert parts.main_weight**2 + parts.weight**2 + parts.moment_weight**2 == pytest.approx(1)
    assert made.feature_map.dimension == parts.moment_place.stop
    without = FeatureOptions(width=3, moments=0.0).draw(PEOPLE)
    assert parts_of(without).moments is None
    # The constant's square counts the records of each class.
    ones = made.sums[parts.moment_place][0]
    assert np.allclose(ones / ones.sum(), made.counts / made.counts.sum())


def test_all_parts_together_are_no_longer_than_one(tmp_path: Path) -> None:
    feature_map = FeatureOptions(width=5).draw(PEOPLE)
    assert isinstance(feature_map, JointFeatures)
    records = torch.from_numpy(records_of(tmp_path / "a.csv")).double()
    norms = ExactJoint(feature_map, GRID, CPU).features(records).norms()
    assert float(norms.max()) <= GRID.units_per_one


def test_too_coarse_a_grid_is_refused() -> None:
    with pytest.raises(SchemaError, match="smaller --capacity"):
        ExactMoments(moments(), Grid.for_capacity(255, 1 << 37), CPU, 1e-6)


def test_a_spec_makes_the_map_again_and_a_false_one_none() -> None:
    feature_map = FeatureOptions(width=3).draw(PEOPLE)
    assert isinstance(feature_map, JointFeatures)
    spec, weights = feature_map.spec(), feature_map.weights()
    assert feature_map_from_spec(spec, weights).spec() == spec
    good = moments().spec()
    places = good["numbers"]
    for wrong in (
        {**good, "numbers": places[:1]},
        {**good, "numbers": [*places, places[0]]},
        {**good, "numbers": [[10**6, -1], *places[1:]]},
        {**good, "numbers": [[True, -1], *places[1:]]},
        {**good, "numbers": "all"},
        {**good, "levels": 7},
        {**good, "more": 1},
    ):
        with pytest.raises(SchemaError, match="products"):
            MomentFeatures.from_spec(wrong)
    for change in (
        {"moment_weight": 0.0},
        {"moment_weight": 0.95},
        {"moment_weight": 1},
        {"moment_weight": float("nan")},
        {"moments": None},
    ):
        with pytest.raises(SchemaError):
            feature_map_from_spec({**spec, **change}, weights)
    with pytest.raises(SchemaError, match="records of different sizes"):
        replace(feature_map, moments=replace(moments(), record_size=PEOPLE.record_size + 1))
