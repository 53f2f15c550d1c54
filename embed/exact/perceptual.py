"""Perceptual features in whole grid units.

A module adds in floating point, in an order that depends on batches and threads. So it always gets
one record at a time, in the same way, on a CPU: its output is then a function of that record. All
later steps are elementwise in float64, or add in a fixed order.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from ...common.errors import DataError
from ...common.features.perceptual import PerceptualFeatures
from ...common.features.torchscript import PublicModule, require_module
from ...common.numerics.exact import sum_of_squares
from ...common.numerics.square_root import square_root
from .base import EXACT_FORMS, SAFETY, ExplicitFeatures
from .grid import Grid

_LARGEST_CHUNK: Final = 64
_CHUNK_VALUES: Final = 1 << 23
"""The most numbers that the features of a chunk consist of (64 MiB)."""


@EXACT_FORMS.add(PerceptualFeatures)
class ExactPerceptual:
    """`PerceptualFeatures` in whole grid units.

    Guarantee:
        A feature depends on its record's bytes, the module, the grid and the machine alone, if the
        module is a function. To test that, one image is evaluated again before and after every
        chunk, and the module is refused if its output changes. The norm of a feature is at most 1.
        (docs/privacy/proofs.md, statement 3.)

    Raises:
        SchemaError: the module is missing, or not the map's.
    """

    def __init__(
        self,
        feature_map: PerceptualFeatures,
        grid: Grid,
        device: torch.device,
        module: PublicModule | None = None,
    ) -> None:
        self._module = require_module(feature_map, module)
        self._map, self._device = feature_map, device
        self._units = SAFETY * grid.units_per_one

    @property
    def chunk_size(self) -> int:
        """Small enough to show progress and to use little memory."""
        return max(1, min(_LARGEST_CHUNK, _CHUNK_VALUES // self._map.dimension))

    def features(self, records: Tensor) -> ExplicitFeatures:
        """Features of a batch.

        Args:
            records: float64 (b, record size), integers 0..levels.

        Raises:
            DataError: the module's output for a record is not finite.
            ModuleError: the module failed, or its output for the same image changed.
        """
        said = self._module.one_by_one((records.cpu() / self._map.levels).float()).double()
        if not bool(said.isfinite().all()):
            raise DataError(
                "what the module says of a record is not finite, so it has no feature: nothing was "
                "written; mend the module (a division by 0, a logarithm of 0), or the record"
            )
        if self._map.rectified:
            said = said.clamp(min=0)
        values = self._of_length(self._map.main_weight, said)
        if self._map.squares:
            # In float64 the square of a float32 number is exact.
            squares = self._of_length(self._map.squares, said.square())
            values = torch.cat([values, squares], dim=1)
        return ExplicitFeatures(values.to(self._device))

    def _of_length(self, weight: float, vectors: Tensor) -> Tensor:
        """Vectors divided by their norms and multiplied by a weight, in grid units; 0 stays 0.

        Neither squares of float32 numbers nor the squares of those overflow or underflow in
        float64.
        """
        norms = square_root(sum_of_squares(vectors))
        scale = torch.where(norms > 0, weight * self._units / norms, 0.0)
        return (vectors * scale[:, None]).trunc().to(torch.int64)
