"""Tangent features and pixels side by side, in whole grid units."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from ...common.features.joint_image import JointImageFeatures
from ...common.numerics.exact import sum_of_squares
from ...common.numerics.square_root import square_root
from .base import EXACT_FORMS, SAFETY, ExplicitFeatures
from .grid import Grid
from .joint import SideBySide
from .tangent import ExactTangentFeatures

_CHUNK: Final = 1024


class ExactPixels:
    """(x, s) / ||(x, s)|| in whole grid units.

    Args:
        grid: the unit.
        constant: s, a whole number above 0.
        size: at most 1: features are multiplied by it.

    Guarantee:
        A feature depends on its record's bytes and on the grid alone: the squared norm is a sum of
        whole numbers below 2^53, which is exact, and all after that is elementwise. It is no
        longer than `size`: it is shortened by 2^-40, more than three roundings of 2^-53 can
        lengthen it, and cut towards zero. (docs/privacy/proofs.md, statement 3.)
    """

    def __init__(self, grid: Grid, constant: int, size: float) -> None:
        self._constant = float(constant)
        self._length = SAFETY * size * grid.units_per_one

    def features(self, records: Tensor) -> ExplicitFeatures:
        """Features of a batch.

        Args:
            records: float64 (b, record size), integers 0..levels.
        """
        extended = torch.nn.functional.pad(records, (0, 1), value=self._constant)
        norm = square_root(sum_of_squares(extended))
        return ExplicitFeatures((extended * (self._length / norm)[:, None]).to(torch.int64))


@EXACT_FORMS.add(JointImageFeatures)
class ExactJointImage:
    """`JointImageFeatures` in whole grid units.

    Guarantee:
        As for `ExactJoint`. (docs/privacy/proofs.md, statement 3.)
    """

    def __init__(self, feature_map: JointImageFeatures, grid: Grid, device: torch.device) -> None:
        of_main, of_pixels = feature_map.weights_of_parts
        self._main = ExactTangentFeatures(feature_map.main, grid, device, of_main)
        self._pixels = ExactPixels(grid, feature_map.constant, of_pixels)
        border = feature_map.main.dimension
        self._places = slice(0, border), slice(border, feature_map.dimension)

    @property
    def chunk_size(self) -> int:
        """How many records may be summed at a time."""
        return min(self._main.chunk_size, _CHUNK)

    def features(self, records: Tensor) -> SideBySide:
        """Features of a batch.

        Args:
            records: float64 (b, record size), integers 0..levels.
        """
        parts = self._main.features(records), self._pixels.features(records)
        return SideBySide(parts, self._places)
