"""The conditional convolutional generator of the paper, for images of any size from 8 to 64."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from torch import Tensor, nn

from ...common.errors import GeneratorError
from ...common.schema.classes import MOST_CLASSES
from ...common.schema.image import COLOUR, GREY, LARGEST_SIDE, SMALLEST_SIDE
from ..fit.layers import BatchNorm, conditioned, normalised_layer

_MOST_CODE: Final = 1000
_HIDDEN: Final = 200
_PLANES: Final = 16, 8
_KERNEL: Final = 5


@dataclass(frozen=True)
class ConvolutionalSpec:
    """All that is needed beside its weights to rebuild a generator.

    Attributes:
        side: height and width of an image.
        classes: number of classes.
        code: length of the latent code.
        channels: of an image, 1 or 3.

    Raises:
        GeneratorError: a number is out of its range.
    """

    side: int
    classes: int
    code: int
    channels: int = GREY

    def __post_init__(self) -> None:
        if not (
            SMALLEST_SIDE <= self.side <= LARGEST_SIDE
            and 1 <= self.classes <= MOST_CLASSES
            and 1 <= self.code <= _MOST_CODE
            and self.channels in (GREY, COLOUR)
        ):
            raise GeneratorError("the generator's description is out of range")

    def to_json(self) -> dict[str, Any]:
        """A plain mapping."""
        return asdict(self)


class ConvolutionalGenerator(nn.Module):
    """Latent code and one-hot class to an image.

    Two fully connected layers with batch norm, then twice an upsampling to double the size and a
    5x5 convolution, and a sigmoid: the network of DP-MERF (Harder et al. 2021), which DP-NTK (Yang
    et al., arXiv 2303.01687) takes for MNIST and FashionMNIST.
    """

    def __init__(self, spec: ConvolutionalSpec) -> None:
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
