"""Where within its cell a number lies: the shares of levels, and frequent single values.

Rows are arranged by the cells of numbers, 64 for each column. If nothing else is known, the density
continues smoothly from cell to cell, and a large excess in the first or the last cell lies on the
bound itself (`SmoothCells`).

A release with little noise also holds the share of each of 256 levels. Taken over all classes,
these show the shape within a cell, and values that stand out. The first and the last level are the
bounds themselves: zeros, and whatever lay beyond. In any other level it is unknown which value
stands out; since people round, it is taken to be the roundest one. Where nothing stands out, the
density within a level follows from the neighbouring levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ....common.features.marginals.cells import nearest_cell
from ....common.schema.encoding import Block, NumericEncoding
from ....common.schema.table import LEVELS
from .denoising import table_shares

_SPIKE: Final = 3.0
"""A level with more than this multiple of the usual share around it has a value that stands out."""
_SIGNIFICANT: Final = 2.0
"""It must also exceed that by this many standard deviations of the noise."""
_MOST_SLOPE: Final = 3.0
"""Largest rise or fall of the log density within a level."""
_FLAT: Final = 1e-6
_MOST_RATIO: Final = 4.0
"""Where no value stands out, shares change by at most this factor from one level or cell to the
next."""
_FAR_BEYOND: Final = 2.0
"""This multiple of the usual share is not chance; 1.5 may well be, in a few hundred rows."""
_AROUND: Final = 3
"""Number of levels on either side that a level is compared with."""
_LEAST_SHARE: Final = 1e-9
_WITHIN: Final = 0.499
"""A number within this distance of a cell's centre, in cell widths, is in it however it is
rounded."""
_BELOW: Final = np.concatenate([[0.0, 0.0], np.arange(1.5, LEVELS - 1), [LEVELS]]) / LEVELS
"""Where levels begin, 0..1; the first and the last one are the bounds themselves."""
_ABOVE: Final = np.concatenate([[0.0], np.arange(1.5, LEVELS - 1), [LEVELS, LEVELS]]) / LEVELS
"""Where levels end, 0..1."""
_ENDS: Final = [0, -1]
_BETWEEN: Final = slice(2, -2)
"""Levels that are not next to a bound, with others to compare with on both sides."""
_FRACTIONS: Final = (1.0, 0.5, 0.25, 0.2)
"""A number is rounder if a larger power of ten, or such a fraction of one, divides it."""


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of a numeric column.

    Attributes:
        block: the column and its place in a record.
        cells: number of its cells in a generator's rows, without that of missing values.
        shares: estimated share of each level among records that have a number, float64 (256,).
        spikes: fraction of each share that is the level's roundest number, float64 (256,).
    """

    block: Block
    cells: int
    shares: NDArray[np.float64]
    spikes: NDArray[np.float64]

    def at(self, cell: NDArray[np.int64], quantile: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values 0..1 in a record at the given quantiles of cells, float64 (n,).

        Args:
            cell: int64 (n,).
            quantile: quantile within the cell, 0..1, float64 (n,).
        """
        begin = np.searchsorted(self._cell_of, cell)
        end = np.searchsorted(self._cell_of, cell, side="right")
        so_far = np.concatenate([[0.0], np.maximum(self.shares, _LEAST_SHARE).cumsum()])
        wanted = so_far[begin] + quantile * (so_far[end] - so_far[begin])
        level = np.clip(np.searchsorted(so_far, wanted, side="right") - 1, begin, end - 1)
        within = (wanted - so_far[level]) / (so_far[level + 1] - so_far[level])
        low, high, peak = self._low[level], self._high[level], self._peak[level]
        spike, width = self.spikes[level], np.maximum(high - low, _LEAST_SHARE)
        # Everything but the round number is spread evenly, below and above it.
        evenly = np.maximum(1 - spike, _LEAST_SHARE)
        below = evenly * (peak - low) / width
        above = np.maximum(within - below - spike, 0)
        found = np.where(
            within < below, low + within / evenly * width, peak + above / evenly * width
        )
        tilted = low + _exponential(within, self._tilt[level]) * width
        placed: NDArray[np.float64] = np.where(spike > 0, found, tilted).clip(low, high)
        return placed

    @cached_property
    def _tilt(self) -> NDArray[np.float64]:
        """The rise of the log density from the lower to the upper end of each level."""
        widths, centres = _ABOVE - _BELOW, (_ABOVE + _BELOW) / 2
        inner = slice(1, -1)
        density = np.maximum(self.shares * (1 - self.spikes), _LEAST_SHARE)[inner] / widths[inner]
        found = np.zeros(LEVELS + 1)
        found[inner] = np.gradient(np.log(density), centres[inner]) * widths[inner]
        return found.clip(-_MOST_SLOPE, _MOST_SLOPE)

    @cached_property
    def _cell_of(self) -> NDArray[np.int64]:
        return nearest_cell(np.arange(LEVELS + 1), self.cells)

    @cached_property
    def _low(self) -> NDArray[np.float64]:
        """Where each level begins, confined to its cell."""
        return np.maximum(_BELOW, (self._cell_of - _WITHIN) / (self.cells - 1))

    @cached_property
    def _high(self) -> NDArray[np.float64]:
        """Where each level ends, confined to its cell."""
        return np.minimum(_ABOVE, (self._cell_of + _WITHIN) / (self.cells - 1))

    @cached_property
    def _peak(self) -> NDArray[np.float64]:
        """Where the roundest number of each level lies; the middle of a level without a spike."""
        places: NDArray[np.float64] = (self._low + self._high) / 2
        encoding = self.block.encoding
        assert isinstance(encoding, NumericEncoding)
        for level in 1 + np.flatnonzero(self.spikes[1:-1]):
            low, high = encoding.at(np.array([_BELOW[level], _ABOVE[level]]))
            places[level] = encoding.share(np.array([roundest(low, high)]))[0]
        return places.clip(self._low, self._high)


class SmoothCells:
    """The cells of a numeric column whose levels are not released.

    The first and the last cell are half as wide as the others. If they hold far more than their
    neighbours suggest, the excess lies on the bound itself: zeros, or whatever lay beyond.

    Args:
        shares: shares of the cells, float64 (k,), k > 2.

    Attributes:
        on_bound: the fraction of each cell that lies on a bound, (k,); 0 but for the first and the
            last cell.
    """

    def __init__(self, shares: NDArray[np.float64]) -> None:
        self._last = len(shares) - 1
        middles, widths = np.arange(self._last + 1.0), np.ones(self._last + 1)
        middles[_ENDS] += 0.25, -0.25
        widths[_ENDS] = 0.5
        density = np.maximum(shares, _LEAST_SHARE) / widths
        self.on_bound = np.zeros_like(density)
        for end, beside, second in ((0, 1, 2), (-1, -2, -3)):
            rises = np.clip(density[beside] / density[second], 1 / _MOST_RATIO, _MOST_RATIO)
            usual = density[beside] * rises ** abs(middles[beside] - middles[end])
            if density[end] > _FAR_BEYOND * usual:
                self.on_bound[end], density[end] = 1 - usual / density[end], usual
        self._rise = (np.gradient(np.log(density), middles) * widths).clip(
            -_MOST_SLOPE, _MOST_SLOPE
        )
        places = np.arange(self._last + 1)
        self._low = np.maximum(places - _WITHIN, 0)
        self._high = np.minimum(places + _WITHIN, self._last)

    def at(self, cell: NDArray[np.int64], quantile: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Levels`."""
        apart = self.on_bound[cell]
        below = np.where(cell == 0, apart, 0.0)
        between = ((quantile - below) / np.maximum(1 - apart, _LEAST_SHARE)).clip(0, 1)
        low, high = self._low[cell], self._high[cell]
        # The excess on a bound takes the quantiles next to it, which map to the end of the cell.
        placed: NDArray[np.float64] = low + _exponential(between, self._rise[cell]) * (high - low)
        return placed / self._last


def _exponential(quantile: NDArray[np.float64], rise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantiles of the law on 0..1 whose log density is linear with the given rise, (n,)."""
    steep = np.where(np.abs(rise) < _FLAT, _FLAT, rise)
    found: NDArray[np.float64] = np.log1p(quantile * np.expm1(steep)) / steep
    return found


def roundest(low: float, high: float) -> float:
    """The roundest number in an interval: 0, or one with the fewest nonzero digits."""
    if low <= 0 <= high:
        return 0.0
    if not low < high:
        return low
    power = 10.0 ** math.ceil(math.log10(max(abs(low), abs(high))))
    while power > (high - low) / 100:
        for fraction in _FRACTIONS:
            step = power * fraction
            number = math.ceil(low / step) * step
            if number <= high:
                return number
        power /= 10
    return (low + high) / 2


def estimate_levels(
    block: Block, cells: NDArray[np.float64], noisy: NDArray[np.float64], noise: float
) -> Levels:
    """Estimate the levels of a numeric column.

    Args:
        block: the column.
        cells: estimated share of each cell among records that have a number, float64 (k,).
        noisy: released share of each level, float64 (256,).
        noise: standard deviation of the noise on these.
    """
    cell_of = nearest_cell(np.arange(LEVELS + 1), len(cells))
    widths = _ABOVE - _BELOW
    on_bound = cells * SmoothCells(cells).on_bound
    spread = (cells - on_bound) / np.bincount(cell_of, widths)
    evenly = np.maximum(spread[cell_of] * widths, _LEAST_SHARE)
    evenly[_ENDS] += on_bound[_ENDS]
    shares = table_shares(noisy, noise, evenly / evenly.sum())
    return Levels(block, len(cells), shares, _spikes(shares, noise, block))


def _spikes(shares: NDArray[np.float64], noise: float, block: Block) -> NDArray[np.float64]:
    """The fraction of each level that stands out from those around it, float64 (levels,)."""
    spikes = np.zeros_like(shares)
    spikes[_ENDS] = 1.0  # the bounds are single numbers
    if block.column.kind.timed:  # whether a time is round depends on more than its digits
        return spikes
    inner = shares[1:-1]
    around = _around(inner)
    stands_out = inner > _SPIKE * around + _SIGNIFICANT * noise
    spikes[_BETWEEN] = np.where(stands_out, 1 - around / np.maximum(inner, _LEAST_SHARE), 0.0)[1:-1]
    if block.column.granule is not None:
        # With few values in a level, others may be frequent too; with many, hardly.
        encoding = block.encoding
        assert isinstance(encoding, NumericEncoding)
        number, digits = block.column.granule
        values = (encoding.at(_ABOVE) - encoding.at(_BELOW)) * 10.0**digits / number
        spikes[_BETWEEN] *= (1 - 0.5 / np.maximum(values, 1.0))[_BETWEEN]
    return spikes


def _around(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of each level if nothing stood out there, float64 (k,).

    This is the median of the levels on either side, or, if larger, a geometric extrapolation from
    one side: between wide bounds most numbers may lie in the first few levels.
    """
    padded = np.pad(shares, _AROUND, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * _AROUND + 1)
    found: NDArray[np.float64] = np.median(np.delete(windows, _AROUND, axis=1), axis=1)
    for next_, second in ((_AROUND + 1, _AROUND + 2), (_AROUND - 1, _AROUND - 2)):
        factor = windows[:, next_] / np.maximum(windows[:, second], _LEAST_SHARE)
        found = np.maximum(found, windows[:, next_] * factor.clip(1, _MOST_RATIO))
    return found
