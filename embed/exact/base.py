"""What the exact form of a feature map offers, and which map has which.

A record's feature is a vector of whole numbers, in grid units, that depends on the record's bytes
alone and is no longer than the map's bound; sums of them are exact. (docs/privacy.md, statements 3
and 4.)
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from ...common.errors import SchemaError
from ...common.features.base import FeatureMap
from ...common.features.hermite import HermiteFeatures
from ...common.features.joint import JointFeatures
from ...common.features.marginals import MarginalFeatures
from ...common.features.ntk.map import TangentFeatures
from ...common.features.perceptual import PerceptualFeatures
from ...common.features.rff import RandomFourierFeatures
from ...common.features.torchscript import PublicModule
from .grid import Grid
from .hermite import ExactHermite
from .joint import ExactJoint, ExactMarginals
from .perceptual import ExactPerceptual
from .rff import ExactRFF
from .tangent import ExactTangentFeatures


class BatchFeatures(Protocol):
    """Features of a batch, in whatever form they can be added up cheaply."""

    def norms(self) -> Tensor:
        """Norms in grid units, float64 (b,)."""
        ...

    def add_to(self, column: Tensor, rows: slice) -> None:
        """Add the features of some records to a column of class sums, int64 (d,)."""
        ...


class ExactMap(Protocol):
    """A feature map in whole grid units."""

    @property
    def chunk_size(self) -> int:
        """How many records may be summed at a time."""
        ...

    def features(self, records: Tensor) -> BatchFeatures:
        """Features of a batch of float64 records (b, record size), integers 0..levels."""
        ...


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
