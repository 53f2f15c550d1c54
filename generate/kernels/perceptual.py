"""Features of generated records, computed by a module."""

from __future__ import annotations

import torch
from torch import Tensor

from ...common.features.perceptual import PerceptualFeatures
from ...common.features.torchscript import PublicModule, require_module
from .base import KERNELS, FeatureMatrix


@KERNELS.add(PerceptualFeatures)
class PerceptualKernel:
    """`PerceptualFeatures` in floating point.

    Raises:
        SchemaError: the module is missing, or is another one.
    """

    def __init__(
        self,
        feature_map: PerceptualFeatures,
        device: torch.device,
        dtype: torch.dtype = torch.float32,  # ignored: the module has its own
        module: PublicModule | None = None,
    ) -> None:
        self._map = feature_map
        self._module = require_module(feature_map, module).to(device)

    def features(self, records: Tensor) -> FeatureMatrix:
        """See `Kernel`."""
        said = self._module(records.flatten(0, 1))
        if self._map.rectified:
            said = said.relu()
        values = _of_length_one(said)
        if self._map.squares:
            # Normalisation changes the squares of a vector only by a factor.
            squares = self._map.squares * _of_length_one(values.square())
            values = torch.cat([self._map.main_weight * values, squares], dim=1)
        return FeatureMatrix(values.view(*records.shape[:2], -1))


def _of_length_one(vectors: Tensor) -> Tensor:
    size = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    shortened: Tensor = vectors / size.clamp_min(torch.finfo(torch.float32).tiny)
    return shortened
