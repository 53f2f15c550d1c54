"""Tables of two numbers under a Gaussian copula.

Numbers that are skewed or far within their bounds are not Gaussian, but their ranks often depend on
each other as those of Gaussian numbers do (a Gaussian copula; Nelsen 2006, "An introduction to
copulas", section 2.3). The copula has one parameter, which a table determines well even if the
noise on its cells is as large as their shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from ..marginals.denoising import mixture_weights

_ANGLES: Final = np.linspace(-1.5, 1.5, 61)
_CORRELATIONS: Final = np.sin(_ANGLES)
"""Candidate correlations, denser where they are large."""
_SPREADS: Final = 0.05 * 2.0 ** np.arange(6)
"""Standard deviations of angles about 0: the components of the prior on correlations."""
_NODES: Final = 8
"""Ranks within a cell over which the conditional distribution is averaged."""
_EXACT: Final = 1e-12
"""Floor for shares."""

Shares = NDArray[np.float64]
Pair = tuple[int, ...]
"""Two numbers, by where each begins in a record."""


def _priors() -> Shares:
    """The components of the prior on angles, (components, angles), each of sum 1."""
    chances = np.exp(-0.5 * np.square(_ANGLES / _SPREADS[:, None]))
    found: Shares = chances / chances.sum(axis=1, keepdims=True)
    return found


_PRIORS: Final = _priors()


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """Noisy shares of the cells of two numbers.

    Attributes:
        shares: (r, s), with the cells of each number in order.
        noise: standard deviation of the noise on each.
        rows: shares of the cells of the first number, (r,), at least one of them positive. They add
            up to less than 1 if the number may be missing.
        columns: likewise of the second, (s,).
        pair: which numbers these are; a pair may have several tables.
        together: the share of rows in which neither is missing; if None, as if that were
            independent.
    """

    shares: Shares
    noise: float
    rows: Shares
    columns: Shares
    pair: Pair
    together: float | None = None


class CorrelationEstimate(NamedTuple):
    """What is known of a correlation.

    Attributes:
        mean: its posterior mean.
        variance: its posterior variance.
    """

    mean: float
    variance: float


@dataclass(frozen=True, eq=False)
class PairCopulas:
    """Posterior distributions of the correlation of each pair of numbers.

    Attributes:
        angles: posterior probability of each candidate angle, whose sine is the correlation, for
            each pair, float64 (angles,), of sum 1.
        prior_variance: variance of the prior on correlations, about 0.
        together: the share of rows in which neither number of a pair is missing, where a table
            says so.
    """

    angles: Mapping[Pair, Shares]
    prior_variance: float
    together: Mapping[Pair, float] = field(default_factory=dict)

    @classmethod
    def of(cls, tables: Sequence[NoisyTable]) -> PairCopulas:
        """Compute the posterior from all tables together.

        The prior on correlations is a mixture, whose weights maximise the marginal likelihood
        (empirical Bayes).

        Args:
            tables: of one class, at least one. A pair may have several.
        """
        logs: dict[Pair, Shares] = {}
        for table in tables:
            expected = _tables_with_missing(table.rows, table.columns, table.together)
            apart = np.square(expected - table.shares)
            of_table = -apart.sum(axis=(1, 2)) / (2 * max(table.noise, _EXACT) ** 2)
            logs[table.pair] = logs.get(table.pair, np.zeros(len(_ANGLES))) + of_table
        likely = np.exp(np.array([each - each.max() for each in logs.values()]))  # (pairs, angles)
        chances = likely @ _PRIORS.T  # (pairs, priors)
        prior = mixture_weights(chances) @ _PRIORS
        posterior = likely * prior
        posterior /= posterior.sum(axis=1, keepdims=True)
        variance = float(prior @ np.square(_CORRELATIONS) / prior.sum())
        together = {each.pair: each.together for each in tables if each.together is not None}
        return cls(dict(zip(logs, posterior, strict=True)), variance, together)

    def correlation(self, pair: Pair) -> CorrelationEstimate | None:
        """What is known of the correlation of a pair; None if it had no table."""
        if (chances := self.angles.get(pair)) is None:
            return None
        mean = float(chances @ _CORRELATIONS)
        return CorrelationEstimate(mean, float(chances @ np.square(_CORRELATIONS - mean)))

    def shares(self, pair: Pair, rows: Shares, columns: Shares) -> Shares:
        """The posterior mean of the shares of cells of two numbers.

        Args:
            pair: a pair that had a table.
            rows: see `NoisyTable`; any cells, (r,).
            columns: likewise, (s,).

        Returns:
            float64 (r, s), positive, with approximately these shares of rows and columns.
        """
        tables = _tables_with_missing(rows, columns, self.together.get(pair))
        found: Shares = np.tensordot(self.angles[pair], tables, axes=1)
        return found.clip(_EXACT)


def cell_shares(correlation: float, rows: Shares, columns: Shares) -> Shares:
    """The shares of cells of two numbers with a Gaussian copula, (r, s).

    Args:
        correlation: of the copula; it counts as the largest one tried if it is larger.
        rows: shares of the cells of the first number, (r,), of sum 1.
        columns: likewise of the second, (s,).
    """
    least, most = _CORRELATIONS[[0, -1]]
    found: Shares = _tables(rows, columns, np.array([correlation]).clip(least, most))[0]
    return found


def _tables_with_missing(rows: Shares, columns: Shares, together: float | None) -> Shares:
    """The shares of cells for each correlation, (correlations, r, s), with missing numbers."""
    of_both = rows.sum() * columns.sum() if together is None else together
    found: Shares = _tables(rows / rows.sum(), columns / columns.sum(), _CORRELATIONS) * of_both
    return found


def _tables(rows: Shares, columns: Shares, correlations: Shares) -> Shares:
    """The shares of cells for each correlation, (correlations, r, s)."""
    before = np.cumsum(rows) - rows
    ranks = before[:, None] + rows[:, None] * (np.arange(_NODES) + 0.5) / _NODES
    first = ndtri(ranks.clip(_EXACT, 1 - _EXACT))
    borders = ndtri(np.concatenate([[0.0], np.cumsum(columns)]).clip(0, 1))
    borders[[0, -1]] = -np.inf, np.inf
    r = correlations[:, None, None, None]
    below = ndtr((borders - r * first[..., None]) / np.sqrt(1 - r**2))
    found: Shares = np.diff(below, axis=-1).mean(axis=2) * rows[:, None]
    return found
