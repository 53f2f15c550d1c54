"""Posterior means of the shares of a column's cells, given noisy ones from a release.

Many cells of a private table are empty or nearly so, and half of the noise there is positive. Taken
as it is, it makes rows with values that nobody has, and between wide bounds it inflates a column's
standard deviation many times. So a noisy share is replaced by its posterior mean. The prior is
exponential, with a mean of unknown order of magnitude: for numbers, about that of the neighbouring
cells; for categories, about that in all classes. Cells of numbers are emptied only where they are
likely empty in every class, and categories never: otherwise a class could be recognised by a cell
that it lacks.
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
"""Beyond this many standard deviations below 0, the mean above 0 is practically one over the
distance."""
_FACTOR: Final = 4.0
"""Ratio of one order of magnitude to the next."""
_LEAST: Final = 0.25
"""The smallest order of magnitude, in standard deviations of the noise."""
_FAINTEST: Final = 2.0**-10
"""The smallest order of magnitude in a table of several columns, likewise."""
_ORDERS_OFF_MODEL: Final = 1
"""Number of factors by which a cell's share may differ from a model of the table."""
_EM_STEPS: Final = 100
_NEXT: Final = 0.25
"""Probability that the order of magnitude changes by one from cell to cell, relative to none."""
_JUMP: Final = 0.02
"""Probability of any other change: numbers may have spikes, for example at round ones."""
_STILL_EMPTY: Final = 0.8
"""Additional probability that the cell after an empty one is empty too."""
WIDE: Final = 0.5
"""Probability that bounds are so wide that nothing lies next to them. Otherwise cells there are
like others: whatever lies beyond a bound counts as the bound."""
WIDE_OF_DATES: Final = 0.05
"""The same for dates and times, whose bounds mostly are those of what is told of."""
_LONG: Final = 1024
"""Number of cells after which a chain forgets its start."""
_EMPTY: Final = 0.3
"""A cell counts as empty above this posterior probability."""
_CERTAIN: Final = 4.0
"""Not all emptied cells are empty if the others lack this many standard deviations of their sum's
noise of a sum of 1."""
_OFF: Final = 0.3
"""Probability of each further factor between a category's share in a class and in all classes."""
_ORDERS: Final = 3
"""Largest number of such factors."""
_STEPS: Final = 20

Shares = NDArray[np.float64]


def number_shares(
    noisy: Shares,
    noise: float,
    points: int,
    possible: NDArray[np.bool_] | None = None,
    wide: float = WIDE,
) -> Shares:
    """Posterior means of the shares of a numeric column's cells.

    Whether a cell is empty, and otherwise its order of magnitude, follows a Markov chain along the
    numbers; its posterior given all noisy shares is computed by forward and backward recursions
    (Rabiner 1989, "A tutorial on hidden Markov models", section III). So small shares in many
    neighbouring cells are kept, and the same amount far from everything else is not, least of all
    next to bounds, which may be wide.

    Args:
        noisy: (cells,), in the order of the numbers; cells from `points` on are outside the order.
        noise: standard deviation of the noise.
        points: number of cells of numbers.
        possible: cells that need not be empty, (cells,). If None, cells that are too likely empty
            are emptied (as posterior medians are under a prior with a point mass at 0, Johnstone
            and Silverman 2004, "Needles and straw in haystacks", section 2).
        wide: probability that nothing lies next to the bounds.

    Returns:
        float64 (cells,), not negative, of sum 1.
    """
    deviation = max(noise, _EXACT)
    means = _magnitudes(deviation)
    number = np.arange(len(means) + 1)  # the first state is an empty cell
    step = _NEXT ** np.abs(number[:, None] - number)
    step = (1 - _JUMP) * step / step.sum(axis=1, keepdims=True) + _JUMP / len(number)
    step[0] *= 1 - _STILL_EMPTY
    step[0, 0] += _STILL_EMPTY
    usual = np.linalg.matrix_power(step, _LONG)[0]
    start = (1 - wide) * usual + wide * step[0]
    end = 1 - wide + wide * step[:, 0] / usual[0]

    def posterior_means(shifted: Shares) -> Shares:
        logs, found = _under_exponential_priors(
            shifted, deviation, np.tile(means, (len(shifted), 1))
        )
        nothing = -0.5 * (shifted / deviation) ** 2 - math.log(deviation * math.sqrt(2 * math.pi))
        likelihoods = _likelihoods(np.column_stack([nothing, logs]))
        states = np.concatenate(
            [
                _forward_backward(likelihoods[:points], step, start, end),
                _normalised(likelihoods[points:]),
            ]
        )
        shares: Shares = (states[:, 1:] * found).sum(axis=1)
        empty = states[:, 0] > _EMPTY if possible is None else ~possible
        return np.where(empty, 0.0, shares) if not empty.all() else shares

    found = _with_sum_one(posterior_means, noisy, deviation)
    left = found > 0
    if 1 - noisy[left].sum() > _CERTAIN * deviation * math.sqrt(left.sum()):
        # As where most rows are 0 and the others lie anywhere: nobody can say which, but some of
        # the emptied cells are not empty.
        possible = np.ones(len(noisy), dtype=bool)
        return _with_sum_one(posterior_means, noisy, deviation)
    return found


def category_shares(noisy: Shares, noise: float, common: Shares | None = None) -> Shares:
    """Posterior means of the shares of categories; none is 0.

    Args:
        noisy: (cells,).
        noise: standard deviation of the noise.
        common: posterior mean shares in all classes together, (cells,), positive; None to estimate
            these.

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

    def posterior_means(shifted: Shares) -> Shares:
        logs, found = _under_exponential_priors(shifted, deviation, np.clip(means, _EXACT**2, 1.0))
        shares: Shares = (_normalised(_likelihoods(logs) * prior) * found).sum(axis=1)
        return shares

    return _with_sum_one(posterior_means, noisy, deviation)


def table_shares(noisy: Shares, noise: float, model: Shares | None = None) -> Shares:
    """Posterior means of the cells of a table of several columns; none is 0.

    There are many cells, and where columns depend on each other most are nearly empty. The positive
    noise in these adds up to rows that break the dependence. So the distribution of orders of
    magnitude is learnt from the table itself (nonparametric maximum likelihood, Laird 1978;
    empirical Bayes). If a model of the table is given, so is how often a cell's share equals the
    model's, or nearly does.

    Args:
        noisy: (cells,).
        noise: standard deviation of the noise.
        model: shares by such a model, (cells,), positive; None if there is none.

    Returns:
        float64 (cells,), positive, of sum 1.
    """
    deviation = max(noise, _EXACT)
    means = np.tile(_magnitudes(deviation, _FAINTEST), (len(noisy), 1))
    if model is not None:
        off = np.arange(-_ORDERS_OFF_MODEL, _ORDERS_OFF_MODEL + 1)
        about = np.clip(model[:, None] * _FACTOR**off, _EXACT**2, 1.0)
        means = np.hstack([means, about])

    def posterior_means(shifted: Shares) -> Shares:
        logs, found = _under_exponential_priors(shifted, deviation, means)
        if model is not None:
            apart = (shifted - model) / deviation
            exact = -0.5 * apart**2 - math.log(deviation * math.sqrt(2 * math.pi))
            logs, found = np.c_[logs, exact], np.c_[found, model]
        likelihoods = _likelihoods(logs)
        frequent = mixture_weights(likelihoods)
        shares: Shares = (_normalised(likelihoods * frequent) * found).sum(axis=1)
        return shares

    return _with_sum_one(posterior_means, noisy, deviation)


def mixture_weights(likelihoods: Shares) -> Shares:
    """The most likely weights of a mixture's components, by the EM algorithm.

    Args:
        likelihoods: of each observation under each component, (observations, components), up to a
            factor in each row.

    Returns:
        float64 (components,), of sum 1.
    """
    weights = np.full(likelihoods.shape[1], 1 / likelihoods.shape[1])
    for _ in range(_EM_STEPS):
        # The mean posterior of each component, as two matrix-vector products.
        weights = weights * ((1 / (likelihoods @ weights)) @ likelihoods) / len(likelihoods)
    return weights


def _magnitudes(noise: float, smallest: float = _LEAST) -> Shares:
    """Candidate orders of magnitude of a share, from a fraction of the noise to 1, (orders,)."""
    least = noise * smallest
    orders = 1 + max(0, math.ceil(-math.log(least, _FACTOR)))
    means: Shares = np.minimum(least * _FACTOR ** np.arange(orders), 1.0)
    return means


def _under_exponential_priors(noisy: Shares, noise: float, means: Shares) -> tuple[Shares, Shares]:
    """Marginal likelihoods and posterior means of shares under exponential priors.

    Given the noisy share, the true one has a normal distribution truncated at 0 (Johnson, Kotz and
    Balakrishnan 1994, "Continuous Univariate Distributions", section 13.10.1).

    Args:
        noisy: (cells,).
        noise: standard deviation of the noise, positive.
        means: means of the exponential priors, (cells, orders).

    Returns:
        The log density of the noisy share, and the posterior mean of the true one, both (cells,
        orders).
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


def _likelihoods(logs: Shares) -> Shares:
    """Likelihoods up to a factor in each row."""
    likelihoods: Shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return likelihoods


def _normalised(weights: Shares) -> Shares:
    shares: Shares = weights / weights.sum(axis=-1, keepdims=True)
    return shares


def _forward_backward(likelihoods: Shares, step: Shares, start: Shares, end: Shares) -> Shares:
    """Posterior probabilities of a chain's states in each cell, given all observations.

    Args:
        likelihoods: likelihood of a cell's observation in each state, (cells, states).
        step: transition probabilities, (states, states).
        start: probabilities of the first state, (states,).
        end: likelihood of what follows the last cell, up to a factor, in each state, (states,).
    """
    forward, backward = np.empty_like(likelihoods), np.tile(end, (len(likelihoods), 1))
    before = start
    for cell, chance in enumerate(likelihoods):
        forward[cell] = _normalised(before * chance)
        before = forward[cell] @ step
    for cell in range(len(likelihoods) - 1, 0, -1):
        backward[cell - 1] = _normalised(step @ (backward[cell] * likelihoods[cell]))
    return _normalised(forward * backward)


def _with_sum_one(
    posterior_means: Callable[[Shares], Shares], noisy: Shares, noise: float
) -> Shares:
    """Denoise shares so that they add up to 1.

    As in a projection onto the simplex, the same amount is subtracted from every noisy share.
    """
    least, most = -3 * noise, 6 * noise
    for _ in range(_STEPS):
        amount = (least + most) / 2
        if posterior_means(noisy - amount).sum() > 1:
            least = amount
        else:
            most = amount
    return _normalised(posterior_means(noisy - least))
