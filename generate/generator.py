"""The class-conditional convolutional generator of the paper, for any size from 8 to 64 pixels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..common.errors import GeneratorError


@dataclass(frozen=True)
class GeneratorSpec:
    """All that is needed beside its weights to rebuild a generator.

    Attributes:
        side: height and width of an image.
        classes: number of classes.
        code: length of the latent code.
        hidden: width of the first layer.
        channels: of the two convolutions' inputs.
    """

    side: int
    classes: int
    code: int = 5
    hidden: int = 200
    channels: tuple[int, int] = (16, 8)

    def to_json(self) -> dict[str, Any]:
        """A plain mapping that `from_json` reads back."""
        return {**asdict(self), "channels": list(self.channels)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> GeneratorSpec:
        """Read what `to_json` wrote.

        Raises:
            GeneratorError: it is no such document.
        """
        try:
            first, second = document["channels"]
            spec = cls(**{**document, "channels": (first, second)})
            numbers = [spec.side, spec.classes, spec.code, spec.hidden, first, second]
        except (KeyError, TypeError, ValueError) as error:
            raise GeneratorError("the generator's description is not one of dpntk's") from error
        if not all(isinstance(n, int) and 0 < n <= 1 << 16 for n in numbers):
            raise GeneratorError("the generator's description is out of range")
        return spec


class ConditionalGenerator(nn.Module):
    """Latent code and one-hot label to an image: two linear layers, two convolutions.

    After Yang et al. (arXiv 2303.01687), appendix on MNIST, and DP-MERF's generator: linear,
    batch norm, ReLU, linear, batch norm, then twice (double the size, convolve), sigmoid.
    """

    def __init__(self, spec: GeneratorSpec) -> None:
        super().__init__()
        self.spec = spec
        first, second = spec.channels
        self._base = -(-spec.side // 4)
        self.first = nn.Linear(spec.code + spec.classes, spec.hidden)
        self.first_norm = nn.BatchNorm1d(spec.hidden)
        self.second = nn.Linear(spec.hidden, first * self._base**2)
        self.second_norm = nn.BatchNorm1d(first * self._base**2)
        self.first_convolution = nn.Conv2d(first, second, 5, padding=2)
        self.second_convolution = nn.Conv2d(second, 1, 5, padding=2)
        self.enlarge = nn.UpsamplingBilinear2d(scale_factor=2)

    def forward(self, code: Tensor, labels: Tensor) -> Tensor:
        """Make images.

        Args:
            code: (n, code), standard normal.
            labels: int64 (n,).

        Returns:
            (n, side * side), values 0..1.
        """
        one_hot = nn.functional.one_hot(labels, self.spec.classes).to(code.dtype)
        values = self.first_norm(self.first(torch.cat([code, one_hot], dim=1))).relu()
        values = self.second_norm(self.second(values)).relu()
        images = values.unflatten(1, (self.spec.channels[0], self._base, self._base))
        images = self.first_convolution(self.enlarge(images)).relu()
        images = self.second_convolution(self.enlarge(images)).sigmoid()
        # Sides that 4 does not divide: cut the margin off evenly.
        margin = (4 * self._base - self.spec.side) // 2
        window = slice(margin, margin + self.spec.side)
        cut: Tensor = images[:, 0, window, window].flatten(1)
        return cut
