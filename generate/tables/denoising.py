"""Shares of a column's cells as they are likely to be, given noisy ones that a release holds.

In many cells of a private table there is little or nothing, and half of the noise there is above 0:
taken as it is, it makes rows of values that nobody has, and between wide bounds a column's standard
deviation many times too large. So a share is replaced by its mean given the noisy one. Before the
release is seen it is taken to be exponentially distributed, with a mean that may be of any order of
magnitude: of numbers, about that of the next cells; of categories, about that in all classes.
Numbers are left out only where there are likely none in every class, and categories nowhere: or a
class would be told by a cell that it lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr

_EXACT: Final = 1e-9
_FAR: Final = -30.0
"""This many standard deviations below 0, the mean above 0 is as good as one over the distance."""
_FACTOR: Final = 4.0
"""Between one order of magnitude and the next."""
_LEAST: Final = 0.25
"""The smallest order of magnitude, in standard deviations of the noise."""
_FAINTEST: Final = 2.0**-10
"""The smallest order of magnitude in a table of several columns, likewise."""
_ORDERS_OFF_LAW: Final = 1
"""By how many factors a cell's share may be off what a law of the table says."""
_EM_STEPS: Final = 100
_NEXT: Final = 0.25
"""How likely a cell's order of magnitude is one off that of the last cell, as against the same."""
_JUMP: Final = 0.02
"""How likely it has any other: numbers may have spikes, as round ones do."""
_STILL_EMPTY: Final = 0.8
"""How likely a cell that follows an empty one is empty too, whatever else."""
_WIDE: Final = 0.5
"""How likely the bounds of a number are so wide that nothing lies next to them. If they are not,
cells there are like others: what lies beyond a bound counts as the bound."""
_LONG: Final = 1024
"""Cells after which it does not matter how a chain began."""
_EMPTY: Final = 0.3
"""A cell that is empty with more than this probability is taken to be empty."""
_OFF: Final = 0.3
"""How likely a category's share in a class is off by a factor more from that in all classes."""
_ORDERS: Final = 3
"""By how many factors it may be off."""
_STEPS: Final = 20

Shares = NDArray[np.float64]


def number_shares(
    noisy: Shares, noise: float, points: int, possible: NDArray[np.bool_] | None = None
) -> Shares:
    """Shares of a numeric column's cells.

    Whether a cell is empty, and of which order of magnitude it is otherwise, is a Markov chain
    along the numbers; its probabilities given all noisy shares are found by forward and backward
    recursions (Rabiner 1989, "A tutorial on hidden Markov models", section III). So a little in
    each of many neighbouring cells counts, and the same amount far from everything else does not,
    least of all next to bounds: these may be wide.

    Args:
        noisy: (cells,), in the order of the numbers; cells from `points` on have no place in it.
        noise: standard deviation of the noise.
        points: how many cells are of numbers.
        possible: cells that need not be empty, (cells,). If None, those are made empty that are so
            too likely (as medians are where a prior has a point mass at 0, Johnstone and Silverman
            2004, "Needles and straw in haystacks", section 2).

    Returns:
        float64 (cells,), not negative, of sum 1.
    """
    deviation = max(noise, _EXACT)
    means = _magnitudes(deviation)
    number = np.arange(len(means) + 1)  # the first state is that of an empty cell
    step = _NEXT ** np.abs(number[:, None] - number)
    step = (1 - _JUMP) * step / step.sum(axis=1, keepdims=True) + _JUMP / len(number)
    step[0] *= 1 - _STILL_EMPTY
    step[0, 0] += _STILL_EMPTY
    usual = np.linalg.matrix_power(step, _LONG)[0]
    start = (1 - _WIDE) * usual + _WIDE * step[0]
    end = 1 - _WIDE + _WIDE * step[:, 0] / usual[0]

    def given(shifted: Shares) -> Shares:
        logs, found = _exponential(shifted, deviation, np.tile(means, (len(shifted), 1)))
        nothing = -0.5 * (shifted / deviation) ** 2 - math.log(deviation * math.sqrt(2 * math.pi))
        chances = _chances(np.column_stack([nothing, logs]))
        states = np.concatenate(
            [_along(chances[:points], step, start, end), _share_out(chances[points:])]
        )
        shares: Shares = (states[:, 1:] * found).sum(axis=1)
        empty = states[:, 0] > _EMPTY if possible is None else ~possible
        return np.where(empty, 0.0, shares) if not empty.all() else shares

    return _adding_up(given, noisy, deviation)


def category_shares(noisy: Shares, noise: float, common: Shares | None = None) -> Shares:
    """Shares of categories; none is 0.

    Args:
        noisy: (cells,).
        noise: standard deviation of the noise.
        common: likely shares in all classes together, (cells,), positive; if None, these.

    Returns:
        float64 (cells,), positive, of sum 1.
    """
    deviation = max(noise, _EXACT)
    if common is None:
        means = np.tile(_magnitudes(deviation), (len(noisy), 1))
        prior = np.ones(means.shape[1])
    else:
        off = np.arange(-_ORDERS, _ORDERS + 1)
        means, prior = common[:, None] * _FACTOR**off, _OFF ** np.abs(off)

    def given(shifted: Shares) -> Shares:
        logs, found = _exponential(shifted, deviation, np.clip(means, _EXACT**2, 1.0))
        shares: Shares = (_share_out(_chances(logs) * prior) * found).sum(axis=1)
        return shares

    return _adding_up(given, noisy, deviation)


def table_shares(noisy: Shares, noise: float, likely: Shares | None = None) -> Shares:
    """Shares of the cells of a table of several columns; none is 0.

    There are many, and where columns go together most have next to nothing; what noise leaves above
    0 in these, added up, would be rows in which they do not. So how frequent each order of
    magnitude is, is learnt from the table itself (nonparametric maximum likelihood by the EM
    algorithm, Laird 1978; empirical Bayes). So is, where the table looks like some law, how often a
    cell's share is what this says, or about that.

    Args:
        noisy: (cells,).
        noise: standard deviation of the noise.
        likely: shares by such a law, (cells,), positive; None if there is none.

    Returns:
        float64 (cells,), positive, of sum 1.
    """
    deviation = max(noise, _EXACT)
    means = np.tile(_magnitudes(deviation, _FAINTEST), (len(noisy), 1))
    if likely is not None:
        off = np.arange(-_ORDERS_OFF_LAW, _ORDERS_OFF_LAW + 1)
        about = np.clip(likely[:, None] * _FACTOR**off, _EXACT**2, 1.0)
        means = np.hstack([means, about])

    def given(shifted: Shares) -> Shares:
        logs, found = _exponential(shifted, deviation, means)
        if likely is not None:
            apart = (shifted - likely) / deviation
            exact = -0.5 * apart**2 - math.log(deviation * math.sqrt(2 * math.pi))
            logs, found = np.c_[logs, exact], np.c_[found, likely]
        chances = _chances(logs)
        frequent = np.full(logs.shape[1], 1 / logs.shape[1])
        for _ in range(_EM_STEPS):
            # The mean over cells of how likely each case is: two products with a vector.
            frequent = frequent * ((1 / (chances @ frequent)) @ chances) / len(chances)
        shares: Shares = (_share_out(chances * frequent) * found).sum(axis=1)
        return shares

    return _adding_up(given, noisy, deviation)


def _magnitudes(noise: float, smallest: float = _LEAST) -> Shares:
    """Orders of magnitude that a share may have, from a part of the noise to 1, (orders,)."""
    least = noise * smallest
    orders = 1 + max(0, math.ceil(-math.log(least, _FACTOR)))
    means: Shares = np.minimum(least * _FACTOR ** np.arange(orders), 1.0)
    return means


def _exponential(noisy: Shares, noise: float, means: Shares) -> tuple[Shares, Shares]:
    """How likely noisy shares are if the true ones are exponential, and what these then are.

    Given the noisy share, the true one is normal and cut off at 0 (Johnson, Kotz and Balakrishnan
    1994, "Continuous Univariate Distributions", section 13.10.1).

    Args:
        noisy: (cells,).
        noise: standard deviation of the noise, positive.
        means: of the exponential distributions, (cells, orders).

    Returns:
        Logarithm of the density, and mean of the true share, (cells, orders) both.
    """
    centre = noisy[:, None] / noise - noise / means
    low = np.minimum(centre, 0)
    scaled = erfcx(-low / math.sqrt(2))
    logs = -np.log(means) + np.where(
        centre > 0,
        0.5 * (noise / means) ** 2 - noisy[:, None] / means + log_ndtr(np.maximum(centre, 0)),
        -0.5 * (noisy[:, None] / noise) ** 2 + np.log(scaled / 2),
    )
    high = np.maximum(centre, 0)
    density = np.where(
        centre > 0,
        np.exp(-0.5 * high**2 - log_ndtr(high)) / math.sqrt(2 * math.pi),
        math.sqrt(2 / math.pi) / scaled,
    )
    found = noise * np.where(centre > _FAR, centre + density, -1 / np.minimum(centre, _FAR))
    return logs, found


def _chances(logs: Shares) -> Shares:
    """Likelihoods up to a factor in each row."""
    chances: Shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return chances


def _share_out(weights: Shares) -> Shares:
    shares: Shares = weights / weights.sum(axis=-1, keepdims=True)
    return shares


def _along(chances: Shares, step: Shares, start: Shares, end: Shares) -> Shares:
    """Probabilities of a chain's states in each cell, given what is seen in all.

    Args:
        chances: of what is seen in a cell if the chain is in a state, (cells, states).
        step: probabilities of the next state, (states, states).
        start: of the first one, (states,).
        end: of what comes after the last one, up to a factor, if it is each of them, (states,).
    """
    forward, backward = np.empty_like(chances), np.tile(end, (len(chances), 1))
    before = start
    for cell, chance in enumerate(chances):
        forward[cell] = _share_out(before * chance)
        before = forward[cell] @ step
    for cell in range(len(chances) - 1, 0, -1):
        backward[cell - 1] = _share_out(step @ (backward[cell] * chances[cell]))
    return _share_out(forward * backward)


def _adding_up(given: Callable[[Shares], Shares], noisy: Shares, noise: float) -> Shares:
    """Shares that add up to 1 as true ones do, which says how much noise there is in all of them.

    As in a projection onto the simplex, the same amount is taken from every noisy share.
    """
    least, most = -3 * noise, 6 * noise
    for _ in range(_STEPS):
        amount = (least + most) / 2
        if given(noisy - amount).sum() > 1:
            least = amount
        else:
            most = amount
    return _share_out(given(noisy - least))
