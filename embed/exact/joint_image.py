"""Tangent features and pixels side by side, in whole grid units."""

from __future__ import annotations

import torch
from torch import Tensor

from ...common.features.joint_image import JointImageFeatures
from .base import EXACT_FORMS
from .grid import Grid
from .joint import SideBySide
from .pixels import ExactPixels
from .tangent import ExactTangentFeatures


@EXACT_FORMS.add(JointImageFeatures)
class ExactJointImage:
    """`JointImageFeatures` in whole grid units.

    Guarantee:
        As for `ExactJoint`. (docs/privacy/proofs.md, statement 3.)
    """

    def __init__(self, feature_map: JointImageFeatures, grid: Grid, device: torch.device) -> None:
        of_main, of_pixels = feature_map.weights_of_parts
        self._main = ExactTangentFeatures(feature_map.main, grid, device, of_main)
        self._pixels = ExactPixels(feature_map.pixels, grid, device, of_pixels)
        border = feature_map.main.dimension
        self._places = slice(0, border), slice(border, feature_map.dimension)

    @property
    def chunk_size(self) -> int:
        """The most records whose features are asked for at a time."""
        return min(self._main.chunk_size, self._pixels.chunk_size)

    def features(self, records: Tensor) -> SideBySide:
        """Features of a batch.

        Args:
            records: float64 (b, record size), integers 0..levels.
        """
        parts = self._main.features(records), self._pixels.features(records)
        return SideBySide(parts, self._places)
