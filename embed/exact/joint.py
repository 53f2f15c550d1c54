"""Marginals and products of columns in whole grid units, beside the features of a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from ...common.arguments import argument
from ...common.display.representations import RedactedRepr
from ...common.errors import SchemaError
from ...common.features.joint import JointFeatures, parts_of
from ...common.features.marginals.map import MarginalFeatures
from ...common.features.moments import MomentFeatures
from ...common.features.rff import RandomFourierFeatures
from .base import EXACT_FORMS, SAFETY, BatchFeatures
from .grid import Grid
from .rff import ExactRFF
from .tangent import ExactTangentFeatures

_CHUNK: Final = 1 << 14
_LEAST_CHUNK: Final = 1 << 9
_MOST_HITS: Final = 1 << 22
"""The most places of nonzero features that are held at a time (32 MiB)."""
_LEAST_FACTOR: Final = 128
"""The least factor of a moment feature. A factor is truncated to an integer, which costs at most
1 % from this size on, and far less on a usual grid."""
_DIGITS: Final = 24
"""Binary digits of a factor that are summed at a time. With two numbers of at most 31 and `_CHUNK`
records the sums have 48 digits; with two numbers of a target, up to 5 times as large, less than
53."""


@dataclass(frozen=True, eq=False, repr=False)
class SparseFeatures(RedactedRepr):
    """Features of a batch that equal one integer at a few places and are 0 elsewhere.

    Attributes:
        places: int64 (b, k), distinct within a row.
        entry: the integer.
    """

    places: Tensor
    entry: int

    def norms(self) -> Tensor:
        """Norms in grid units, float64 (b,)."""
        size = float(self.entry) * self.places.shape[1] ** 0.5
        return torch.full_like(self.places[:, 0], size, dtype=torch.float64)

    def add_to(self, column: Tensor, rows: slice) -> None:
        """Add the features of some records to a column of class sums, int64 (d,)."""
        places = self.places[rows].flatten()
        # `bincount` would make a GPU look up the largest index first, and wait for it.
        column.scatter_add_(0, places, torch.full_like(places, self.entry))


@EXACT_FORMS.add(MarginalFeatures)
class ExactMarginals:
    """`MarginalFeatures` in whole grid units.

    Args:
        feature_map: the map.
        grid: the unit.
        device: where records are.
        size: at most 1: features are multiplied by it.

    Guarantee:
        As for `ExactTangentFeatures`; the norm is at most `size`, because the entry is truncated to
        an integer. (docs/privacy/proofs.md, statement 3.)

    Raises:
        SchemaError: the map comes from a release, which has chosen its groups of columns already.
    """

    def __init__(
        self, feature_map: MarginalFeatures, grid: Grid, device: torch.device, size: float = 1.0
    ) -> None:
        if feature_map.group_length is not None or feature_map.coarse:
            raise SchemaError("feature map: its pairs of columns are those of a release already")
        self._map = feature_map
        self._entry = int(SAFETY * size * grid.units_per_one * feature_map.entry)
        self._chunk = max(_LEAST_CHUNK, min(_CHUNK, _MOST_HITS // len(feature_map.tables)))

    @property
    def chunk_size(self) -> int:
        """Any number would do; this one keeps the memory small."""
        return self._chunk

    def features(self, records: Tensor) -> SparseFeatures:
        """Features of a batch.

        Args:
            records: float64 (b, record size), integers 0..levels.
        """
        return SparseFeatures(self._map.hits(records), self._entry)


@dataclass(frozen=True, eq=False, repr=False)
class ProductFeatures(RedactedRepr):
    """Features of a batch: all products of two numbers of a record, times the record's factor.

    Attributes:
        numbers: the records' numbers, float64 (b, k), integers.
        factors: the records' factors, int64 (b,).
    """

    numbers: Tensor
    factors: Tensor

    def norms(self) -> Tensor:
        """Norms in grid units, float64 (b,)."""
        return self.numbers.square().sum(dim=1) * self.factors

    def add_to(self, column: Tensor, rows: slice) -> None:
        """Add the features of some records to a column of class sums, int64 (d,)."""
        numbers, factors = self.numbers[rows], self.factors[rows]
        # Each factor in parts of few enough digits that sums of products stay below 2^53.
        high, low = factors >> _DIGITS, factors & ((1 << _DIGITS) - 1)
        for digits, shift in ((high, _DIGITS), (low, 0)):
            sums = numbers.T @ (numbers * digits[:, None])
            column += sums.to(torch.int64).flatten() << shift


class ExactMoments:
    """`MomentFeatures` in whole grid units.

    Args:
        feature_map: the map.
        grid: the unit.
        device: where records are.
        size: at most 1: features are multiplied by it.

    Guarantee:
        As for `ExactTangentFeatures`; the norm is at most `size`, because the factor, `size` over
        |z|^2, is truncated to an integer. Inner products are squares times two such factors,
        neither of them negative. (docs/privacy/proofs.md, statement 3.)

    Raises:
        SchemaError: the grid is too coarse for so many columns.
    """

    def __init__(
        self, feature_map: MomentFeatures, grid: Grid, device: torch.device, size: float
    ) -> None:
        self._map = feature_map
        self._units = int(SAFETY * size * grid.units_per_one)
        if self._units < _LEAST_FACTOR * feature_map.largest_square:
            raise SchemaError(
                f"products of {feature_map.columns} columns cannot be counted with room for "
                f"{grid.capacity} records: choose a smaller {argument('capacity')}, or "
                f"{argument('moments', 0)}"
            )

    def features(self, records: Tensor) -> ProductFeatures:
        """Features of a batch.

        Args:
            records: float64 (b, record size), integers 0..levels.
        """
        steps = self._map.steps(records)
        return ProductFeatures(steps.double(), self._units // steps.square().sum(dim=1))


@dataclass(frozen=True, eq=False, repr=False)
class SideBySide(RedactedRepr):
    """Features of a batch in several parts.

    Attributes:
        parts: in the order of their coordinates.
        places: the coordinates of each part.
    """

    parts: tuple[BatchFeatures, ...]
    places: tuple[slice, ...]

    def norms(self) -> Tensor:
        """Norms in grid units, float64 (b,)."""
        first, *others = (part.norms() for part in self.parts)
        for norms in others:
            first = torch.hypot(first, norms.to(first))
        return first

    def add_to(self, column: Tensor, rows: slice) -> None:
        """Add the features of some records to a column of class sums, int64 (d,)."""
        for part, place in zip(self.parts, self.places, strict=True):
            part.add_to(column[place], rows)


@EXACT_FORMS.add(JointFeatures)
class ExactJoint:
    """`JointFeatures` in whole grid units.

    Guarantee:
        As for `ExactTangentFeatures`: the parts have norms at most a, b and c, all shortened by
        2^-40, so the norm is at most 1. (docs/privacy/proofs.md, statement 3.)
    """

    def __init__(self, feature_map: JointFeatures, grid: Grid, device: torch.device) -> None:
        main, size = feature_map.main, feature_map.main_weight
        self._main: ExactTangentFeatures | ExactRFF
        if isinstance(main, RandomFourierFeatures):
            self._main = ExactRFF(main, grid, device, size)
        else:
            self._main = ExactTangentFeatures(main, grid, device, size)
        self._marginals = ExactMarginals(feature_map.marginals, grid, device, feature_map.weight)
        parts = parts_of(feature_map)
        self._places: tuple[slice, ...] = (slice(0, parts.split), parts.marginal_place)
        self._moments: ExactMoments | None = None
        if parts.moments is not None:
            self._moments = ExactMoments(parts.moments, grid, device, parts.moment_weight)
            self._places += (parts.moment_place,)

    @property
    def chunk_size(self) -> int:
        """The most records whose features are asked for at a time."""
        return min(self._main.chunk_size, self._marginals.chunk_size)

    def features(self, records: Tensor) -> SideBySide:
        """Features of a batch.

        Args:
            records: float64 (b, record size), integers 0..levels.
        """
        parts: tuple[BatchFeatures, ...]
        parts = self._main.features(records), self._marginals.features(records)
        if self._moments is not None:
            parts += (self._moments.features(records),)
        return SideBySide(parts, self._places)
