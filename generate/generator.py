"""The class-conditional generator, for images of any size from 8 to 64 pixels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from ..common.errors import GeneratorError

_FACTOR_SCALE: Final = 0.1


@dataclass(frozen=True)
class GeneratorSpec:
    """All that is needed beside its weights to rebuild a generator.

    Attributes:
        side: height and width of an image.
        classes: number of classes.
        code: length of the latent code, which is also the number of factors of each class.
    """

    side: int
    classes: int
    code: int = 24

    def to_json(self) -> dict[str, Any]:
        """A plain mapping that `from_json` reads back."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> GeneratorSpec:
        """Read what `to_json` wrote.

        Raises:
            GeneratorError: it is no such document.
        """
        try:
            spec = cls(**document)
            numbers: list[Any] = [spec.side, spec.classes, spec.code]
        except TypeError as error:
            raise GeneratorError("the generator's description is not one of dpntk's") from error
        if not all(isinstance(n, int) and 0 < n <= 1 << 16 for n in numbers):
            raise GeneratorError("the generator's description is out of range")
        return spec


class ConditionalGenerator(nn.Module):
    """Latent code and class to an image: a linear model of each class, cut to 0..1.

    Each class has a template and some factors, which the latent code weighs: a Gaussian of low
    rank. Both are smooth, being drawn at half the resolution, and begin at the class means with
    small random factors.

    The paper's generator (Yang et al., arXiv 2303.01687, after DP-MERF) is convolutional. From a
    mean embedding with noise it learns fragments of strokes. In trials on MNIST at epsilon 1,
    neither convolutions nor a hidden layer nor several templates a class beside the linear model
    made the records more useful on the whole, and convolutions took most of the time.
    """

    def __init__(self, spec: GeneratorSpec) -> None:
        super().__init__()
        self.spec = spec
        coarse = min(spec.side, max(8, -(-spec.side // 2)))
        self.template = nn.Parameter(torch.full((spec.classes, 1, coarse, coarse), 0.5))
        self.factors = nn.Parameter(
            _FACTOR_SCALE * torch.randn(spec.classes, spec.code, coarse, coarse)
        )

    @torch.no_grad()
    def start_from(self, means: Tensor) -> None:
        """Take the mean image of each class as its template.

        Args:
            means: (classes, side * side), values 0..1.
        """
        images = means.view(-1, 1, self.spec.side, self.spec.side)
        size = self.template.shape[-2:]
        self.template.copy_(nn.functional.interpolate(images, size, mode="area"))

    def forward(self, code: Tensor, classes: Tensor) -> Tensor:
        """Make the same number of images of each of some classes.

        Args:
            code: (k, b, code), standard normal.
            classes: int64 (k,), the class of each group.

        Returns:
            (k, b, side * side), values 0..1.
        """
        factors, template = self.factors[classes], self.template[classes]
        made = self._enlarged(template) + code @ self._enlarged(factors)
        return made.clamp(0.0, 1.0)

    def _enlarged(self, coarse: Tensor) -> Tensor:
        """(k, r, coarse, coarse) to (k, r, side * side)."""
        size = (self.spec.side, self.spec.side)
        fine = nn.functional.interpolate(coarse, size, mode="bicubic", align_corners=False)
        return fine.flatten(2)
