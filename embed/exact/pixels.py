"""Pixels as features, in whole grid units."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from ...common.features.pixels import PixelFeatures
from ...common.numerics.exact import sum_of_squares
from ...common.numerics.square_root import square_root
from .base import EXACT_FORMS, SAFETY, ExplicitFeatures
from .grid import Grid

_CHUNK: Final = 1024


@EXACT_FORMS.add(PixelFeatures)
class ExactPixels:
    """`PixelFeatures` in whole grid units.

    Args:
        feature_map: the map.
        grid: the unit.
        device: where the records are; nothing has to be prepared there.
        size: at most 1: features are multiplied by it.

    Guarantee:
        A feature depends on its record's bytes and on the grid alone: the squared norm is a sum of
        integers below 2^53, which is exact, and all later steps are elementwise. Its norm is at
        most `size`: it is shortened by 2^-40, more than three roundings of 2^-53 can lengthen it,
        and truncated towards zero. (docs/privacy/proofs.md, statement 3.)
    """

    def __init__(
        self, feature_map: PixelFeatures, grid: Grid, device: torch.device, size: float = 1.0
    ) -> None:
        self._constant = float(feature_map.constant)
        self._length = SAFETY * size * grid.units_per_one

    @property
    def chunk_size(self) -> int:
        """Any number would do; this one keeps the memory small."""
        return _CHUNK

    def features(self, records: Tensor) -> ExplicitFeatures:
        """Features of a batch.

        Args:
            records: float64 (b, record size), integers 0..levels.
        """
        extended = torch.nn.functional.pad(records, (0, 1), value=self._constant)
        norm = square_root(sum_of_squares(extended))
        return ExplicitFeatures((extended * (self._length / norm)[:, None]).to(torch.int64))
