"""Find the differentiable form of a feature map."""

from __future__ import annotations

import torch

from ...common.features.base import FeatureMap
from ...common.features.torchscript import PublicModule
from .base import KERNELS, Kernel


def kernel_of(
    feature_map: FeatureMap,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    module: PublicModule | None = None,
) -> Kernel:
    """Make the differentiable form of a feature map.

    Args:
        feature_map: the map.
        device: where records are.
        dtype: of records, where the map leaves a choice.
        module: the result of `module_for` for the map.

    Raises:
        SchemaError: the map's module is missing.
    """
    form = KERNELS.entries().get(type(feature_map))
    if form is None:
        raise TypeError(f"no differentiable form of {feature_map!r} is known")
    computed_by = {} if module is None else {"module": module}
    return form(feature_map, device, dtype, **computed_by)
