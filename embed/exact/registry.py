"""The exact form of each feature map."""

from __future__ import annotations

import torch

from ...common.errors import SchemaError
from ...common.features.base import FeatureMap
from ...common.features.torchscript import PublicModule
from .base import EXACT_FORMS, ExactMap
from .grid import Grid


def exact_map(
    feature_map: FeatureMap,
    grid: Grid,
    device: torch.device,
    module: PublicModule | None = None,
) -> ExactMap:
    """The exact form of a feature map.

    Args:
        feature_map: the map.
        grid: the unit of its features.
        device: where the sums are.
        module: the result of `module_for` for the map.

    Raises:
        SchemaError: the grid is for records with other levels, or the map's module is missing.
    """
    if grid.levels != feature_map.levels:
        raise SchemaError("the grid and the feature map disagree about the records' levels")
    form = EXACT_FORMS.entries().get(type(feature_map))
    if form is None:
        raise TypeError(f"no exact form of {feature_map!r} is known")
    computed_by = {} if module is None else {"module": module}
    return form(feature_map, grid, device, **computed_by)
