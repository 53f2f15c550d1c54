"""How two numbers depend on each other beyond their Gaussian copula, as a sum of a few waves.

A copula knows no dependence that rises and falls again: of a score that is high for small and for
large values of another number, or of a temperature that follows the time of day, nothing is left.
A few cells of a table show it, but not how it continues within them. So the shares of two numbers
with ranks u and v depart from those by the copula by

    p(u) p(v) sum_ij a_ij phi_i(u) phi_j(v),

where phi_1, phi_2, ... are cosines of 1, 2, ... half waves over the ranks, made orthonormal among
the column's cells (as in an orthogonal series estimate of a copula's density). The coefficients of
a pair are normal with mean 0 and variance v q^(i + j - 2): slow waves are likelier. How often v and
q have which values, among them v = 0 for pairs that follow their copula, is learnt from all pairs
together (empirical Bayes, as in `copula`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from ....common.features.marginals.cells import MarginalColumn
from ..dependence.table_departures import SharesOf
from ..marginals.denoising import mixture_weights
from .copula import Pair

_WAVES: Final = 6
"""The most waves of each number."""
_PRIORS: Final = (
    (0.0, 1.0),
    *((v, q) for v in (0.01, 0.03, 0.1, 0.3, 1.0) for q in (0.2, 0.4, 0.7)),
)
"""Candidates of v and q."""
_SEEN: Final = 1e-4
"""Cells with a smaller share of records do not add to the number of waves."""
_TINY: Final = 1e-9
"""Floor for shares of cells."""
_LEAST: Final = 0.02
"""A cell keeps at least this part of its share by the copula."""

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CopulaResidual:
    """What a noisy table of two numbers has beyond their copula.

    Attributes:
        pair: the two numbers.
        shares: noisy shares minus those by the copula, (r, s), without missing numbers.
        noise: standard deviation of the noise on each, positive.
        first: the `waves_of` the first number in its cells, (r, k).
        second: likewise of the second, (s, l).
    """

    pair: Pair
    shares: Array
    noise: float
    first: Array
    second: Array


def waves_of(side: MarginalColumn, shares_of: SharesOf) -> Array:
    """The sums of each wave over the records in each cell of a number, per record.

    Args:
        side: the number; of its own cells, some may be merged.
        shares_of: gives the shares of a column's cells in rows.

    Returns:
        float64 (r, k) for r cells without that of missing values; k is at most `_WAVES`, and less
        than the number of own cells that have records. The same waves for any merging.
    """
    own = side.unmerged
    shares = shares_of(own).numpy()[: own.known]
    held = shares.clip(_TINY)
    held = held / held.sum()
    ranks = held.cumsum() - held / 2
    count = min(_WAVES, int((shares > _SEEN).sum()) - 1)
    cosines = np.cos(np.pi * np.arange(count + 1) * ranks[:, None])
    roots = np.sqrt(held)[:, None]
    orthonormal, triangle = np.linalg.qr(cosines * roots)
    waves = (orthonormal * np.sign(np.diag(triangle)) / roots)[:, 1:]
    found = np.zeros((side.known, waves.shape[1]))
    np.add.at(found, side.merge(torch.arange(own.known)).numpy(), waves * shares[:, None])
    return found


@dataclass(frozen=True, eq=False)
class SmoothDepartures:
    """The departures of pairs of numbers from their copulas.

    Attributes:
        coefficients: posterior mean of a_ij for each pair, (k, l).
    """

    coefficients: Mapping[Pair, Array]

    @classmethod
    def of(cls, residuals: Sequence[CopulaResidual]) -> SmoothDepartures:
        """Estimate them from all tables together.

        Args:
            residuals: of one class. A pair may have several.
        """
        of_pairs: dict[Pair, list[CopulaResidual]] = {}
        for residual in residuals:
            of_pairs.setdefault(residual.pair, []).append(residual)
        if not of_pairs:
            return cls({})
        seen = [_under_each_prior(tables) for tables in of_pairs.values()]
        logs = np.array([log for log, _ in seen])
        likely = np.exp(logs - logs.max(axis=1, keepdims=True))  # (pairs, priors)
        # As if one more pair followed its copula: few pairs say little of how often that is so.
        chances = likely * mixture_weights(np.vstack([likely, np.eye(1, len(_PRIORS))]))
        chances /= chances.sum(axis=1, keepdims=True)
        found = (each @ means for each, (_, means) in zip(chances, seen, strict=True))
        shapes = ((t[0].first.shape[1], t[0].second.shape[1]) for t in of_pairs.values())
        return cls(
            {
                pair: mean.reshape(shape)
                for pair, mean, shape in zip(of_pairs, found, shapes, strict=True)
            }
        )

    def added_to(self, copula: Array, pair: Pair, first: Array, second: Array) -> Array:
        """Shares of cells of two numbers, positive.

        Args:
            copula: by the copula, (r, s).
            pair: the two numbers; they follow their copula if nothing is known of them.
            first: the `waves_of` the first number in these cells, (r, k).
            second: likewise of the second, (s, l).
        """
        if (coefficients := self.coefficients.get(pair)) is None:
            return copula
        shares: Array = np.maximum(copula + first @ coefficients @ second.T, _LEAST * copula)
        return shares


def _under_each_prior(tables: Sequence[CopulaResidual]) -> tuple[Array, Array]:
    """What the tables of a pair say of its coefficients under each of `_PRIORS`.

    Returns:
        The logarithm of the marginal likelihood up to a constant, (priors,), and the posterior mean
        of the coefficients, (priors, k l).
    """
    first, second = tables[0].first.shape[1], tables[0].second.shape[1]
    precision, score = np.zeros((first * second, first * second)), np.zeros(first * second)
    for table in tables:
        precision += np.kron(
            table.first.T @ table.first, table.second.T @ table.second
        ) / table.noise**2  # fmt: skip
        score += (table.first.T @ table.shares @ table.second).ravel() / table.noise**2
    order = np.add.outer(np.arange(first), np.arange(second)).ravel()
    sizes = np.array([np.sqrt(variance) * falling ** (order / 2) for variance, falling in _PRIORS])
    # With a = sizes b, and b standard normal: its precision, and its posterior mean by Cholesky.
    of_unit = np.eye(first * second) + sizes[:, :, None] * precision * sizes[:, None, :]
    below = np.linalg.cholesky(of_unit)
    scaled = np.linalg.solve(below, (sizes * score)[:, :, None])
    logs = 0.5 * np.square(scaled[..., 0]).sum(axis=1)
    logs -= np.log(np.diagonal(below, axis1=1, axis2=2)).sum(axis=1)
    means = np.linalg.solve(below.transpose(0, 2, 1), scaled)[..., 0]
    return logs, sizes * means
