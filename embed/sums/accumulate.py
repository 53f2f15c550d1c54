"""Exact class-wise sums of features."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from ...common.arguments import argument
from ...common.errors import DataError, SchemaError
from ...common.features.base import FeatureMap
from ...common.features.torchscript import PublicModule
from ...common.runtime.uploads import Uploads
from ..exact.grid import Grid
from ..exact.registry import exact_map
from .totals import Totals


class ClassSums:
    """S = sum_i phi(x_i) y_i^T in grid units, and the number of records in each class.

    Guarantee:
        The sums are exact (see `exact.base`): they are equal for every order and grouping of the
        same records, and additive over disjoint sets of records. Replacing one record changes them
        by the difference of two vectors of norm at most 1/g. (docs/privacy/proofs.md, statement 4.)
    """

    def __init__(
        self,
        feature_map: FeatureMap,
        classes: int,
        grid: Grid,
        device: torch.device | None = None,
        module: PublicModule | None = None,
    ) -> None:
        device = device or torch.device("cpu")
        self._map = exact_map(feature_map, grid, device, module)
        self._grid = grid
        # Leaves room for rounding errors of the norms, a few units in the last place.
        self._longest = feature_map.norm_bound * grid.units_per_one * (1 + 2.0**-40)
        self._sums = torch.zeros(classes, feature_map.dimension, dtype=torch.int64, device=device)
        self._counts = torch.zeros(classes, dtype=torch.int64)
        self._upload = Uploads(device)
        self._bounded = torch.ones((), dtype=torch.bool, device=device)

    @property
    def chunk_size(self) -> int:
        """The most records that `add` takes at a time."""
        return self._map.chunk_size

    def add(self, records: NDArray[np.uint8], labels: NDArray[np.int64]) -> None:
        """Add one chunk of records.

        On a GPU, this queues the work and does not wait: the sums stay there until they are read.

        Args:
            records: uint8 (b, record size), values 0..levels.
            labels: int64 (b,), indices of classes.

        Raises:
            SchemaError: the chunk is larger than `chunk_size`, or the total exceeds the capacity.
            DataError: a record's feature is not finite, or longer than the map's bound. On a GPU,
                this is raised when the sums are read.
            ModuleError: the map's module failed.
        """
        if len(records) > self.chunk_size:
            raise SchemaError(f"a chunk of {len(records)} records: at most {self.chunk_size} fit")
        sizes = np.bincount(labels, minlength=len(self._counts))
        self._counts += torch.from_numpy(sizes)
        total = int(self._counts.sum())
        if total > self._grid.capacity:
            raise SchemaError(
                f"more than {self._grid.capacity} records: the sums could overflow; "
                f"embed again with a larger {argument('capacity')}"
            )
        # Small integers sort quickly, and a GPU reorders records faster than they arrive.
        order = np.argsort(labels.astype(np.min_scalar_type(len(sizes))), kind="stable")
        there, order_there = self._upload(records, order)
        features = self._map.features(there.index_select(0, order_there).to(torch.float64))
        # Proven (statement 3), but checked all the same, because the guarantee rests on it. NaN
        # fails every comparison, so it is caught as well.
        self._bounded &= (features.norms() <= self._longest).all()
        if self._sums.device.type == "cpu":
            self._require_bounded()
        ends = np.cumsum(sizes)
        for label in np.flatnonzero(sizes):
            features.add_to(
                self._sums[label], slice(int(ends[label] - sizes[label]), int(ends[label]))
            )

    def _require_bounded(self) -> None:
        if not bool(self._bounded):
            raise DataError(
                "a record's feature is not finite or longer than its bound, so no sensitivity "
                "covers it: nothing was written; this is a bug in dpntk, please report it"
            )

    def resume(self, totals: Totals) -> None:
        """Continue from the totals over earlier records; nothing may have been added yet.

        Raises:
            SchemaError: no records can have these totals.
        """
        if self._counts.any():
            raise ValueError("records were added already: they would be lost")
        totals.require_possible(self._grid)
        self._sums.copy_(torch.from_numpy(np.ascontiguousarray(totals.sums.T)))
        self._counts.copy_(torch.from_numpy(totals.counts))

    @property
    def totals(self) -> Totals:
        """Sums and counts so far; they may change with the next `add`."""
        return Totals(self.sums, self.counts)

    @property
    def sums(self) -> NDArray[np.int64]:
        """The sums S, int64 (d, c), in grid units.

        Raises:
            DataError: a feature that was added is not finite, or longer than the map's bound.
        """
        self._require_bounded()
        return self._sums.cpu().numpy().T

    @property
    def counts(self) -> NDArray[np.int64]:
        """Records in each class, int64 (c,)."""
        return self._counts.numpy().copy()
