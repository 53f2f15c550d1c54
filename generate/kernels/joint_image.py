"""Inner products of tangent features and pixels side by side, for generated records."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...common.features.joint_image import JointImageFeatures
from .base import KERNELS, FeatureMatrix
from .pixels import PixelKernel
from .tangent import Gradients, TangentKernel


@dataclass(frozen=True, eq=False)
class Beside:
    """Two features of a batch, as one longer feature.

    Attributes:
        first: the gradients, not yet multiplied by `weight`.
        weight: of the gradients.
        second: the features that follow, with their weight applied.
    """

    first: Gradients
    weight: float
    second: FeatureMatrix

    def inner(self, matrix: Tensor) -> Tensor:
        """See `Features`."""
        border = matrix.shape[1] - self.second.values.shape[-1]
        first = self.weight * self.first.inner(matrix[:, :border])
        return first + self.second.inner(matrix[:, border:])

    def gram(self) -> Tensor:
        """See `Features`."""
        return self.weight**2 * self.first.gram() + self.second.gram()

    def numbers(self) -> int:
        """See `Features`."""
        return self.first.numbers() + self.second.numbers()


@KERNELS.add(JointImageFeatures)
class JointImageKernel:
    """`JointImageFeatures` in floating point."""

    def __init__(
        self,
        feature_map: JointImageFeatures,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self._map = feature_map
        self._main = TangentKernel(feature_map.main, device, dtype)
        self._pixels = PixelKernel(feature_map.pixels, device, dtype)

    def features(self, records: Tensor) -> Beside:
        """See `Kernel`."""
        of_main, of_pixels = self._map.weights_of_parts
        pixels = self._pixels.features(records)
        weighed = replace(pixels, values=of_pixels * pixels.values)
        return Beside(self._main.features(records), of_main, weighed)
