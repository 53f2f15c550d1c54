"""By how much numbers depend less on each other than their tables and a Gaussian copula say.

Tables of two numbers in few cells say how often both are on the same side, and a Gaussian copula
what follows for everything else. Not all dependence is like that: principal components are not
correlated, but not independent either, and the normal scores of credit card payments (Credit) are
correlated half as much as the copula of their halves says. So a correlation of r becomes
r (a + (1 - a) r^2), which leaves strong ones nearly as they are. The factor a follows from the
released products of numbers, relative to those that the copula would give, and is 1 unless these
are smaller beyond doubt: rows that are fitted with ridges lose a little dependence in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..dependence.product_departures import Departure, ReleasedMoments
from .normal_scores import NormalScores

_SURE: Final = 2.0
"""The factor is so many standard deviations above its estimate."""
_OF_A_PAIR: Final = 0.25
"""Standard deviation of products among the pairs of a table, relative to those expected."""
_LEAST: Final = 0.4
"""If ranks within halves were independent of each other, it would be (2 / pi)^2."""
_EXACT: Final = 1e-12
"""Floor for variances."""


@dataclass(frozen=True, eq=False)
class ProductEvidence:
    """What a release says of products of numbers.

    Attributes:
        released: the products of a class.
        departure: of these from independent columns.
        records: rows of independent columns, (n, record size).
    """

    released: ReleasedMoments
    departure: Departure
    records: Tensor

    def of_pairs(
        self, correlations: Tensor, scores: Sequence[NormalScores]
    ) -> tuple[NDArray[np.float64], ...]:
        """For each pair of numbers: r, its product by the copula, the one seen, and its noise.

        Products are of standardised numbers, less those of independent ones; the noise is a
        variance.

        Args:
            correlations: of normal scores, float64 (k, k).
            scores: of the numbers, k of them.
        """
        entries = self._entries(scores)
        # The same draws each time: all that they do is to integrate, and the same ones for
        # independent numbers, so that most of their error cancels.
        draws = np.random.default_rng(0).standard_normal((len(self.records), len(scores)))
        mixed = draws @ torch.linalg.cholesky(correlations).numpy().T
        expected = self._products(scores, mixed) - self._products(scores, draws)
        matrices = (
            correlations,
            *(
                each[entries][:, entries]
                for each in (expected, self.departure.difference, self.departure.noise)
            ),
        )
        above = np.triu_indices(len(scores), 1)
        return tuple(each.numpy()[above] for each in matrices)

    def of_entries(self, values: Tensor, scores: Sequence[NormalScores]) -> Tensor:
        """Values of pairs of numbers, at their entries of z, float64 (K, K); 0 elsewhere.

        Args:
            values: float64 (k, k).
            scores: of the numbers, k of them.
        """
        found = torch.zeros_like(self.departure.difference)
        entries = torch.tensor(self._entries(scores))
        found[entries[:, None], entries] = values
        return found

    def _entries(self, scores: Sequence[NormalScores]) -> list[int]:
        entry_of = {place: 1 + n for n, (place, _) in enumerate(self.released.features.numbers)}
        return [entry_of[each.place] for each in scores]

    def _products(self, scores: Sequence[NormalScores], ranked: NDArray[np.float64]) -> Tensor:
        """Products of standardised numbers whose ranks are those of others, (n, numbers)."""
        rows = self.records.clone()
        for each, of_number in zip(scores, ranked.T, strict=True):
            known = each.known(rows)
            order = torch.from_numpy(of_number)[known].argsort()
            values = rows[known, each.place].sort().values
            rows[known, each.place] = torch.empty_like(values).index_copy_(0, order, values)
        return self.departure.products(self.released.factors(rows).double())


def attenuated(
    correlations: Tensor, scores: Sequence[NormalScores], evidence: ProductEvidence | None
) -> Tensor:
    """Correlations of normal scores, given those of the copula that tables suggest.

    Args:
        correlations: float64 (k, k).
        scores: of the numbers, k of them.
        evidence: None if there are no products, and tables are taken at their word.
    """
    if evidence is None:
        return correlations
    factor = weak_factor(*evidence.of_pairs(correlations, scores))
    return correlations * (factor + (1 - factor) * correlations.square())


def weak_factor(
    correlations: NDArray[np.float64],
    expected: NDArray[np.float64],
    seen: NDArray[np.float64],
    noise: NDArray[np.float64],
) -> float:
    """The factor of weak correlations, `_LEAST` to 1.

    Args:
        correlations: of the copula, for each pair, (pairs,).
        expected: the products that would follow from it, (pairs,).
        seen: released products, (pairs,).
        noise: variance of the noise on these, (pairs,).
    """
    weak = expected * (1 - correlations**2)
    lacking = seen - expected * correlations**2
    usual = (expected**2).sum() / max(len(expected), 1)
    doubt = (noise + _OF_A_PAIR**2 * np.maximum(expected**2, usual)).clip(_EXACT)
    precision = (weak**2 / doubt).sum().clip(_EXACT)
    found = (weak * lacking / doubt).sum() / precision + _SURE / np.sqrt(precision)
    return float(np.clip(found, _LEAST, 1.0))
