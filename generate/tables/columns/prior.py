"""What is expected of the shares of columns' cells before a release is seen.

The shares of a class are a softmax of u + d, where u is shared by all classes and d is its own.
Neighbouring numbers are about equally frequent, with occasional jumps (spikes are usual), numbers
are seldom missing, and classes differ by little or, in some columns, by much.

On a logarithmic scale, and on any other where noise would hide each of equally frequent cells,
neighbouring numbers are expected to differ in frequency by what a trend says. The logarithms of
shares by a trend are a parabola that opens downwards, as those of a normal or an exponential
distribution. Without it, noise in cells far from all numbers would be believed, and the largest
ones decide on the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from torch import Tensor

from ....common.schema.columns.kinds import Transform
from ....common.schema.encoding import NumericEncoding
from ..marginals.released import ColumnMarginal

_JUMP: Final = 0.6
"""Prior scale of the difference between the log shares of neighbouring numbers."""
_JUMP_OF_CLASS: Final = 0.4
"""The same for a class's deviation d."""
_SLOPE: Final = 0.5
"""Prior scale of the trend's mean difference from one number to the next."""
_BEND: Final = 4.0
"""Half of what this difference falls by from the first to the last number, at a coefficient of 1.
"""
TREND: Final = (0.0, 0.5)
"""Coefficients of the slope and of the bend that estimation begins with; the bend's is squared."""
_FEWEST: Final = 4
"""Fewer numbers have no trend."""
_SPIKE: Final = 0.25
"""The most frequent number is a spike if the next ones have less than this times its share, and by
more than noise explains: `_SURE` standard deviations of it."""
_SURE: Final = 2.0
_SPREAD: Final = 1.0
"""Prior scale of the differences between the log shares of categories."""
_SPREAD_OF_CLASS: Final = 0.6
"""The same for a class's deviation d."""
_LOG_ODDS_OF_MISSING: Final = -4.2
"""Prior mean of the log odds that a number is missing, about one in 67. It does not follow from the
number of cells: with five answers to a question, that would be a fifth."""
_SPREAD_OF_MISSING: Final = 1.5
"""Prior scale of these log odds."""
_WEAK_PRIOR: Final = 20.0
"""Width of a weak prior that only makes the solution unique."""


class ColumnPrior:
    """The negative log prior of u and d of all columns, and of their trends.

    It is computed for all columns at once: their tensors are so small that one after the other
    would take most of the time of an estimate.

    Args:
        marginals: of all columns, whose cells follow one another.
    """

    def __init__(self, marginals: Sequence[ColumnMarginal]) -> None:
        categories, lower, column_of, along, trending = ([torch.zeros(0)] for _ in range(5))
        self._missing: list[tuple[slice, int]] = []
        stop = 0
        for number, marginal in enumerate(marginals):
            start, stop = stop, stop + marginal.shares.shape[1]
            if not isinstance(marginal.block.encoding, NumericEncoding):
                categories.append(torch.arange(start, stop))
                continue
            numbers = slice(start, start + marginal.points)
            lower.append(torch.arange(numbers.start, numbers.stop - 1))
            column_of.append(torch.full_like(lower[-1], number))
            along.append(torch.linspace(-1, 1, marginal.points - 1, dtype=torch.float64))
            trending.append(torch.full_like(along[-1], has_trend(marginal)))
            if numbers.stop < stop:
                self._missing.append((numbers, numbers.stop))
        self._categories, self._lower, self._column_of = (
            torch.cat(parts).long() for parts in (categories, lower, column_of)
        )
        self._along, self._trending = (torch.cat(parts).double() for parts in (along, trending))

    def __call__(self, logits: Tensor, trends: Tensor) -> Tensor:
        """The negative log prior, a scalar.

        Args:
            logits: u, then d of each class, float64 (1 + classes, cells).
            trends: of each column, float64 (columns, 2).
        """
        total = (logits / _WEAK_PRIOR).square().sum() / 2 + trends.square().sum() / 2
        categories = logits[:, self._categories]
        total = total + (categories[0] / _SPREAD).square().sum() / 2
        total = total + _pseudo_huber(categories[1:] / _SPREAD_OF_CLASS)
        steps = logits[:, self._lower + 1] - logits[:, self._lower]
        jumps = steps[0] - self._trending * self._expected(trends)
        total = total + (jumps / _JUMP).square().log1p().sum()
        total = total + _pseudo_huber(steps[1:] / _JUMP_OF_CLASS)
        for place, missing in self._missing:
            numbers, odds = logits[:, place], logits[:, missing]
            seldom = odds[0] - numbers[0].logsumexp(dim=0) - _LOG_ODDS_OF_MISSING
            of_class = odds[1:] - numbers[1:].mean(dim=1)
            total = total + (seldom / _SPREAD_OF_MISSING).square() / 2
            total = total + _pseudo_huber(of_class / _SPREAD_OF_CLASS)
        return total

    def _expected(self, trends: Tensor) -> Tensor:
        """By how much the log shares of neighbouring numbers differ by a trend, (steps,)."""
        slope, bend = trends[self._column_of].T
        expected: Tensor = _SLOPE * slope - _BEND * bend.square() * self._along
        return expected


def has_trend(marginal: ColumnMarginal) -> bool:
    """Whether the cells of a number are expected to follow a trend.

    A logarithmic scale mostly is wider than the numbers. On others bounds are nearer, and numbers
    are frequent up to there; they follow a trend only where noise would hide each cell, so that
    none can be said to be empty. If the most frequent number is a lone spike, there is no trend:
    zeros say nothing of how frequent other amounts are; next to them, a trend would have it that
    small ones are.
    """
    linear = marginal.block.column.transform is Transform.NONE
    if marginal.points < _FEWEST or (linear and not marginal.hides_even_share):
        return False
    shares, noise = marginal.together
    numbers = shares[: marginal.points]
    top = int(numbers.argmax())
    beside = np.r_[numbers[max(top - 1, 0) : top], numbers[top + 1 : top + 2]].max()
    return bool(_SPIKE * numbers[top] - beside < _SURE * noise)


def _pseudo_huber(values: Tensor) -> Tensor:
    """A pseudo-Huber penalty: quadratic near 0, linear far away, so that a few may be large."""
    return ((1 + values.square()).sqrt() - 1).sum()
