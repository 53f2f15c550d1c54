"""The networks of DPImageBench: their parameters are those that the papers' sizes make."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from benchmarks.material.networks import NETWORKS, small_network

COLOURS, CLASSES = 3, 10


def of_convolution(before: int, after: int, size: int, groups: int = 1) -> int:
    """The parameters of a convolution without bias and of the normalisation of what comes out."""
    return before // groups * after * size**2 + 2 * after


def of_resnet(channels: int, classes: int) -> int:
    """18 blocks a stage of two 3x3 convolutions; two stages begin with a 1x1 one beside."""
    total, before = of_convolution(channels, 16, 3), 16
    for after in (16, 32, 64):
        total += of_convolution(before, after, 3) + 35 * of_convolution(after, after, 3)
        total += 0 if before == after else of_convolution(before, after, 1)
        before = after
    return total + (64 + 1) * classes


def of_wide_resnet(channels: int, classes: int) -> int:
    """6 blocks a stage; normalisations stand before convolutions, so they are of what comes in."""
    total, before = channels * 16 * 9, 16
    for after in (64, 128, 256):
        for _ in range(6):
            total += 2 * before + 9 * before * after + 2 * after + 9 * after * after
            total += 0 if before == after else before * after
            before = after
    return total + 2 * 256 + (256 + 1) * classes


def of_resnext(channels: int, classes: int) -> int:
    """3 blocks a stage of 8 groups of 64, 128 and 256 channels between two 1x1 convolutions."""
    total, before = of_convolution(channels, 64, 3), 64
    for after, inner in ((256, 8 * 64), (512, 8 * 128), (1024, 8 * 256)):
        for _ in range(3):
            total += of_convolution(before, inner, 1) + of_convolution(inner, inner, 3, groups=8)
            total += of_convolution(inner, after, 1)
            total += 0 if before == after else of_convolution(before, after, 1)
            before = after
    return total + (1024 + 1) * classes


@pytest.mark.parametrize(
    ("name", "count", "printed"),
    [
        ("ResNet-110", of_resnet, 1.7e6),  # He et al. 2016, table 6
        ("WRN-40-4", of_wide_resnet, 8.9e6),  # Zagoruyko and Komodakis 2016, table 5
        ("ResNeXt-29", of_resnext, 34.4e6),  # Xie et al. 2017, table 7
    ],
)
def test_as_many_parameters_as_the_papers_say(
    name: str, count: Callable[[int, int], int], printed: float
) -> None:
    assert count(COLOURS, CLASSES) == pytest.approx(printed, rel=0.02)
    for channels, classes in ((COLOURS, CLASSES), (1, 7)):
        with torch.device("meta"):
            network = NETWORKS[name](channels, classes)
        found = sum(parameter.numel() for parameter in network.parameters())
        assert found == count(channels, classes)


@pytest.mark.parametrize("name", NETWORKS)
def test_small_grey_images_go_through_and_sides_are_halved_twice(name: str) -> None:
    sides = set()

    def noted(layer: nn.Module, into: tuple[torch.Tensor], out: torch.Tensor) -> None:
        sides.add(out.shape[-1])

    with torch.device("meta"):  # shapes alone, no arithmetic
        network = NETWORKS[name](1, CLASSES)
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d):
                layer.register_forward_hook(noted)
        assert network(torch.zeros(2, 1, 28, 28)).shape == (2, CLASSES)
    assert sides == {28, 14, 7}


def test_only_the_wide_one_drops_values_and_it_drops_three_tenths() -> None:
    dropped = {}
    for name, make in NETWORKS.items():
        with torch.device("meta"):
            layers = list(make(1, CLASSES).modules())
        dropped[name] = [layer.p for layer in layers if isinstance(layer, nn.Dropout)]
    assert dropped == {"ResNet-110": [], "WRN-40-4": [0.3] * 18, "ResNeXt-29": []}


def test_what_goes_in_goes_on_beside_the_layers() -> None:
    """A block whose layers say nothing hands on what it got (after ReLU, what was not negative)."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for name, behind in (("ResNet-110", True), ("WRN-40-4", False), ("ResNeXt-29", True)):
            *_, block = (
                layer
                for layer in NETWORKS[name](1, CLASSES).modules()
                if isinstance(getattr(layer, "way", None), nn.Module)
            )
            for layer in block.modules():
                if isinstance(layer, nn.Conv2d):
                    nn.init.zeros_(layer.weight)
                    width = layer.out_channels
            images = torch.randn(2, width, 4, 4)
            handed_on = images.relu() if behind else images
            assert torch.equal(block.eval()(images), handed_on)


def test_the_small_one_takes_images_of_any_size() -> None:
    for channels, side in ((1, 28), (3, 32), (1, 8)):
        images = torch.zeros(2, channels, side, side)
        assert small_network(channels, 7)(images).shape == (2, 7)
