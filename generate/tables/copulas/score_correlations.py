"""Correlations of normal scores, from tables of two numbers and from products of numbers.

Tables in few cells show the correlations of all pairs about equally well. Products show them the
better, the farther numbers spread between their bounds: from noise that hides everything of two
narrow numbers to a third of that of a table. So each counts by its precision. If rows were fitted
to both instead, each would bring its own noise.

The products are not quite those of a Gaussian copula: in tables of people they are off by about
.03, and by a fifth of themselves (docs/ablations.md, "Products and copulas"). That is the prior
of what only products say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from .attenuation import ProductEvidence
from .normal_scores import NormalScores

_PROBE: Final = 0.3
"""A correlation of all numbers, whose products show how products follow from correlations."""
_LEAST_SLOPE: Final = 0.05
"""Products that follow less than this say nothing of a correlation."""
_OFF: Final = 0.03
"""Standard deviation of products around those of a copula."""
_OFF_RELATIVE: Final = 0.2
"""The same, relative to them, for strong correlations."""
_EXACT: Final = 1e-6
"""Floor for variances."""
_LARGEST: Final = 0.99


@dataclass(frozen=True, eq=False)
class ScoreCorrelations:
    """What is known of the correlations of normal scores.

    Attributes:
        means: float64 (k, k), with 1 on the diagonal.
        variances: of these as estimates, (k, k), with 0 on the diagonal.
        misfit: prior variance of the products of two numbers around those of the copula, (k, k); 0
            if there are no products.
    """

    means: Tensor
    variances: Tensor
    misfit: Tensor


def combined(
    by_tables: Tensor,
    variances: Tensor,
    scores: Sequence[NormalScores],
    evidence: ProductEvidence | None,
) -> ScoreCorrelations:
    """Combine what tables and products say, as the mean weighted by precision.

    Args:
        by_tables: correlations, float64 (k, k).
        variances: of these as estimates, (k, k); infinity for a pair of which tables say nothing.
        scores: of the numbers, k of them.
        evidence: of products; None if there are none, and tables are taken at their word.
    """
    if evidence is None:
        return ScoreCorrelations(by_tables, variances, torch.zeros_like(variances))
    probe = torch.full_like(by_tables, _PROBE).fill_diagonal_(1.0)
    _, products, seen, noise = evidence.of_pairs(probe, scores)
    above = np.triu_indices(len(scores), 1)
    slope, told = products / _PROBE, by_tables.numpy()[above]
    follows = np.abs(slope) > _LEAST_SLOPE
    slope = np.where(follows, slope, 1.0)
    misfit = _OFF**2 + (_OFF_RELATIVE * slope * told) ** 2
    precision = 1 / variances.numpy()[above].clip(_EXACT)
    of_products = np.where(follows, slope**2 / (noise + misfit), 0.0)
    together = (precision + of_products).clip(_EXACT)
    mean = (precision * told + of_products * seen / slope) / together
    found = ScoreCorrelations(by_tables.clone(), variances.clone(), torch.zeros_like(variances))
    for matrix, values in (
        (found.means, mean.clip(-_LARGEST, _LARGEST)),
        (found.variances, 1 / together),
        (found.misfit, np.where(follows, misfit, 0.0)),
    ):
        matrix[above] = torch.from_numpy(values)
        matrix.T[above] = matrix[above]
    return found
