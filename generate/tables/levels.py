"""Where within its cell a number lies: how likely each level is, and values that many have.

Rows are put together by the cells of numbers, of which there are 64. A release with little noise
says of each of 256 levels how often it is, too: in all classes together that shows the shape
within a cell, and values that stand out. Of these a level still leaves open which they are; people
round, so it is taken to be the roundest number of the level, and at either end the bound itself,
where zeros are and whatever lay beyond.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...common.schema.encoding import Block, NumericEncoding
from ...common.schema.table import LEVELS
from .denoising import table_shares

_SPIKE: Final = 3.0
"""A level with more than so many times what is usual around it has a value that stands out,"""
_SEEN: Final = 2.0
"""if the difference is so many standard deviations of the noise."""
_AROUND: Final = 3
"""So many levels on either side are what is around one."""
_NEVER: Final = 1e-9
_WITHIN: Final = 0.499
"""Nearer to its middle than so many cells, a number is in a cell whatever is rounded."""
_FRACTIONS: Final = (1.0, 0.5, 0.25, 0.2)
"""Numbers are the rounder the larger the power of ten, or such a part of one, that divides them."""


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of a numeric column.

    Attributes:
        block: the column and its place in a record.
        cells: how many cells it has in a generator's rows, those of missing values aside.
        shares: likely share of each level among records that have a number, float64 (256,).
        spikes: which part of it is the level's roundest number, float64 (256,).
    """

    block: Block
    cells: int
    shares: NDArray[np.float64]
    spikes: NDArray[np.float64]

    def at(self, cell: NDArray[np.int64], quantile: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where in a record, 0..1, those quantiles of cells lie, float64 (n,).

        Args:
            cell: int64 (n,).
            quantile: 0..1, of what is in the cell, float64 (n,).
        """
        begin = np.searchsorted(self._cell_of, cell)
        end = np.searchsorted(self._cell_of, cell, side="right")
        so_far = np.concatenate([[0.0], np.maximum(self.shares, _NEVER).cumsum()])
        wanted = so_far[begin] + quantile * (so_far[end] - so_far[begin])
        level = np.clip(np.searchsorted(so_far, wanted, side="right") - 1, begin, end - 1)
        within = (wanted - so_far[level]) / (so_far[level + 1] - so_far[level])
        low, width, peak = self._low[level], self._high[level] - self._low[level], self._peak[level]
        spike = self.spikes[level]
        # What is not the round number is spread evenly, below it and above.
        evenly = np.maximum(1 - spike, _NEVER)
        below = evenly * (peak - low) / width
        above = np.maximum(within - below - spike, 0)
        found = np.where(
            within < below, low + within / evenly * width, peak + above / evenly * width
        )
        placed: NDArray[np.float64] = found.clip(low, low + width)
        return placed

    @property
    def _cell_of(self) -> NDArray[np.int64]:
        return cells_of_levels(self.cells)

    @cached_property
    def _low(self) -> NDArray[np.float64]:
        return self._ends(-1)

    @cached_property
    def _high(self) -> NDArray[np.float64]:
        return self._ends(1)

    def _ends(self, side: int) -> NDArray[np.float64]:
        """Where a level ends below (-1) or above (1), within the bounds and its cell."""
        levels = np.arange(LEVELS + 1) + 0.5 * side
        cells = (self._cell_of + _WITHIN * side) * (LEVELS / (self.cells - 1))
        nearer = np.maximum(levels, cells) if side < 0 else np.minimum(levels, cells)
        ends: NDArray[np.float64] = (nearer / LEVELS).clip(0, 1)
        return ends

    @cached_property
    def _peak(self) -> NDArray[np.float64]:
        """Where the roundest number of each level is; its middle if that does not matter."""
        places: NDArray[np.float64] = (self._low + self._high) / 2
        encoding = self.block.encoding
        assert isinstance(encoding, NumericEncoding)
        for level in np.flatnonzero(self.spikes):
            if level in (0, LEVELS):
                places[level] = level / LEVELS
                continue
            ends = encoding.at((level + np.array([-0.5, 0.5])) / LEVELS)
            places[level] = encoding.share(np.array([roundest(*ends)]))[0]
        return places.clip(self._low, self._high)


def roundest(low: float, high: float) -> float:
    """The roundest number from one to another: 0, or with the fewest digits that are not 0."""
    if low <= 0 <= high:
        return 0.0
    power = 10.0 ** math.ceil(math.log10(max(abs(low), abs(high))))
    while power > (high - low) / 100:
        for fraction in _FRACTIONS:
            step = power * fraction
            number = math.ceil(low / step) * step
            if number <= high:
                return number
        power /= 10
    return (low + high) / 2


def cells_of_levels(cells: int) -> NDArray[np.int64]:
    """In which of so many cells each level is: the nearest, as in `MarginalColumn`."""
    found: NDArray[np.int64] = (2 * np.arange(LEVELS + 1) * (cells - 1) + LEVELS) // (2 * LEVELS)
    return found


def likely_levels(
    block: Block, cells: NDArray[np.float64], noisy: NDArray[np.float64], noise: float
) -> Levels:
    """The levels of a numeric column, with as much of their shape as is more than noise.

    Args:
        block: the column.
        cells: likely share of each cell among records that have a number, float64 (k,).
        noisy: that of each level, as a release has them, float64 (256,).
        noise: standard deviation of the noise on these.
    """
    cell_of = cells_of_levels(len(cells))
    evenly = np.maximum((cells / np.bincount(cell_of))[cell_of], _NEVER)
    shares = table_shares(noisy, noise, evenly / evenly.sum())
    return Levels(block, len(cells), shares, _spikes(shares, noise, block))


def _spikes(shares: NDArray[np.float64], noise: float, block: Block) -> NDArray[np.float64]:
    """Which part of each level stands out from those around it, float64 (levels,)."""
    if block.column.kind.timed:  # what a round moment is, depends on more than digits
        return np.zeros_like(shares)
    padded = np.pad(shares, _AROUND, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * _AROUND + 1)
    around = np.median(np.delete(windows, _AROUND, axis=1), axis=1)
    stands_out = shares > _SPIKE * around + _SEEN * noise
    spikes = np.where(stands_out, 1 - around / np.maximum(shares, _NEVER), 0.0)
    if block.column.granule is not None:
        # Of few values in a level others may be frequent beside it; of many, hardly.
        encoding = block.encoding
        assert isinstance(encoding, NumericEncoding)
        borders = encoding.at((np.arange(len(shares) + 1) - 0.5).clip(0, LEVELS) / LEVELS)
        number, digits = block.column.granule
        values = np.maximum(np.diff(borders) * 10.0**digits / number, 1.0)
        spikes[1:-1] *= (1 - 0.5 / values)[1:-1]
    return spikes
