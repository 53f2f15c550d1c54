"""The feature map's definition and what it promises."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import SchemaError
from dpntk.common.features.base import sensitivity, weights_digest
from dpntk.common.features.ntk.architectures import fc_1l, layers_of, read_widths
from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.features.ntk.scattering import Pixels
from dpntk.common.features.rff import RandomFourierFeatures
from tests.helpers.networks import NETWORKS


def test_spec_and_weights_rebuild_the_map(feature_map: TangentFeatures) -> None:
    again = TangentFeatures.from_spec(feature_map.spec(), feature_map.weights())
    assert weights_digest(again) == weights_digest(feature_map)
    assert again.spec() == feature_map.spec()


def test_dimension_is_that_of_the_paper() -> None:
    mnist = TangentFeatures.draw(Pixels(784), fc_1l(800), outputs=10, levels=255, seed=0)
    assert mnist.dimension == 800 * 784 + 800 + 800 + 1
    assert mnist.blocks["output_bias"].stop == mnist.dimension


def test_seed_decides_the_weights() -> None:
    def digest(seed: int) -> str:
        drawn = TangentFeatures.draw(Pixels(64), fc_1l(5), outputs=2, levels=255, seed=seed)
        return weights_digest(drawn)

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight_1": np.float32(1 / 3)}, "grid"),
        ({"bias_1": np.float32(math.nan)}, "finite"),
        ({"readout": np.float32(2.0**-21)}, "grid"),
        ({"readout": np.float32(2.0**30)}, "too large"),
    ],
)
def test_weights_that_would_break_exactness_are_refused(
    feature_map: TangentFeatures, change: dict[str, np.float32], message: str
) -> None:
    weights = {name: weight.copy() for name, weight in feature_map.weights().items()}
    for name, value in change.items():
        weights[name].flat[0] = value
    with pytest.raises(SchemaError, match=message):
        TangentFeatures.from_spec(feature_map.spec(), weights)


def test_hidden_weights_must_leave_room_for_slices() -> None:
    """Sums towards an output and, on the way back, away from an input."""
    network = NETWORKS["fc_2l"]
    for where in (np.s_[0, :], np.s_[:, 0]):
        weights = {name: weight.copy() for name, weight in network.weights().items()}
        weights["weight_2"][where] = np.float32(2.0**10)
        with pytest.raises(SchemaError, match="weight_2 too large"):
            TangentFeatures.from_spec(network.spec(), weights)


@pytest.mark.parametrize(
    "change",
    [
        {"width": "14"},
        {"arch": "fc_2l"},
        {"arch": "custom"},
        {"outputs": "3"},
        {"levels": True},
        {"surprise": 1},
        {"shape": [8, 8]},
        {"shape": [63]},
        {"shape": [1, 1, 1, 64]},
        {"shape": "64"},
        {"layers": []},
        {"layers": None},
        {"layers": ["linear"]},
        {"layers": [{"kind": "linear"}]},
        {"layers": [{"kind": "linear", "outputs": 0}]},
        {"layers": [{"kind": "linear", "outputs": True}]},
        {"layers": [{"kind": "linear", "outputs": 13, "more": 1}]},
        {"layers": [{"kind": "attention", "heads": 13}]},
        {"layers": [{"kind": "activation", "function": "relu"}]},
        {"layers": [{"kind": "linear", "outputs": 13}, {"kind": "activation", "function": 7}]},
        {"layers": [{"kind": "linear", "outputs": 13}, {"kind": "activation", "function": "exp"}]},
        {"layers": [{"kind": "linear", "outputs": 13}, {"kind": "average_pool", "size": 2}]},
        {"layers": [{"kind": "convolution", "channels": 13, "size": 2}, {"kind": "flatten"}]},
        {"layers": [{"kind": "linear", "outputs": 13}] * 65},
        {"front": "pixels"},
    ],
    ids=str,
)
def test_a_description_that_contradicts_the_weights_is_refused(
    feature_map: TangentFeatures, change: dict[str, object]
) -> None:
    with pytest.raises(SchemaError, match=r"^(feature map|front): "):
        TangentFeatures.from_spec({**feature_map.spec(), **change}, feature_map.weights())


def test_a_network_from_before_it_had_a_name_is_read() -> None:
    network = NETWORKS["layer norm behind fc_1l"]
    spec = network.spec()
    assert spec["arch"] == "fc_1l_norm"
    again = TangentFeatures.from_spec({**spec, "arch": "custom"}, network.weights())
    assert again.spec() == spec
    with pytest.raises(SchemaError, match="not one that this dpntk knows"):
        TangentFeatures.from_spec({**spec, "arch": "fc_1l"}, network.weights())


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_every_network_travels_as_json_and_weights(network: TangentFeatures) -> None:
    again = TangentFeatures.from_spec(json.loads(json.dumps(network.spec())), network.weights())
    assert again.spec() == network.spec()
    assert weights_digest(again) == weights_digest(network)
    assert again.layers == network.layers
    assert (
        again.dimension
        == network.dimension
        == sum(block.stop - block.start for block in network.blocks.values())
    )


def test_networks_of_the_paper_have_their_names_and_sizes() -> None:
    def dimension(arch: str, shape: tuple[int, ...], *widths: int) -> int:
        front = Pixels(math.prod(shape))
        layers = layers_of(arch, widths, shape, "relu")
        drawn = TangentFeatures.draw(front, layers, outputs=10, levels=255, seed=0, shape=shape)
        assert drawn.spec()["arch"] == arch
        assert drawn.spec()["width"] == "_".join(map(str, widths))
        return drawn.dimension

    assert dimension("fc_1l", (784,), 800) == 784 * 800 + 800 + 800 + 1
    assert dimension("fc_1l_norm", (784,), 800) == 784 * 800 + 800 + 800 + 1
    assert dimension("fc_2l", (64,), 30, 20) == 64 * 30 + 30 + 30 * 20 + 20 + 20 + 1
    assert dimension("cnn_1l", (1, 8, 8), 5) == 9 * 5 + 5 + 64 * 5 + 1
    assert dimension("cnn_2l", (1, 8, 8), 5, 4) == 9 * 5 + 5 + 5 * 9 * 4 + 4 + 64 * 4 + 1
    assert dimension("cnn_1l", (1, 30), 5) == 3 * 5 + 5 + 30 * 5 + 1
    assert dimension("cnn_2l", (1, 30), 5, 4) == 3 * 5 + 5 + 30 * 5 * 4 + 4 + 4 + 1
    assert NETWORKS["pooled and deep"].spec()["arch"] == "custom"


@pytest.mark.parametrize(
    ("arch", "text", "message"),
    [
        ("fc_2l", "400", r"two layers|give a width for each, as in width='400_100'"),
        ("fc_1l", "400_100", "has 1 hidden layer"),
        ("fc_1l", "0", "from 1 to"),
        ("fc_1l", "-3", "write 400"),
        ("fc_1l", "4e2", "write 400"),
        ("fc_3l", "400", "known are fc_1l, fc_1l_norm, fc_2l, cnn_1l, cnn_2l"),
    ],
)
def test_widths_and_names_that_make_no_network_are_refused(
    arch: str, text: str, message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        layers_of(arch, read_widths(text, arch), (64,), "relu")


def test_sensitivity_of_a_nonnegative_map(feature_map: TangentFeatures) -> None:
    for weight in (0.25, 1.0):
        expected = math.sqrt(2 * (1 + weight**2))
        found = sensitivity(feature_map, Adjacency.REPLACE_ONE, count_weight=weight)
        assert found == pytest.approx(expected, rel=1e-12)


def test_sensitivity_to_adding_a_record(feature_map: TangentFeatures) -> None:
    for weight in (0.0, 0.25, 1.0):
        found = sensitivity(feature_map, Adjacency.ADD_REMOVE, count_weight=weight)
        assert found == pytest.approx(math.sqrt(1 + weight**2), rel=1e-12)


def test_sensitivity_of_a_map_that_is_not_nonnegative() -> None:
    """Opposite features of one class are 2 apart, whatever the counts weigh."""
    waves = RandomFourierFeatures.draw(64, frequencies=3, length_scale=1, levels=255, seed=0)
    found = sensitivity(waves, Adjacency.REPLACE_ONE, count_weight=0.25)
    assert found == 2.0
