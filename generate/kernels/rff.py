"""Random Fourier features of generated records."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ...common.features.rff import RandomFourierFeatures
from .base import KERNELS, FeatureMatrix


@KERNELS.add(RandomFourierFeatures)
class FourierKernel:
    """`RandomFourierFeatures` in floating point."""

    def __init__(
        self,
        feature_map: RandomFourierFeatures,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        turns = torch.as_tensor(feature_map.turns, device=device, dtype=dtype)
        self._frequencies = turns.T * (2 * math.pi * feature_map.levels)
        self._size = 1 / math.sqrt(feature_map.frequencies)

    def features(self, records: Tensor) -> FeatureMatrix:
        """See `Kernel`."""
        phases = records @ self._frequencies
        return FeatureMatrix(torch.cat([phases.cos(), phases.sin()], dim=-1) * self._size)
