"""The conditional convolutional generator of the paper, for images of any size from 8 to 64."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

from ....fit.layers import BatchNorm, conditioned, normalised_layer
from .spec import NetworkSpec

_HIDDEN: Final = 200
_PLANES: Final = 16, 8
_KERNEL: Final = 5


class ConvolutionalGenerator(nn.Module):
    """Maps a latent code and one-hot class to an image.

    Two fully connected layers with batch norm are followed by two bilinear upsamplings to double
    the size, each with a 5x5 convolution, and a sigmoid. This is the network of DP-MERF (Harder et
    al. 2021), which DP-NTK (Yang et al., arXiv 2303.01687) uses for MNIST and FashionMNIST.
    """

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__()
        self.spec = spec
        self._smallest = -(-spec.side // 4)
        wide, narrow = _PLANES
        pixels = wide * self._smallest**2
        self.connected = nn.Sequential(
            normalised_layer(spec.code + spec.classes, _HIDDEN),
            nn.Linear(_HIDDEN, pixels),
            BatchNorm(pixels),
        )
        self.first = EnlargingConvolution(wide, narrow, -(-spec.side // 2))
        self.second = EnlargingConvolution(narrow, spec.channels, spec.side)

    def forward(self, code: Tensor, classes: Tensor) -> Tensor:
        """See `ConditionalGenerator.forward`."""
        small = self.connected(conditioned(code, classes, self.spec.classes).flatten(0, 1))
        planes = small.view(len(small), -1, self._smallest, self._smallest)
        made: Tensor = self.second(self.first(planes).relu()).sigmoid()
        return made.view(*code.shape[:2], -1)


class EnlargingConvolution(nn.Conv2d):
    """Bilinear upsampling, with aligned corners, and a 5x5 convolution, as one linear map.

    It acts first down columns and then along rows, as two matrix products, so that only the output
    has the larger size. Library convolutions to one channel take several times as long.

    Args:
        before: channels of the input.
        channels: channels of the output.
        side: height and width of the output.
    """

    def __init__(self, before: int, channels: int, side: int) -> None:
        super().__init__(before, channels, _KERNEL, padding=_KERNEL // 2)
        self.side = side

    def forward(self, planes: Tensor) -> Tensor:
        """Map (b, before, s, s) to (b, channels, side, side)."""
        count, before, small, _ = planes.shape
        moved = _enlarged_and_moved(small, self.side, self.weight)
        down = torch.einsum("oiuv,upr->irovp", self.weight, moved).reshape(before * small, -1)
        columns = planes.permute(0, 3, 1, 2).reshape(count * small, -1) @ down
        columns = columns.view(count, small, self.out_channels, _KERNEL, self.side)
        across = moved.transpose(1, 2).reshape(-1, self.side)
        made = columns.permute(0, 2, 4, 3, 1).reshape(-1, len(across)) @ across
        made = made.view(count, self.out_channels, self.side, self.side)
        assert self.bias is not None
        return made + self.bias[:, None, None]


def _enlarged_and_moved(small: int, side: int, like: Tensor) -> Tensor:
    """The matrix that upsamples a line of pixels, for each kernel position, (5, side, small)."""
    places = torch.eye(small, dtype=like.dtype, device=like.device)[None]
    enlarged = nn.functional.interpolate(places, side, mode="linear", align_corners=True)[0].T
    padded = nn.functional.pad(enlarged, (0, 0, _KERNEL // 2, _KERNEL // 2))
    return torch.stack([padded[place : place + side] for place in range(_KERNEL)])
