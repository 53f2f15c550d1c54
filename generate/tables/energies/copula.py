"""The energy of a Gaussian copula of all numbers of a class.

Tables of two numbers in few cells determine the correlation of their normal scores
(`copulas.copula`) and little else. As targets, their cells would leave out what lies within
them: among cells of an eighth of all rows each, a correlation of .95 becomes .9. And the
correlations of all pairs, each with its own noise, may be those of no table at all. So they are
replaced by the nearest correlation matrix, of which weak correlations are made weaker where
products of numbers say so (`copulas.attenuation`), and which may be combined with what each
product says (`copulas.score_correlations`); and the log density of rows gets the
quadratic form of that copula in their normal scores. Its coefficients are then learnt as rows move,
like those of the other energies, with the same kind of ridge: noise over prior variance.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Final

import torch
from torch import Tensor

from ..copulas.attenuation import ProductEvidence, attenuated
from ..copulas.copula import PairCopulas, cell_shares
from ..copulas.correlation_matrix import LEAST_EIGENVALUE, as_correlations
from ..copulas.normal_scores import NormalScores
from ..copulas.score_correlations import combined
from .correlation import ProductGains
from .learning_rates import LearningRates

_LEAST: Final = 1e-3
"""Floor for eigenvalues, and for the part of a prior variance that a release takes away."""


class CopulaEnergy:
    """The energy z^T A z / 2 of the normal scores z, with A learnt as rows move.

    Args:
        copulas: of pairs of the numbers.
        numbers: the place of each number in a record, and that of the value which marks it as
            missing, -1 if it cannot be missing.
        records: rows of the class, whose marginals stay as they are, (n, record size).
        products: what is known of products of numbers; None if there are none.
        combine: whether products say of each correlation what they know; otherwise they only make
            weak ones weaker.

    Attributes:
        misfit: prior variance of products of numbers around those of the copula, by their entries
            of z, float64 (K, K), 0 for other products; None if they are not combined.
    """

    def __init__(
        self,
        copulas: PairCopulas,
        numbers: Mapping[int, int],
        records: Tensor,
        products: ProductEvidence | None = None,
        *,
        combine: bool = False,
    ) -> None:
        scores = [NormalScores.of(place, mark, records) for place, mark in numbers.items()]
        self._scores = scores
        self._places = {each.place: slice(k, k + 1) for k, each in enumerate(scores)}
        own = [each.in_parts() for each in scores]
        noisy = torch.eye(len(scores), dtype=torch.float64)
        known, doubt = torch.zeros_like(noisy, dtype=torch.bool), torch.zeros_like(noisy)
        for one, other in self._pairs:
            pair = scores[one].place, scores[other].place
            if (seen := copulas.correlation(pair)) is not None:
                noisy[one, other] = noisy[other, one] = seen.mean
                doubt[one, other] = doubt[other, one] = seen.variance
                known[one, other] = known[other, one] = True
        by_tables = attenuated(as_correlations(noisy, _least(doubt)), scores, products)
        told = products if combine else None
        found = combined(by_tables, doubt, scores, told)
        # Pairs of which no table says anything are left to the energy of products.
        doubt = torch.where(known, found.variances, 0.0)
        # A pair that nothing is known of has no coefficient.
        ridge = doubt / (copulas.prior_variance - doubt).clamp(min=_LEAST)
        ridge = torch.where(known, ridge, torch.inf)
        correlations = as_correlations(torch.where(known, found.means, by_tables), _least(doubt))
        self.misfit: Tensor | None = None
        if told is not None:
            self.misfit = told.of_entries(torch.where(known, found.misfit, 0.0), scores)
        self._wanted = torch.zeros_like(noisy)
        for one, other in self._pairs:
            (rows, of_rows), (columns, of_columns) = own[one], own[other]
            cells = cell_shares(float(correlations[one, other]), rows, columns)
            product = float(of_rows @ cells @ of_columns)
            self._wanted[one, other] = self._wanted[other, one] = product
        self._theta = torch.where(known, -torch.linalg.inv(correlations), 0.0)
        self._rates = LearningRates(ridge)

    @property
    def _pairs(self) -> Iterator[tuple[int, int]]:
        return itertools.combinations(range(len(self._scores)), 2)

    def learn(self, records: Tensor) -> None:
        """Update the energy by what products of scores still lack, in rows that know both."""
        scores = self._of(records)
        known = torch.stack([each.known(records) for each in self._scores], dim=1).float()
        here = (scores.T @ scores) / (known.T @ known).clamp(min=1)
        self._theta = self._rates.step(self._theta, self._wanted - here.double())

    def swap_gains(self, records: Tensor) -> ProductGains:
        """The gains of swaps between the first half of the rows and the second."""
        theta = (self._theta + self._rates.lead).float()
        return ProductGains(self._of(records), theta, self._places)

    def _of(self, records: Tensor) -> Tensor:
        return torch.stack([each(records) for each in self._scores], dim=1)


def _least(doubt: Tensor) -> float:
    """A floor for eigenvalues: each is in doubt by about the norm of the noise.

    Args:
        doubt: variances of correlations, (k, k).
    """
    return max(min(float(doubt.sum(dim=0).max().sqrt()), LEAST_EIGENVALUE), _LEAST)
