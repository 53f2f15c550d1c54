"""Which feature map has which exact form."""

from __future__ import annotations

import torch

from ...common.errors import SchemaError
from ...common.features.base import FeatureMap
from ...common.features.hermite import HermiteFeatures
from ...common.features.joint import JointFeatures
from ...common.features.marginals import MarginalFeatures
from ...common.features.ntk.map import TangentFeatures
from ...common.features.perceptual import PerceptualFeatures
from ...common.features.rff import RandomFourierFeatures
from ...common.features.torchscript import PublicModule
from .base import ExactMap
from .grid import Grid
from .hermite import ExactHermite
from .joint import ExactJoint, ExactMarginals
from .perceptual import ExactPerceptual
from .rff import ExactRFF
from .tangent import ExactTangentFeatures


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
        device: where sums are.
        module: what `module_for` gives for the map.

    Raises:
        SchemaError: the grid is for records of other levels, or the map's module is missing.
    """
    if grid.levels != feature_map.levels:
        raise SchemaError("the grid and the feature map disagree about the records' levels")
    if isinstance(feature_map, TangentFeatures):
        return ExactTangentFeatures(feature_map, grid, device)
    if isinstance(feature_map, JointFeatures):
        return ExactJoint(feature_map, grid, device)
    if isinstance(feature_map, MarginalFeatures):
        return ExactMarginals(feature_map, grid, device)
    if isinstance(feature_map, RandomFourierFeatures):
        return ExactRFF(feature_map, grid, device)
    if isinstance(feature_map, HermiteFeatures):
        return ExactHermite(feature_map, grid, device)
    if isinstance(feature_map, PerceptualFeatures):
        return ExactPerceptual(feature_map, grid, device, module)
    raise TypeError(f"no exact form of {feature_map!r} is known")
