"""The networks by which DPImageBench says how useful images are, for small images.

Those that are usual for CIFAR, with means over all places at the end, so that images of any size
go in. Sizes and ways are the papers'; shortcuts are 1x1 convolutions where channels change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from torch import Tensor, nn


class _ActivatedBehind(nn.Module):
    """A residual block whose sum is activated: what goes in, and what layers add to it."""

    def __init__(self, way: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.way, self.shortcut = way, shortcut

    def forward(self, images: Tensor) -> Tensor:
        summed: Tensor = self.way(images) + self.shortcut(images)
        return summed.relu()


class _ActivatedBefore(nn.Module):
    """A residual block that activates what goes in; nothing happens to the sum.

    Args:
        activation: a normalisation and what follows it.
        way: the other layers.
        shortcut: of what was activated; None adds what went in, as it was.
    """

    def __init__(self, activation: nn.Module, way: nn.Module, shortcut: nn.Module | None) -> None:
        super().__init__()
        self.activation, self.way, self.shortcut = activation, way, shortcut

    def forward(self, images: Tensor) -> Tensor:
        activated = self.activation(images)
        beside = images if self.shortcut is None else self.shortcut(activated)
        summed: Tensor = self.way(activated) + beside
        return summed


def resnet(channels: int, classes: int, depth: int = 110) -> nn.Module:
    """ResNet of two 3x3 convolutions a block (He et al. 2016, section 4.2).

    Args:
        channels: of an image.
        classes: how many.
        depth: 6 n + 2 for n blocks a stage.
    """

    def block(before: int, after: int, stride: int) -> nn.Module:
        way = nn.Sequential(
            *_normalised(_convolution(before, after, 3, stride)),
            nn.ReLU(),
            *_normalised(_convolution(after, after, 3)),
        )
        return _ActivatedBehind(way, _normalised_shortcut(before, after, stride))

    blocks = _stages(16, (16, 32, 64), (depth - 2) // 6, block)
    first = (*_normalised(_convolution(channels, 16, 3)), nn.ReLU())
    return _begun(nn.Sequential(*first, *blocks, *_head(64, classes)))


def wide_resnet(
    channels: int, classes: int, depth: int = 40, width: int = 4, dropout: float = 0.3
) -> nn.Module:
    """Wide ResNet, activated before convolutions (Zagoruyko and Komodakis 2016).

    Args:
        channels: of an image.
        classes: how many.
        depth: 6 n + 4 for n blocks a stage.
        width: times the channels of ResNet.
        dropout: share of values dropped between the convolutions of a block.
    """

    def block(before: int, after: int, stride: int) -> nn.Module:
        way = nn.Sequential(
            _convolution(before, after, 3, stride),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Dropout(dropout),
            _convolution(after, after, 3),
        )
        shortcut = None if before == after else _convolution(before, after, 1, stride)
        return _ActivatedBefore(nn.Sequential(nn.BatchNorm2d(before), nn.ReLU()), way, shortcut)

    widths = 16 * width, 32 * width, 64 * width
    blocks = _stages(16, widths, (depth - 4) // 6, block)
    last = nn.BatchNorm2d(widths[-1]), nn.ReLU()
    first = _convolution(channels, 16, 3)
    return _begun(nn.Sequential(first, *blocks, *last, *_head(widths[-1], classes)))


def resnext(
    channels: int, classes: int, depth: int = 29, groups: int = 8, widen: int = 4
) -> nn.Module:
    """ResNeXt, whose 3x3 convolutions are of groups of channels (Xie et al. 2017, section 5.3).

    Args:
        channels: of an image.
        classes: how many.
        depth: 9 n + 2 for n blocks a stage.
        groups: of each 3x3 convolution, its "cardinality"; 64 channels each in the first stage.
        widen: times 64 channels go out of the first stage.
    """

    def block(before: int, after: int, stride: int) -> nn.Module:
        inner = groups * after // widen
        way = nn.Sequential(
            *_normalised(_convolution(before, inner, 1)),
            nn.ReLU(),
            *_normalised(_convolution(inner, inner, 3, stride, groups)),
            nn.ReLU(),
            *_normalised(_convolution(inner, after, 1)),
        )
        return _ActivatedBehind(way, _normalised_shortcut(before, after, stride))

    widths = 64 * widen, 128 * widen, 256 * widen
    blocks = _stages(64, widths, (depth - 2) // 9, block)
    first = (*_normalised(_convolution(channels, 64, 3)), nn.ReLU())
    return _begun(nn.Sequential(*first, *blocks, *_head(widths[-1], classes)))


def small_network(channels: int, classes: int) -> nn.Module:
    """Two 3x3 convolutions of 16 and 32 channels, for processors."""
    layers: list[nn.Module] = []
    for before, after in ((channels, 16), (16, 32)):
        layers += [*_normalised(_convolution(before, after, 3)), nn.ReLU(), nn.MaxPool2d(2)]
    places = nn.AdaptiveAvgPool2d(7)  # those that there are, of 28x28 pixels
    return _begun(nn.Sequential(*layers, places, *_linear(32 * 7**2, classes)))


NETWORKS: Final[dict[str, Callable[[int, int], nn.Module]]] = {
    "ResNet-110": resnet,
    "WRN-40-4": wide_resnet,
    "ResNeXt-29": resnext,
}
"""Each takes the channels of an image, and the number of classes."""


def _convolution(before: int, after: int, size: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    return nn.Conv2d(before, after, size, stride, size // 2, groups=groups, bias=False)


def _normalised(convolution: nn.Conv2d) -> tuple[nn.Module, nn.Module]:
    return convolution, nn.BatchNorm2d(convolution.out_channels)


def _normalised_shortcut(before: int, after: int, stride: int) -> nn.Module:
    if before == after:
        return nn.Identity()
    return nn.Sequential(*_normalised(_convolution(before, after, 1, stride)))


def _stages(
    before: int, widths: tuple[int, ...], each: int, block: Callable[[int, int, int], nn.Module]
) -> Iterator[nn.Module]:
    """The blocks of all stages; every stage but the first one begins by halving the sides."""
    for stage, after in enumerate(widths):
        for number in range(each):
            yield block(before, after, 2 if stage and not number else 1)
            before = after


def _linear(features: int, classes: int) -> tuple[nn.Module, nn.Module]:
    return nn.Flatten(), nn.Linear(features, classes)


def _head(features: int, classes: int) -> tuple[nn.Module, ...]:
    return nn.AdaptiveAvgPool2d(1), *_linear(features, classes)


def _begun(network: nn.Module) -> nn.Module:
    """Weights as they are before training: of convolutions by what goes out (He et al. 2015)."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(layer, nn.Linear):
            nn.init.zeros_(layer.bias)
    return network
