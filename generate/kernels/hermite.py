"""Hermite features of generated records."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ...common.features.hermite import HermiteFeatures, terms_from
from .base import KERNELS, FeatureMatrix


@KERNELS.add(HermiteFeatures)
class HermiteKernel:
    """`HermiteFeatures` in floating point."""

    def __init__(
        self,
        feature_map: HermiteFeatures,
        device: torch.device,
        dtype: torch.dtype = torch.float32,  # ignored: the records' own is used
    ) -> None:
        self._map = feature_map
        pairs = torch.as_tensor(feature_map.pairs, device=device).to(torch.int64)
        self._first, self._second = pairs[:, 0], pairs[:, 1]

    def features(self, records: Tensor) -> FeatureMatrix:
        """See `Kernel`."""
        order, rho = max(self._map.order, self._map.pair_order), self._map.rho
        constant = (1 - rho**2) ** 0.25 * torch.exp(-rho / (1 + rho) * records.square())
        terms = torch.stack(terms_from(constant, records, order, rho), dim=-1)
        single = terms[..., : self._map.order + 1].flatten(2)
        several = terms[..., : self._map.pair_order + 1]
        first = several[:, :, self._first] / math.sqrt(2 * len(self._first))
        products = first[..., :, None] * several[:, :, self._second, None, :]
        single = single / math.sqrt(2 * self._map.record_size)
        return FeatureMatrix(torch.cat([single, products.flatten(2)], dim=-1))
