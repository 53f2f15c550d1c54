"""Inner products of pixels, for generated records."""

from __future__ import annotations

import torch
from torch import Tensor

from ...common.features.pixels import PixelFeatures
from .base import KERNELS, FeatureMatrix


@KERNELS.add(PixelFeatures)
class PixelKernel:
    """`PixelFeatures` in floating point."""

    def __init__(
        self,
        feature_map: PixelFeatures,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self._constant = feature_map.constant / feature_map.levels

    def features(self, records: Tensor) -> FeatureMatrix:
        """See `Kernel`."""
        extended = torch.nn.functional.pad(records, (0, 1), value=self._constant)
        norm = torch.linalg.vector_norm(extended, dim=-1, keepdim=True)
        return FeatureMatrix(extended / norm, whole=True)
