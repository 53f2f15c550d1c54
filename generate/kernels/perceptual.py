"""What a module says of generated records."""

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
        SchemaError: the module is missing, or another one.
    """

    def __init__(
        self,
        feature_map: PerceptualFeatures,
        device: torch.device,
        dtype: torch.dtype = torch.float32,  # the module's own, always
        module: PublicModule | None = None,
    ) -> None:
        self._module = require_module(feature_map, module).to(device)

    def features(self, records: Tensor) -> FeatureMatrix:
        """See `Kernel`."""
        said = self._module(records.flatten(0, 1))
        size = torch.linalg.vector_norm(said, dim=1, keepdim=True)
        values = said / size.clamp_min(torch.finfo(torch.float32).tiny)
        return FeatureMatrix(values.view(*records.shape[:2], -1))
