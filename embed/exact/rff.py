"""Random Fourier features in whole grid units, without rounding errors.

A phase t x is a whole number of 2^-32 turns, exact in float64 whatever the order of summation. Its
first 20 binary digits are looked up in a table of cosines, truncated to whole grid units. So the
feature is a function of the record's bytes, and cos^2 + sin^2 <= 1 holds in integers too.
Truncating the phase changes a coordinate by less than 2 pi 2^-20 of its largest size.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import torch
from torch import Tensor

from ...common.features.rff import RandomFourierFeatures
from .base import EXACT_FORMS, KEPT, SAFETY, ExplicitFeatures, rows_at_once
from .grid import Grid

_TABLE: Final = 2**20
_CHUNK: Final = 1024


@EXACT_FORMS.add(RandomFourierFeatures)
class ExactRFF:
    """`RandomFourierFeatures` in whole grid units.

    Args:
        feature_map: the map.
        grid: the unit.
        device: where records are.
        size: at most 1: features are multiplied by it, as a part of a longer vector.

    Guarantee:
        As for `ExactTangentFeatures`: a feature depends on its record's bytes, the weights, the
        grid and the table alone, and its norm is at most `size`. (docs/privacy/proofs.md, statement
        3.)
    """

    def __init__(
        self,
        feature_map: RandomFourierFeatures,
        grid: Grid,
        device: torch.device,
        size: float = 1.0,
    ) -> None:
        # In steps of the table, which are 2^12 units of the frequencies' grid: phases stay exact.
        steps = torch.as_tensor(feature_map.turns, dtype=torch.float64, device=device) * _TABLE
        self._steps = steps.T.contiguous()
        largest = SAFETY * size * grid.units_per_one / math.sqrt(feature_map.frequencies)
        angles = np.arange(_TABLE) * (2 * np.pi / _TABLE)
        table = np.trunc(np.cos(angles) * largest).astype(np.int64)
        self._table = torch.from_numpy(table).to(device)
        kept = max(1, KEPT // feature_map.dimension) if device.type == "cpu" else _CHUNK
        self._chunk = min(_CHUNK, kept)

    @property
    def chunk_size(self) -> int:
        """Any number would do; this one keeps the memory small."""
        return self._chunk

    def features(self, records: Tensor) -> ExplicitFeatures:
        """Features of a batch.

        Args:
            records: float64 (b, record size), integers 0..levels.
        """
        phases = records @ self._steps
        values = torch.empty(
            (len(phases), 2 * phases.shape[1]), dtype=torch.int64, device=phases.device
        )
        rows = rows_at_once(values)
        for some, waves in zip(phases.split(rows), values.split(rows), strict=True):
            index = some.floor_().to(torch.int64) & (_TABLE - 1)
            # sin(a) = cos(a - a quarter turn)
            both = torch.cat([index, (index - _TABLE // 4) & (_TABLE - 1)], dim=1)
            torch.index_select(self._table, 0, both.view(-1), out=waves.view(-1))
        return ExplicitFeatures(values)
