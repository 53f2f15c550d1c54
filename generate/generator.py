"""The class-conditional generator, for images of any size from 8 to 64 pixels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from ..common.errors import GeneratorError

_FACTOR_SCALE: Final = 0.1
_CONVOLUTION_SCALE: Final = 0.1


@dataclass(frozen=True)
class GeneratorSpec:
    """All that is needed beside its weights to rebuild a generator.

    Attributes:
        side: height and width of an image.
        classes: number of classes.
        code: length of the latent code, which is also the number of factors of each class.
        hidden: width of the convolutional part's first layer.
        channels: of the two convolutions' inputs.
    """

    side: int
    classes: int
    code: int = 24
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
    """Latent code and class to an image: a linear model of each class plus convolutions.

    The convolutional part is the generator of the paper (Yang et al., arXiv 2303.01687, after
    DP-MERF): linear, batch norm, ReLU, linear, batch norm, then twice (double the size, convolve).
    Alone, it tends to match a noisy mean embedding with fragments of strokes. So each class also
    has a template and some factors, which the latent code weighs; both are smooth, being drawn at
    half the resolution. Started at the class means, this part holds the images together while the
    convolutions learn what a linear model cannot say.
    """

    def __init__(self, spec: GeneratorSpec) -> None:
        super().__init__()
        self.spec = spec
        first, second = spec.channels
        coarse = min(spec.side, max(8, -(-spec.side // 2)))
        self._base = -(-spec.side // 4)
        self.template = nn.Parameter(torch.full((spec.classes, 1, coarse, coarse), 0.5))
        self.factors = nn.Parameter(
            _FACTOR_SCALE * torch.randn(spec.classes, spec.code, coarse, coarse)
        )
        self.first = nn.Linear(spec.code + spec.classes, spec.hidden)
        self.first_norm = nn.BatchNorm1d(spec.hidden)
        self.second = nn.Linear(spec.hidden, first * self._base**2)
        self.second_norm = nn.BatchNorm1d(first * self._base**2)
        self.first_convolution = nn.Conv2d(first, second, 5, padding=2)
        self.second_convolution = nn.Conv2d(second, 1, 5, padding=2, bias=False)
        self.enlarge = nn.UpsamplingBilinear2d(scale_factor=2)
        with torch.no_grad():  # begin close to the linear model
            self.second_convolution.weight.mul_(_CONVOLUTION_SCALE)

    @torch.no_grad()
    def start_from(self, means: Tensor) -> None:
        """Take the mean image of each class as its template.

        Args:
            means: (classes, side * side), values 0..1.
        """
        images = means.view(-1, 1, self.spec.side, self.spec.side)
        coarse = self.template.shape[-1]
        self.template.copy_(nn.functional.interpolate(images, (coarse, coarse), mode="area"))

    def forward(self, code: Tensor, classes: Tensor) -> Tensor:
        """Make the same number of images of each of some classes.

        Args:
            code: (k, b, code), standard normal.
            classes: int64 (k,), the class of each group.

        Returns:
            (k, b, side * side), values 0..1.
        """
        linear = code @ self._enlarged(self.factors[classes])
        linear = linear + self._enlarged(self.template[classes])
        labels = classes.repeat_interleave(code.shape[1])
        curved = self._convolutional_part(code.flatten(0, 1), labels)
        return (linear + curved.view_as(linear)).clamp(0.0, 1.0)

    def _enlarged(self, coarse: Tensor) -> Tensor:
        """(k, r, coarse, coarse) to (k, r, side * side)."""
        size = (self.spec.side, self.spec.side)
        fine = nn.functional.interpolate(coarse, size, mode="bicubic", align_corners=False)
        return fine.flatten(2)

    def _convolutional_part(self, code: Tensor, labels: Tensor) -> Tensor:
        """(n, code) and (n,) to (n, side * side)."""
        one_hot = nn.functional.one_hot(labels, self.spec.classes).to(code.dtype)
        values = self.first_norm(self.first(torch.cat([code, one_hot], dim=1))).relu()
        values = self.second_norm(self.second(values)).relu()
        images = values.view(-1, self.spec.channels[0], self._base, self._base)
        images = self.first_convolution(self.enlarge(images)).relu()
        images = self.second_convolution(self.enlarge(images))
        # Sides that 4 does not divide: cut the margin off evenly.
        margin = (4 * self._base - self.spec.side) // 2
        window = slice(margin, margin + self.spec.side)
        cut: Tensor = images[:, 0, window, window].flatten(1)
        return cut
