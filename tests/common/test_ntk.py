"""The feature map's definition and what it promises."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import SchemaError
from dpntk.common.feature_map import sensitivity
from dpntk.common.front import Pixels
from dpntk.common.ntk import OneHiddenLayerNTK
from dpntk.common.rff import RandomFourierFeatures


def test_spec_and_weights_rebuild_the_map(feature_map: OneHiddenLayerNTK) -> None:
    again = OneHiddenLayerNTK.from_spec(feature_map.spec(), feature_map.weights())
    assert again.digest() == feature_map.digest()
    assert again.spec() == feature_map.spec()


def test_dimension_is_that_of_the_paper() -> None:
    mnist = OneHiddenLayerNTK.draw(Pixels(784), width=800, outputs=10, levels=255, seed=0)
    assert mnist.dimension == 800 * 784 + 800 + 800 + 1
    assert mnist.blocks["output_bias"].stop == mnist.dimension


def test_seed_decides_the_weights() -> None:
    def digest(seed: int) -> str:
        return OneHiddenLayerNTK.draw(
            Pixels(64), width=5, outputs=2, levels=255, seed=seed
        ).digest()

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": np.float32(1 / 3)}, "grid"),
        ({"bias": np.float32(math.nan)}, "finite"),
        ({"readout": np.float32(2.0**-21)}, "grid"),
        ({"readout": np.float32(2.0**30)}, "too large"),
    ],
)
def test_weights_that_would_break_exactness_are_refused(
    feature_map: OneHiddenLayerNTK, change: dict[str, np.float32], message: str
) -> None:
    weights = {name: weight.copy() for name, weight in feature_map.weights().items()}
    for name, value in change.items():
        weights[name].flat[0] = value
    with pytest.raises(SchemaError, match=message):
        OneHiddenLayerNTK.from_spec(feature_map.spec(), weights)


def test_a_description_that_contradicts_the_weights_is_refused(
    feature_map: OneHiddenLayerNTK,
) -> None:
    for change in ({"width": 14}, {"outputs": "3"}, {"activation": "tanh"}, {"surprise": 1}):
        with pytest.raises(SchemaError):
            OneHiddenLayerNTK.from_spec({**feature_map.spec(), **change}, feature_map.weights())


def test_sensitivity_of_a_nonnegative_map(feature_map: OneHiddenLayerNTK) -> None:
    for weight in (0.25, 1.0):
        expected = math.sqrt(2 * (1 + weight**2))
        found = sensitivity(feature_map, Adjacency.REPLACE_ONE, count_weight=weight)
        assert found == pytest.approx(expected, rel=1e-12)


def test_sensitivity_to_adding_a_record(feature_map: OneHiddenLayerNTK) -> None:
    for weight in (0.0, 0.25, 1.0):
        found = sensitivity(feature_map, Adjacency.ADD_REMOVE, count_weight=weight)
        assert found == pytest.approx(math.sqrt(1 + weight**2), rel=1e-12)


def test_sensitivity_of_a_map_that_is_not_nonnegative() -> None:
    """Opposite features of one class are 2 apart, whatever the counts weigh."""
    waves = RandomFourierFeatures.draw(64, frequencies=3, length_scale=1, levels=255, seed=0)
    found = sensitivity(waves, Adjacency.REPLACE_ONE, count_weight=0.25)
    assert found == 2.0
