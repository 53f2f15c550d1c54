"""Random Fourier features: right, exact, and the same for the generator."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.errors import SchemaError
from dpntk.common.features.base import weights_digest
from dpntk.common.features.registry import feature_map_from_spec
from dpntk.common.features.rff import RandomFourierFeatures
from dpntk.embed.exact.grid import Grid
from dpntk.embed.exact.rff import ExactRFF
from dpntk.release import open_release
from tests.conftest import CLASSES, SIDE, Command, draw_records
from tests.helpers.sums import (
    require_the_kernel_of,
    require_the_noise_to_cover,
    require_the_same_sums_in_any_order,
    sums_of,
)

MAP = RandomFourierFeatures.draw(SIDE * SIDE, frequencies=40, length_scale=3.0, levels=255, seed=0)


def by_definition(records: NDArray[np.uint8]) -> NDArray[np.float64]:
    phases = 2 * np.pi * records.astype(np.float64) @ MAP.turns.astype(np.float64).T
    waves = np.concatenate([np.cos(phases), np.sin(phases)], axis=1)
    return waves / math.sqrt(MAP.frequencies)


def test_class_sums_equal_the_definition(grid: Grid) -> None:
    records, labels = draw_records(50)
    expected = by_definition(records).T @ np.eye(CLASSES)[labels]
    difference = np.abs(sums_of(MAP, grid, records, labels) * grid.unit - expected)
    # the phase is cut at 2^-20 turns
    assert difference.max() < 50 * 2 * math.pi * 2.0**-20 / math.sqrt(MAP.frequencies)


def in_whole_numbers(
    feature_map: RandomFourierFeatures, grid: Grid, records: NDArray[np.uint8]
) -> NDArray[np.int64]:
    """Features by the module's definition, with phases in integers, (b, d)."""
    units = (feature_map.turns.astype(np.float64) * 2**32).astype(np.int64)
    steps = (records.astype(np.int64) @ units.T) % 2**32 >> 12
    largest = (1 - 2.0**-40) * grid.units_per_one / math.sqrt(feature_map.frequencies)
    table = np.trunc(np.cos(np.arange(2**20) * (2 * np.pi / 2**20)) * largest).astype(np.int64)
    return np.concatenate([table[steps], table[(steps - 2**18) % 2**20]], axis=1)


@pytest.mark.parametrize("frequencies", [1, 7, 20_000])
@pytest.mark.parametrize("largest", [2**3, 2**24])
def test_every_bit_is_that_of_whole_numbers(grid: Grid, frequencies: int, largest: int) -> None:
    """With phases up to what float64 holds, of either sign, and of more than is in a cache."""
    random = np.random.default_rng(2)
    units = random.integers(-largest, largest, (frequencies, 60), endpoint=True)
    feature_map = RandomFourierFeatures((units / 2**32).astype(np.float32), levels=255)
    exact = ExactRFF(feature_map, grid, torch.device("cpu"))
    records = random.integers(0, 256, (min(60, exact.chunk_size), 60), dtype=np.uint8)
    made = exact.features(torch.from_numpy(records).double())
    expected = in_whole_numbers(feature_map, grid, records)
    assert np.array_equal(made.values.numpy(), expected)
    assert np.allclose(made.norms().numpy(), np.linalg.norm(expected.astype(float), axis=1))


def test_integer_features_are_no_longer_than_one_and_not_much_shorter(grid: Grid) -> None:
    records, labels = draw_records(40)
    for record, label in zip(records, labels, strict=True):
        feature = sums_of(MAP, grid, record[None], label[None])
        squared = sum(value * value for value in feature.ravel().tolist())
        assert 0.9999 * grid.units_per_one**2 <= squared <= grid.units_per_one**2


def test_records_in_opposite_phases_are_covered(grid: Grid) -> None:
    """Half a turn apart in every frequency: as far as two features can be."""
    feature_map = RandomFourierFeatures(np.full((3, 5), 2.0**-8, np.float32), levels=255)
    records = torch.tensor([[0] * 5, [128, 0, 0, 0, 0], [64] * 5, [255] * 5], dtype=torch.float64)
    written = ExactRFF(feature_map, grid, torch.device("cpu")).features(records).values.tolist()
    least = require_the_noise_to_cover(feature_map, grid, written)
    assert least == pytest.approx(-(grid.units_per_one**2), rel=1e-6)


def test_order_and_grouping_do_not_change_a_bit(grid: Grid) -> None:
    require_the_same_sums_in_any_order(MAP, grid, *draw_records(301))


def test_the_kernel_is_gaussian() -> None:
    many = RandomFourierFeatures.draw(
        SIDE * SIDE, frequencies=20_000, length_scale=3.0, levels=255, seed=1
    )
    records = draw_records(20)[0].astype(np.float64)
    phases = 2 * np.pi * records @ many.turns.astype(np.float64).T
    gram = np.cos(phases[:, None] - phases[None]).mean(axis=-1)
    distance = ((records[:, None] - records[None]) ** 2).sum(axis=-1) / 255**2
    assert np.abs(gram - np.exp(-distance / (2 * 3.0**2))).max() < 6 / math.sqrt(20_000)


def test_the_generator_sees_the_same_features() -> None:
    records, _ = draw_records(12)
    require_the_kernel_of(MAP, records, by_definition(records), within=1e-9)


def test_it_travels_in_the_release() -> None:
    again = feature_map_from_spec(MAP.spec(), MAP.weights())
    assert weights_digest(again) == weights_digest(MAP)
    for spec, weights in (
        ({**MAP.spec(), "frequencies": 41}, MAP.weights()),
        ({**MAP.spec(), "levels": 254.5}, MAP.weights()),
        ({**MAP.spec(), "features": "waves"}, MAP.weights()),
        (MAP.spec(), {}),
        (MAP.spec(), {"turns": MAP.turns * np.float32(1.001)}),
        (MAP.spec(), {"turns": MAP.turns * np.float32(2**20)}),
    ):
        with pytest.raises(SchemaError, match=r"^feature map: "):
            feature_map_from_spec(spec, weights)


def test_phases_that_float64_does_not_hold_exactly_are_refused() -> None:
    fast = np.full((1, 2**14), 2.0**-8, dtype=np.float32)  # 2^24 grid units for each level
    RandomFourierFeatures(fast, levels=255)
    with pytest.raises(SchemaError, match="could not be summed exactly"):
        RandomFourierFeatures(fast, levels=2**16 - 1)


def test_the_whole_path_with_it(dpntk: Command, folder: Path, tmp_path: Path) -> None:
    assert dpntk("embed", folder, "--features", "rff", "--frequencies", "30").code == 0
    assert dpntk("release", "--eps", "5", "--delta", "1e-3").code == 0
    released = open_release(tmp_path / "release.h5").release
    assert released.embedding.shape == (60, 3)
    assert released.guarantee.sensitivity == pytest.approx(2.0)
    assert "random Fourier features, 30 frequencies" in " ".join(dpntk("inspect").stdout.split())
    assert dpntk("generate", "--steps", "3", "-n", "30").code == 0
    refused = dpntk("embed", folder, "--features", "rff", "--front", "scattering", "-o", "other.h5")
    assert refused.code == 1
    assert "--front scattering: it goes with --features ntk, not rff" in refused.stderr
