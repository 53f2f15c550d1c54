"""A conditional residual generator, for colour images of any size from 8 to 64 pixels."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import torch
from torch import Tensor, nn

from .....common.errors import GeneratorError
from .....common.schema.image import COLOUR
from ....fit.layers import BatchNorm, conditioned
from .spec import NetworkSpec

_MOST_WIDTH: Final = 256
_STAGES: Final = 8, 4, 2, 1
"""Channels of the stages, in multiples of the width; each stage doubles the image's size."""


@dataclass(frozen=True)
class ResidualSpec(NetworkSpec):
    """Everything needed to rebuild a residual network, except its weights.

    Attributes:
        width: channels of the last stage.

    Raises:
        GeneratorError: a number is out of its range.
    """

    channels: int = COLOUR
    width: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.width <= _MOST_WIDTH:
            raise GeneratorError("the generator's description is out of range")


class ResidualGenerator(nn.Module):
    """Maps a latent code and one-hot class to an image, through a reversed ResNet18.

    It has 18 layers: a fully connected one, four stages of two residual blocks each (He et al.
    2016, "Deep Residual Learning for Image Recognition"), and a last convolution with a sigmoid.
    All stages but the first begin by enlarging to twice the size. DP-NTK (Yang et al., arXiv
    2303.01687) uses a ResNet18 for CIFAR-10 and CelebA, without further detail.
    """

    def __init__(self, spec: ResidualSpec) -> None:
        super().__init__()
        self.spec = spec
        self._sides = [-(-spec.side // part) for part in _STAGES]
        planes = [part * spec.width for part in _STAGES]
        self.connected = nn.Linear(spec.code + spec.classes, planes[0] * self._sides[0] ** 2)
        self.stages = nn.ModuleList(
            nn.Sequential(_Block(before, channels), _Block(channels, channels))
            for before, channels in pairwise([planes[0], *planes])
        )
        self.last = nn.Conv2d(planes[-1], spec.channels, 3, padding=1)

    def forward(self, code: Tensor, classes: Tensor) -> Tensor:
        """See `ConditionalGenerator.forward`."""
        said = conditioned(code, classes, self.spec.classes)
        small = self._sides[0]
        planes = self.connected(said.flatten(0, 1)).view(
            -1, _STAGES[0] * self.spec.width, small, small
        )
        for side, stage in zip(self._sides, self.stages, strict=True):
            planes = stage(nn.functional.interpolate(planes, (side, side), mode="nearest"))
        made: Tensor = self.last(planes).sigmoid()
        return made.view(*code.shape[:2], -1)


class _Block(nn.Module):
    """Two 3x3 convolutions with a shortcut around them."""

    def __init__(self, before: int, channels: int) -> None:
        super().__init__()
        self.way = nn.Sequential(
            nn.Conv2d(before, channels, 3, padding=1, bias=False),
            BatchNorm(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            BatchNorm(channels),
        )
        same = before == channels
        self.shortcut = nn.Identity() if same else nn.Conv2d(before, channels, 1, bias=False)

    def forward(self, planes: Tensor) -> Tensor:
        """Map (b, before, h, w) to (b, channels, h, w)."""
        return torch.relu(self.way(planes) + self.shortcut(planes))
