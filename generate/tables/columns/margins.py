"""What the marginals of a release say about the cells of single columns.

A release counts the cells of each column. It also counts those of some pairs and triples of
columns, in which neighbouring cells of a number are merged. Summed over all columns but one, the
shares of such a table are those of that column's merged cells: its margin. The noise on it is that
of as many cells as the other columns have together. With few records, where pairs have few cells,
this is much less than the noise of a number's own cells added up.

Margins of one table share noise, but only in the sum of all cells, which is known to be 1. Apart
from it, their errors are independent of each other and of all dependence between the columns, which
may be anything: margins and interactions are orthogonal (a balanced analysis of variance). So each
margin counts by itself.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....common.features.joint import Parts
from ....common.features.marginals.cells import MarginalColumn, MarginalGroup
from ...kernels.mean_embedding import MeanEmbedding


@dataclass(frozen=True, eq=False)
class Margins:
    """Noisy shares of merged cells of columns in each class, as a Gaussian likelihood.

    Attributes:
        cells: cells of all columns, one after another, int64 (k,); those of a column once for each
            way of merging.
        merged: the merged cell that each belongs to, int64 (k,).
        shares: noisy shares of merged cells, float64 (classes, m).
        precision: one over the variance of the noise on them, float64 (classes, m).
    """

    cells: Tensor
    merged: Tensor
    shares: Tensor
    precision: Tensor

    @classmethod
    def of(cls, mean: MeanEmbedding, parts: Parts) -> Margins:
        """The margins of all marginals of a release that has some of every column.

        Args:
            mean: released mean features of all classes, with noise.
            parts: of the feature map.
        """
        marginals = parts.marginals
        assert marginals is not None
        columns = marginals.columns
        sizes = [column.dimension for column in columns]
        starts = dict(zip(columns, (np.cumsum(sizes) - sizes).tolist(), strict=True))
        noisy = mean.values[parts.marginal_place].astype(np.float64)
        entries = parts.weight * marginals.entries
        told: dict[MarginalColumn, tuple[NDArray[np.float64], float]] = {}
        for table, place, entry in zip(marginals.tables, marginals.places, entries, strict=True):
            for side, shares, variance in _margins(table, noisy[place] / entry, columns):
                precision = float(entry) ** 2 / variance
                sums, total = told.get(side, (np.zeros_like(shares), 0.0))
                told[side] = sums + precision * shares, total + precision
        cells, merged, count = [], [], 0
        for side in told:
            own = torch.arange(side.unmerged.dimension)
            cells.append(starts[side.unmerged] + own)
            merged.append(count + side.merge(own))
            count += side.dimension
        known = np.concatenate([np.full(len(sums), total) for sums, total in told.values()])
        found = np.concatenate([sums / total for sums, total in told.values()])
        return cls(
            torch.cat(cells),
            torch.cat(merged),
            torch.from_numpy(found.T),
            torch.from_numpy(known / mean.noise[:, None] ** 2),
        )

    def of_class(self, label: int) -> Margins:
        """Those of one class."""
        return replace(self, shares=self.shares[[label]], precision=self.precision[[label]])

    def negative_log_likelihood(self, shares: Tensor) -> Tensor:
        """The negative log likelihood of shares of cells, summed over classes, up to a constant.

        Args:
            shares: of the cells of all columns, those of each adding up to 1, float64 (classes,
                cells).
        """
        expected = torch.zeros_like(self.shares).index_add(1, self.merged, shares[:, self.cells])
        return (self.precision * (expected - self.shares).square()).sum() / 2


def _margins(
    table: MarginalColumn | MarginalGroup,
    shares: NDArray[np.float64],
    columns: Collection[MarginalColumn],
) -> Iterator[tuple[MarginalColumn, NDArray[np.float64], float]]:
    """What a table says of single columns.

    Args:
        table: a column or several.
        shares: of its cells, (cells, classes).
        columns: the single ones.

    Yields:
        A column, with its own cells or some of them merged; their shares, (cells, classes); and the
        variance of the noise on each, in units of that on a cell of the table.
    """
    if isinstance(table, MarginalColumn):
        if table in columns:  # others are by level
            yield table, shares, 1.0
        return
    if table.folded:
        return  # its cells are of no column
    sizes = [side.dimension for side in table.sides]
    of_table = shares.reshape(*sizes, -1)
    for axis, side in enumerate(table.sides):
        if side.unmerged not in columns:
            continue  # soft bins have other borders
        others = tuple(other for other in range(len(sizes)) if other != axis)
        yield side, of_table.sum(axis=others), math.prod(sizes) / sizes[axis]
