"""The convolutional generator: upsampling and convolution in one are what they are in two."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from dpntk.generate.images.generators.networks.convolutional import (
    ConvolutionalGenerator,
    EnlargingConvolution,
)
from dpntk.generate.images.generators.networks.spec import NetworkSpec


@pytest.mark.parametrize(("small", "side"), [(7, 14), (14, 28), (2, 4), (4, 7), (16, 32)])
@pytest.mark.parametrize(("before", "channels"), [(3, 2), (2, 1)])
def test_it_is_an_upsampling_and_a_convolution(
    small: int, side: int, before: int, channels: int
) -> None:
    torch.manual_seed(0)
    layer = EnlargingConvolution(before, channels, side).double()
    planes = torch.randn(3, before, small, small, dtype=torch.float64, requires_grad=True)

    def in_two_steps() -> Tensor:
        enlarged = nn.functional.interpolate(
            planes, (side, side), mode="bilinear", align_corners=True
        )
        return nn.functional.conv2d(enlarged, layer.weight, layer.bias, padding=2)

    assert layer(planes).shape == (3, channels, side, side)
    assert torch.allclose(layer(planes), in_two_steps(), atol=1e-12)
    inputs = [planes, *layer.parameters()]
    toward = torch.randn(3, channels, side, side, dtype=torch.float64)
    found = torch.autograd.grad((layer(planes) * toward).sum(), inputs)
    expected = torch.autograd.grad((in_two_steps() * toward).sum(), inputs)
    for own, literal in zip(found, expected, strict=True):
        assert torch.allclose(own, literal, atol=1e-12)


@pytest.mark.parametrize("side", [8, 13, 28, 64])
@pytest.mark.parametrize("channels", [1, 3])
def test_images_of_every_form(side: int, channels: int) -> None:
    generator = ConvolutionalGenerator(NetworkSpec(side, 2, 3, channels=channels))
    made: Tensor = generator(torch.randn(2, 4, 3), torch.arange(2))
    assert made.shape == (2, 4, channels * side**2)
    assert 0 <= made.min() < made.max() <= 1
