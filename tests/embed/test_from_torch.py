"""Feature maps of torch networks that somebody else has made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dpntk.common.errors import SchemaError
from dpntk.common.features.ntk.scattering import Pixels
from dpntk.embed import embed, tangent_features_of
from dpntk.embed.exact.reference import features, network_of
from tests.conftest import SIDE, draw_records
from tests.helpers.networks import NETWORKS


class Doubled(nn.ReLU):
    """Named for what it is."""

    def forward(self, input: Tensor) -> Tensor:
        return 2 * super().forward(input)


class DoubledLinear(nn.Linear):
    """Named for what it is."""

    def forward(self, input: Tensor) -> Tensor:
        return 2 * super().forward(input)


PLAIN = [name for name, network in NETWORKS.items() if isinstance(network.front, Pixels)]


@pytest.mark.parametrize("name", PLAIN)
def test_a_network_gives_back_the_map_that_it_was_made_of(name: str) -> None:
    network = NETWORKS[name]
    unflatten, *modules = network_of(network)
    assert isinstance(unflatten, nn.Unflatten)
    again = tangent_features_of(nn.Sequential(*modules), network.shape)
    assert again.spec() == network.spec()
    for one, other in zip(again.parameters, network.parameters, strict=True):
        assert all(map(np.array_equal, one, other))
    assert np.abs(again.readout - network.readout).max() <= 2.0**-21


def test_the_features_are_the_gradients_of_the_network() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(48, 2)
    ).double()
    records = torch.from_numpy(draw_records(5)[0]).double() / 255
    found = features(tangent_features_of(network, (1, SIDE, SIDE)), records)
    for record, phi in zip(records, found, strict=True):
        network.zero_grad()
        network(record.view(1, 1, SIDE, SIDE)).sum().backward()
        *hidden, weight, _ = [w.grad for w in network.parameters() if w.grad is not None]
        shared = [weight[0] * 2**0.5, torch.full((1,), 2**0.5)]
        full = torch.cat([gradient.flatten() for gradient in [*hidden, *shared]])
        assert torch.allclose(phi, full / full.norm(), atol=1e-5)  # weights were rounded


def test_layers_that_are_written_in_another_way_are_the_same() -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.AvgPool2d(2), nn.LayerNorm((3, 4, 4), 1e-5, False),
        nn.Flatten(), nn.Linear(48, 2),
    )  # fmt: skip
    other = nn.Sequential(
        nn.Conv2d(1, 3, (3, 3), padding="same"), nn.AvgPool2d((2, 2), stride=2), *list(plain)[2:]
    )
    other[0].load_state_dict(plain[0].state_dict())
    maps = [tangent_features_of(network, (1, SIDE, SIDE)) for network in (plain, other)]
    assert maps[0].spec() == maps[1].spec()


def test_it_embeds(folder: Path) -> None:
    network = nn.Sequential(nn.Linear(SIDE**2, 4), nn.Softsign(), nn.Linear(4, 3))
    own = tangent_features_of(network, (SIDE**2,))
    made = embed(folder, own)
    assert made.sums.shape == (own.dimension, 3)
    assert made.feature_map is own
    small = tangent_features_of(nn.Sequential(nn.Linear(63, 3), nn.Linear(3, 1)), (63,))
    with pytest.raises(SchemaError, match="64 values, but the feature map takes 63"):
        embed(folder, small)


@pytest.mark.parametrize("layer", [0, 2])
def test_a_layer_whose_weights_vanish_on_the_grid_is_refused(layer: int) -> None:
    network = nn.Sequential(nn.Linear(64, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU())
    network.append(nn.Linear(4, 2))
    with torch.no_grad():
        for parameter in network[layer].parameters():
            parameter.mul_(1e-9)
    which = f"weight_{layer // 2 + 1} are 0, rounded to multiples of"
    with pytest.raises(SchemaError, match=which):
        tangent_features_of(network, (SIDE**2,))


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ([nn.Linear(64, 3), nn.Tanh(), nn.Linear(3, 2)], "kind Tanh"),
        ([nn.Linear(64, 3), nn.GELU(), nn.Linear(3, 2)], "kind GELU"),
        ([nn.Linear(64, 3), nn.ReLU()], "ends in ReLU"),
        ([nn.Linear(64, 3, bias=False), nn.Linear(3, 2)], "without biases"),
        ([nn.Linear(64, 3), nn.LayerNorm(3), nn.Linear(3, 2)], "elementwise_affine=True"),
        ([nn.Linear(64, 3), nn.LeakyReLU(0.2), nn.Linear(3, 2)], "negative_slope=0.2"),
        ([nn.Linear(64, 3), nn.Linear(4, 2)], "does not fit the layer before it"),
        ([nn.ReLU(), nn.Linear(64, 2)], "first layer"),
        ([nn.Linear(64, 2)], "first layer"),
        ([nn.Linear(64, 3), nn.AvgPool2d((2, 1)), nn.Linear(3, 2)], "kernel_size=\\(2, 1\\)"),
        ([nn.Conv2d(1, 2, 3, stride=2, padding=1), nn.Flatten(), nn.Linear(32, 2)], "stride"),
        ([nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 2)], "padding"),
        ([nn.Conv2d(1, 2, (3, 1), padding=(1, 0)), nn.Flatten(), nn.Linear(128, 2)], "kernel_size"),
        ([nn.Conv2d(1, 2, 2, padding="same"), nn.Flatten(), nn.Linear(128, 2)], "padding=same"),
        (
            [
                nn.Conv2d(1, 2, 3, padding=1),
                nn.LayerNorm((8, 8), elementwise_affine=False),
                nn.Flatten(),
                nn.Linear(128, 2),
            ],
            "normalized_shape=\\(8, 8\\)",
        ),
        (
            [
                nn.Conv2d(1, 2, 3, padding=1),
                nn.AvgPool2d(2, divisor_override=1),
                nn.Flatten(),
                nn.Linear(32, 2),
            ],
            "divisor_override=1",
        ),
        ([nn.Linear(64, 3), Doubled(), nn.Linear(3, 2)], "kind Doubled"),
        ([nn.Linear(64, 3), nn.ReLU(), DoubledLinear(3, 2)], "kind DoubledLinear"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_supported_is_refused(modules: list[nn.Module], message: str) -> None:
    shape = (1, SIDE, SIDE) if isinstance(modules[0], nn.Conv2d) else (SIDE**2,)
    with pytest.raises(SchemaError, match=message):
        tangent_features_of(nn.Sequential(*modules), shape)
