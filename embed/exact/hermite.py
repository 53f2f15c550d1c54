"""Hermite features in whole grid units: values have so few levels that tables hold them all.

The sum kernel's part is looked up in a table of whole numbers. The product kernel's part is the
product of two float64 table entries, scaled and truncated. These operations are elementwise, so
IEEE 754 defines the result to the last bit.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import torch
from torch import Tensor

from ...common.errors import SchemaError
from ...common.features.hermite import MARGIN, HermiteFeatures, hermite
from .base import EXACT_FORMS, SAFETY, ExplicitFeatures
from .grid import Grid

_CHUNK: Final = 256


@EXACT_FORMS.add(HermiteFeatures)
class ExactHermite:
    """`HermiteFeatures` in whole grid units.

    Guarantee:
        As for `ExactTangentFeatures`: a feature depends on its record's bytes, the weights, the
        grid and the tables alone, and its norm is at most 1. Terms have either sign. Inner products
        of a nonnegative map stay at or above 0 because they are at least MARGIN / 2 before
        truncation, and truncation changes a term by less than 1. (docs/privacy/proofs.md, statement
        3.)

    Raises:
        SchemaError: the grid is so coarse that truncation could make inner products negative.
    """

    def __init__(self, feature_map: HermiteFeatures, grid: Grid, device: torch.device) -> None:
        values = np.arange(feature_map.levels + 1) / feature_map.levels
        size = SAFETY * grid.units_per_one
        if feature_map.nonnegative and 3 * math.sqrt(feature_map.dimension) > size * MARGIN / 2:
            raise SchemaError(
                f"a capacity of {grid.capacity} records: too many for Hermite features, whose "
                "terms would be cut too coarsely"
            )
        single = hermite(values, feature_map.order, feature_map.rho)
        scaled = np.trunc(single * (size / math.sqrt(2 * feature_map.record_size)))
        self._single = torch.from_numpy(scaled.astype(np.int64)).to(device)
        several = hermite(values, feature_map.pair_order, feature_map.rho)
        self._several = torch.from_numpy(several).to(device)
        self._pair_size = size / math.sqrt(2 * len(feature_map.pairs))
        pairs = torch.from_numpy(feature_map.pairs).to(device, torch.int64)
        self._first, self._second = pairs[:, 0], pairs[:, 1]

    @property
    def chunk_size(self) -> int:
        """Any number would do; this one keeps the memory small."""
        return _CHUNK

    def features(self, records: Tensor) -> ExplicitFeatures:
        """Features of a batch.

        Args:
            records: float64 (b, record size), integers 0..levels.
        """
        index = records.to(torch.int64)
        single = self._single[index].flatten(1)
        first, second = self._several[index[:, self._first]], self._several[index[:, self._second]]
        products = first[..., :, None] * second[..., None, :] * self._pair_size
        return ExplicitFeatures(torch.cat([single, products.flatten(1).to(torch.int64)], dim=1))
