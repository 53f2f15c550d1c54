"""Feature maps as the generator sees them: in floating point, and differentiable."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ...common.features.base import FeatureMap
from ...common.features.hermite import HermiteFeatures, terms_from
from ...common.features.ntk.map import TangentFeatures
from ...common.features.perceptual import PerceptualFeatures
from ...common.features.rff import RandomFourierFeatures
from ...common.features.torchscript import PublicModule, require_module
from .tangent import TangentKernel


class Features(Protocol):
    """Features of a batch, grouped by class, in whatever form inner products of them are cheap."""

    def inner(self, matrix: Tensor) -> Tensor:
        """<matrix[c], phi(x)> for each record x of class c; matrix (c, d), the result (c, b)."""
        ...

    def gram(self) -> Tensor:
        """<phi(x), phi(x')> for all pairs of records within each class, (c, b, b)."""
        ...

    def numbers(self) -> int:
        """How many numbers are held."""
        ...


class Kernel(Protocol):
    """A feature map in floating point."""

    def features(self, records: Tensor) -> Features:
        """Features of records (c, b, record size), values 0..1."""
        ...


def kernel_of(
    feature_map: FeatureMap,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    module: PublicModule | None = None,
) -> Kernel:
    """A feature map as the generator sees it.

    Args:
        feature_map: the map.
        device: where records are.
        dtype: of records, where the map leaves a choice.
        module: what `module_for` gives for the map.

    Raises:
        SchemaError: the map's module is missing.
    """
    if isinstance(feature_map, TangentFeatures):
        return TangentKernel(feature_map, device, dtype)
    if isinstance(feature_map, RandomFourierFeatures):
        return FourierKernel(feature_map, device, dtype)
    if isinstance(feature_map, HermiteFeatures):
        return HermiteKernel(feature_map, device)
    if isinstance(feature_map, PerceptualFeatures):
        return PerceptualKernel(feature_map, device, module)
    raise TypeError(f"no differentiable form of {type(feature_map).__name__} is known")


@dataclass(frozen=True, eq=False)
class FeatureMatrix:
    """Features that are few enough to be written out.

    Attributes:
        values: (c, b, d).
    """

    values: Tensor

    def inner(self, matrix: Tensor) -> Tensor:
        """See `Features`."""
        product: Tensor = (self.values @ matrix[:, :, None])[..., 0]
        return product

    def gram(self) -> Tensor:
        """See `Features`."""
        return self.values @ self.values.mT

    def numbers(self) -> int:
        """See `Features`."""
        return self.values.numel()


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


class HermiteKernel:
    """`HermiteFeatures` in floating point."""

    def __init__(
        self,
        feature_map: HermiteFeatures,
        device: torch.device,
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


class PerceptualKernel:
    """`PerceptualFeatures` in floating point.

    Raises:
        SchemaError: the module is missing, or another one.
    """

    def __init__(
        self,
        feature_map: PerceptualFeatures,
        device: torch.device,
        module: PublicModule | None,
    ) -> None:
        self._module = require_module(feature_map, module).to(device)

    def features(self, records: Tensor) -> FeatureMatrix:
        """See `Kernel`."""
        said = self._module(records.flatten(0, 1))
        size = torch.linalg.vector_norm(said, dim=1, keepdim=True)
        values = said / size.clamp_min(torch.finfo(torch.float32).tiny)
        return FeatureMatrix(values.view(*records.shape[:2], -1))
