"""Marginals in whole grid units, alone and beside the features of a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from ...common.features.joint import JointFeatures
from ...common.features.marginals import MarginalFeatures
from ...common.features.rff import RandomFourierFeatures
from ...common.outline import Outlined
from .base import EXACT_FORMS, SAFETY, ExplicitFeatures
from .grid import Grid
from .rff import ExactRFF
from .tangent import ExactTangentFeatures, IntegerFeatures

_CHUNK: Final = 1 << 14


@dataclass(frozen=True, eq=False, repr=False)
class SparseFeatures(Outlined):
    """Features of a batch that are the same whole number at a few places and 0 elsewhere.

    Attributes:
        places: int64 (b, k), different ones in a row.
        entry: the number.
        dimension: of a feature.
    """

    places: Tensor
    entry: int
    dimension: int

    def norms(self) -> Tensor:
        """Norms in grid units, float64 (b,)."""
        size = float(self.entry) * self.places.shape[1] ** 0.5
        return torch.full((len(self.places),), size, dtype=torch.float64)

    def add_to(self, column: Tensor, rows: slice) -> None:
        """Add the features of some records to a column of class sums, int64 (d,)."""
        counts = torch.bincount(self.places[rows].flatten(), minlength=self.dimension)
        column += counts * self.entry


@EXACT_FORMS.add(MarginalFeatures)
class ExactMarginals:
    """`MarginalFeatures` in whole grid units.

    Args:
        feature_map: the map.
        grid: the unit.
        device: where records are.
        size: at most 1: features are multiplied by it.

    Guarantee:
        As for `ExactTangentFeatures`; the norm is at most `size`, because the entry is cut to a
        whole number. (docs/privacy/proofs.md, statement 3.)
    """

    def __init__(
        self, feature_map: MarginalFeatures, grid: Grid, device: torch.device, size: float = 1.0
    ) -> None:
        self._map = feature_map
        self._device = device
        self._entry = int(SAFETY * size * grid.units_per_one * feature_map.entry)

    @property
    def chunk_size(self) -> int:
        """Any number would do; this one keeps the memory small."""
        return _CHUNK

    def features(self, records: Tensor) -> SparseFeatures:
        """Features of a batch.

        Args:
            records: float64 (b, record size), integers 0..levels.
        """
        hits = self._map.hits(records.cpu().to(torch.uint8).numpy())
        return SparseFeatures(
            torch.from_numpy(hits).to(self._device), self._entry, self._map.dimension
        )


@dataclass(frozen=True, eq=False, repr=False)
class _Both(Outlined):
    """Features of a batch in two parts.

    Attributes:
        first: one part.
        second: the other.
        border: where the second one begins.
    """

    first: IntegerFeatures | ExplicitFeatures
    second: SparseFeatures
    border: int

    def norms(self) -> Tensor:
        """Norms in grid units, float64 (b,)."""
        first = self.first.norms()
        return torch.hypot(first, self.second.norms().to(first))

    def add_to(self, column: Tensor, rows: slice) -> None:
        """Add the features of some records to a column of class sums, int64 (d,)."""
        self.first.add_to(column[: self.border], rows)
        self.second.add_to(column[self.border :], rows)


@EXACT_FORMS.add(JointFeatures)
class ExactJoint:
    """`JointFeatures` in whole grid units.

    Guarantee:
        As for `ExactTangentFeatures`: with parts of norms at most a and b, both shortened by 2^-40,
        the norm is at most 1. (docs/privacy/proofs.md, statement 3.)
    """

    def __init__(self, feature_map: JointFeatures, grid: Grid, device: torch.device) -> None:
        main, size = feature_map.main, feature_map.main_weight
        self._main: ExactTangentFeatures | ExactRFF
        if isinstance(main, RandomFourierFeatures):
            self._main = ExactRFF(main, grid, device, size)
        else:
            self._main = ExactTangentFeatures(main, grid, device, size)
        self._marginals = ExactMarginals(feature_map.marginals, grid, device, feature_map.weight)
        self._border = main.dimension

    @property
    def chunk_size(self) -> int:
        """How many records may be summed at a time."""
        return min(self._main.chunk_size, self._marginals.chunk_size)

    def features(self, records: Tensor) -> _Both:
        """Features of a batch.

        Args:
            records: float64 (b, record size), integers 0..levels.
        """
        return _Both(self._main.features(records), self._marginals.features(records), self._border)
