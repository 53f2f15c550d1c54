"""The features of given rows of a table, as a linear function of what they are multiplied by."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...common.features.base import FeatureMap
from ...common.features.joint import parts_of
from ..kernels.base import Features, kernel_of

BATCH: Final = 4000
_MOST_NUMBERS: Final = 1 << 28


class RowFeatures:
    """phi(x) of rows, for all kinds of maps that tables have.

    `dpntk.generate.kernels.base` has them as functions of the records; here they are held.
    Marginals are taken of rows as they would be read back.

    Args:
        feature_map: phi.
        records: float32 (n, record size), values 0..1.
    """

    def __init__(self, feature_map: FeatureMap, records: NDArray[np.float32]) -> None:
        parts = parts_of(feature_map)
        self._split, self._size, self._entry = parts.split, parts.main_weight, parts.weight
        self._parts: list[Features] = []
        if parts.main is not None:
            kernel = kernel_of(parts.main, torch.device("cpu"))
            for start in range(0, len(records), BATCH):
                batch = torch.from_numpy(records[None, start : start + BATCH])
                self._parts.append(kernel.features(batch))
        self._hits: Tensor | None = None
        if (marginals := parts.marginals) is not None:
            levels = np.rint(records.clip(0, 1) * marginals.levels).astype(np.uint8)
            self._hits = torch.from_numpy(marginals.hits(levels))
            self._entry *= marginals.entry

    def numbers(self) -> int:
        """How many numbers are held."""
        cells = 0 if self._hits is None else self._hits.numel()
        return cells + sum(part.numbers() for part in self._parts)

    def inner(self, vector: Tensor) -> Tensor:
        """<vector, phi(x)> of every row.

        Args:
            vector: float32 (d,); gradients flow back to it.

        Returns:
            float32 (n,).
        """
        found = vector.new_zeros(())
        if self._parts:
            main = vector[None, : self._split]
            found = self._size * torch.cat([part.inner(main)[0] for part in self._parts])
        if self._hits is not None:
            cells = vector[self._split :].index_select(0, self._hits.flatten())
            found = found + self._entry * cells.view(self._hits.shape).sum(dim=1)
        return found


def rows_that_fit(feature_map: FeatureMap, wanted: int) -> int:
    """So many rows as are wanted, or as few as a gigabyte has room for the features of."""
    one = RowFeatures(feature_map, np.zeros((1, feature_map.record_size), dtype=np.float32))
    return max(1, min(wanted, _MOST_NUMBERS // one.numbers()))
