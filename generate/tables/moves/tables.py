"""Released tables of columns of a class, beside those of rows of independent columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....common.features.joint import Parts
from ....common.features.marginals import MarginalColumn, MarginalGroup
from .pooling import Look, pooled

LEAST: Final = 1e-9
"""Shares of cells are at least that."""


@dataclass(frozen=True, eq=False)
class ReleasedCounts:
    """The released marginals of pairs and triples of columns of one class.

    Attributes:
        tables: the columns of each.
        levels: records hold integers 0..levels.
        shares: noisy, float64 (cells of all of them,).
        noise: standard deviation of the noise on those of each table, float64 (tables,).
    """

    tables: tuple[MarginalGroup, ...]
    levels: int
    shares: NDArray[np.float64]
    noise: NDArray[np.float64]

    @classmethod
    def of(cls, parts: Parts, mean: NDArray[np.float32], noise: float) -> ReleasedCounts | None:
        """Read them off a class's mean feature; None if it holds none.

        Args:
            parts: of the feature map.
            mean: noisy, float32 (d,).
            noise: standard deviation of the noise on an entry of it.
        """
        features = parts.marginals
        if features is None or not features.groups:
            return None
        tables = (*features.coarse, *features.groups)
        sizes = parts.weight * features.entries[-len(tables) :]
        cells = [table.dimension for table in tables]
        noisy = mean[parts.coarse_place.start : parts.group_place.stop].astype(np.float64)
        return cls(tables, features.levels, noisy / np.repeat(sizes, cells), noise / sizes)

    @property
    def sizes(self) -> list[int]:
        """How many cells each table has."""
        return [table.dimension for table in self.tables]

    def by_all_classes(
        self, own: TableDeparture, others: Sequence[TableDeparture]
    ) -> ReleasedCounts:
        """Shares and noise as if one look had shown what all classes say of this one.

        Args:
            own: of the class.
            others: of other classes.
        """
        sizes = torch.tensor(self.sizes)
        table = torch.arange(len(sizes)).repeat_interleave(sizes)

        def totals(cells: Tensor) -> Tensor:
            return torch.zeros(len(sizes), dtype=cells.dtype).index_add(0, table, cells)

        def mean(weighed: Tensor, weights: Tensor) -> Tensor:
            return (totals(weighed) / totals(weights))[table]

        found = pooled(own.look, [other.look for other in others], mean)
        shares = own.expected + found.lacking * own.scale
        noise = (totals(found.noise * own.scale.square()) / sizes).sqrt()
        return replace(self, shares=shares.numpy(), noise=noise.numpy())


@dataclass(frozen=True, eq=False)
class TableDeparture:
    """By how much tables of a class differ from those of independent columns.

    Attributes:
        expected: shares of cells if columns were independent, float64 (cells of all tables,).
        scale: their roots: in these units shares of independent rows have a variance that is alike
            in all cells, and tables of several classes can be compared.
        look: at what is released, in such units.
    """

    expected: Tensor
    scale: Tensor
    look: Look

    @classmethod
    def of(cls, released: ReleasedCounts, records: Tensor) -> TableDeparture:
        """That of a class.

        Args:
            released: of the class.
            records: rows with its columns, each by itself, (n, record size).
        """
        levels = (records.clamp(0, 1) * released.levels).round().to(torch.int64)
        alone = {
            side: torch.bincount(side.cell(levels), minlength=side.dimension).double() / len(levels)
            for table in released.tables
            for side in table.sides
        }
        expected = torch.cat([_independent(table, alone) for table in released.tables])
        scale = expected.clamp(min=LEAST).sqrt()
        noise = torch.from_numpy(released.noise).repeat_interleave(torch.tensor(released.sizes))
        lacking = (torch.from_numpy(released.shares) - expected) / scale
        look = Look(lacking, (noise / scale).square(), torch.ones_like(scale))
        return cls(expected, scale, look)


def _independent(table: MarginalGroup, alone: Mapping[MarginalColumn, Tensor]) -> Tensor:
    """Shares of its cells from those of each side, float64 (cells,)."""
    shares = torch.ones(1, dtype=torch.float64)
    for side in table.sides:
        shares = torch.outer(shares, alone[side]).flatten()
    return shares
