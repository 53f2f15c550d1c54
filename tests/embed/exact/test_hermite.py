"""Hermite features: right, exact, and the same for the generator."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import eval_hermite

from dpntk.common.errors import SchemaError
from dpntk.common.features.base import weights_digest
from dpntk.common.features.hermite import HermiteFeatures, hermite
from dpntk.common.features.registry import feature_map_from_spec
from dpntk.embed.exact.grid import Grid
from dpntk.embed.exact.hermite import ExactHermite
from dpntk.release import open_release
from tests.conftest import CLASSES, SIDE, Command, draw_records
from tests.helpers.sums import (
    require_the_kernel_of,
    require_the_noise_to_cover,
    require_the_same_sums_in_any_order,
    sums_of,
)

MAP = HermiteFeatures.draw(SIDE * SIDE, levels=255, seed=0, order=6, pair_order=3)


def by_definition(records: NDArray[np.uint8]) -> NDArray[np.float64]:
    x = records / 255

    def term(c: int) -> NDArray[np.float64]:
        scale = (1 - MAP.rho**2) ** 0.25 * (MAP.rho / 2) ** (c / 2) / math.sqrt(math.factorial(c))
        bell = np.exp(-MAP.rho * x**2 / (1 + MAP.rho))
        values: NDArray[np.float64] = scale * eval_hermite(c, x) * bell
        return values

    terms = np.stack([term(c) for c in range(7)], axis=-1)
    first, second = MAP.pairs.astype(int).T
    products = terms[:, first, :4, None] * terms[:, second, None, :4]
    count = len(records)
    return np.concatenate(
        [
            terms.reshape(count, -1) / math.sqrt(2 * MAP.record_size),
            products.reshape(count, -1) / math.sqrt(2 * len(MAP.pairs)),
        ],
        axis=1,
    )


def test_the_series_is_the_gaussian_kernel() -> None:
    """Mehler's formula: with many terms, to rounding; and never above 1 when cut."""
    x = np.linspace(0, 1, 50)
    for rho in (0.3, 0.9):
        terms = hermite(x, 150, rho)
        expected = np.exp(-rho * (x[:, None] - x) ** 2 / (1 - rho**2))
        assert np.abs(terms @ terms.T - expected).max() < 1e-6
        for order in (1, 5, 20, 150):
            assert ((terms[:, : order + 1] ** 2).sum(axis=1) <= 1 + 1e-12).all()


def test_class_sums_equal_the_definition(grid: Grid) -> None:
    records, labels = draw_records(50)
    expected = by_definition(records).T @ np.eye(CLASSES)[labels]
    assert np.abs(sums_of(MAP, grid, records, labels) * grid.unit - expected).max() / 50 < 1e-11


WHOLE = HermiteFeatures.draw(64, levels=255, seed=0, order=15, pair_order=15, rho=0.1, pairs=20)
"""Of so many terms that they leave nothing of a norm of 1."""


@pytest.mark.parametrize(("feature_map", "least"), [(MAP, 0.8), (WHOLE, 1 - 1e-5)])
@pytest.mark.parametrize("capacity", [2**20, 10**9])
def test_integer_features_are_no_longer_than_one(
    feature_map: HermiteFeatures, least: float, capacity: int
) -> None:
    """Also on a grid so coarse that terms rounded to the nearest unit would make some longer."""
    grid = Grid.for_capacity(255, capacity)
    records, labels = draw_records(30)
    for record, label in zip(records, labels, strict=True):
        feature = sums_of(feature_map, grid, record[None], label[None])
        squared = sum(value * value for value in feature.ravel().tolist())
        assert least * grid.units_per_one**2 < squared <= grid.units_per_one**2


def test_order_and_grouping_do_not_change_a_bit(grid: Grid) -> None:
    require_the_same_sums_in_any_order(MAP, grid, *draw_records(201))


def test_non_negativity_is_found_out() -> None:
    """Rho 0.9 with nine terms falls below 0 for a dark and a bright value; the defaults do not."""
    assert HermiteFeatures.draw(64, levels=255, seed=0).nonnegative
    assert not HermiteFeatures.draw(64, levels=255, seed=0, order=20, rho=0.9).nonnegative
    assert not HermiteFeatures.draw(64, levels=5000, seed=0).nonnegative


@pytest.mark.parametrize(
    ("order", "pair_order", "rho", "opposed"),
    [(20, 8, 0.7, False), (60, 30, 0.9, False), (40, 8, 0.9, True), (8, 4, 0.9, True)],
    ids=["default", "both narrow", "pairs fall below 0", "single values fall below 0"],
)
def test_records_of_which_one_kernel_sees_more_are_covered(
    order: int, pair_order: int, rho: float, opposed: bool, grid: Grid
) -> None:
    """Each pair has the first value: where that alone stays, pairs differ like single values.

    Where the first value alone changes, single values hardly differ, and pairs do as much.
    """
    values, size = (0, 14, 96, 160, 255), 40
    pairs = np.array([(0, other) for other in range(1, size)], dtype=np.float32)
    feature_map = HermiteFeatures(pairs, size, 255, order, pair_order, rho)
    records = [[first] + [rest] * (size - 1) for first in values for rest in values]
    exact = ExactHermite(feature_map, grid, torch.device("cpu"))
    written = exact.features(torch.tensor(records, dtype=torch.float64)).values.tolist()
    least = require_the_noise_to_cover(feature_map, grid, written)
    assert (least < 0) == opposed
    assert feature_map.nonnegative != opposed


def test_a_grid_on_which_cuts_could_make_an_inner_product_negative_is_refused() -> None:
    small = Grid.for_capacity(255, 10**9)
    assert ExactHermite(MAP, small, torch.device("cpu")).chunk_size
    with pytest.raises(SchemaError, match="capacity of 100000000000 records: too many"):
        ExactHermite(MAP, Grid.for_capacity(255, 10**11), torch.device("cpu"))


def test_the_generator_sees_the_same_features() -> None:
    records, _ = draw_records(12)
    require_the_kernel_of(MAP, records, by_definition(records), within=1e-12)


def test_it_travels_in_the_release() -> None:
    again = feature_map_from_spec(MAP.spec(), MAP.weights())
    assert weights_digest(again) == weights_digest(MAP)
    assert again.dimension == MAP.dimension == 64 * 7 + 200 * 16
    outside = replace(MAP, record_size=100).spec()
    for spec, weights in (
        ({**MAP.spec(), "order": 6.0}, MAP.weights()),
        ({**MAP.spec(), "rho": 1.0}, MAP.weights()),
        ({**MAP.spec(), "order": 10**6}, MAP.weights()),
        ({**MAP.spec(), "more": 1}, MAP.weights()),
        (MAP.spec(), {}),
        (MAP.spec(), {"pairs": MAP.pairs + np.float32(0.5)}),
        (MAP.spec(), {"pairs": MAP.pairs + np.float32(1)}),
        ({**outside, "inputs": 50}, MAP.weights()),
    ):
        with pytest.raises(SchemaError, match=r"^feature map: "):
            feature_map_from_spec(spec, weights)


def test_the_whole_path_with_it(dpntk: Command, folder: Path, tmp_path: Path) -> None:
    assert dpntk("embed", folder, "--features", "hermite").code == 0
    assert dpntk("release", "--eps", "5", "--delta", "1e-3").code == 0
    released = open_release(tmp_path / "release.h5").release
    assert released.guarantee.sensitivity == pytest.approx(math.sqrt(2 * (1 + 0.25**2)))
    assert "Hermite features of order 20" in " ".join(dpntk("inspect").stdout.split())
    assert dpntk("generate", "--steps", "3", "-n", "30").code == 0


def test_a_record_of_one_value_has_no_pairs() -> None:
    with pytest.raises(SchemaError, match="of pairs of values, and a record has only one"):
        HermiteFeatures.draw(1, levels=255, seed=0)
