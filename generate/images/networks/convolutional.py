"""The conditional convolutional generator of the paper, for images of any size from 8 to 64."""

from __future__ import annotations

from typing import Final

from torch import Tensor, nn

from ...fit.layers import BatchNorm, conditioned, normalised_layer
from .spec import NetworkSpec

_HIDDEN: Final = 200
_PLANES: Final = 16, 8
_KERNEL: Final = 5


class ConvolutionalGenerator(nn.Module):
    """Latent code and one-hot class to an image.

    Two fully connected layers with batch norm, then twice an upsampling to double the size and a
    5x5 convolution, and a sigmoid: the network of DP-MERF (Harder et al. 2021), which DP-NTK (Yang
    et al., arXiv 2303.01687) takes for MNIST and FashionMNIST.
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
        self.first = nn.Conv2d(wide, narrow, _KERNEL, padding=_KERNEL // 2)
        self.second = nn.Conv2d(narrow, spec.channels, _KERNEL, padding=_KERNEL // 2)

    def forward(self, code: Tensor, classes: Tensor) -> Tensor:
        """Make the same number of images of each of some classes.

        Args:
            code: (k, b, code), standard normal.
            classes: int64 (k,), the class of each group.

        Returns:
            (k, b, channels * side * side), values 0..1.
        """
        small = self.connected(conditioned(code, classes, self.spec.classes).flatten(0, 1))
        planes = small.view(len(small), -1, self._smallest, self._smallest)
        planes = self.first(_enlarged(planes, -(-self.spec.side // 2))).relu()
        made: Tensor = self.second(_enlarged(planes, self.spec.side)).sigmoid()
        return made.view(*code.shape[:2], -1)


def _enlarged(planes: Tensor, side: int) -> Tensor:
    return nn.functional.interpolate(planes, (side, side), mode="bilinear", align_corners=False)
