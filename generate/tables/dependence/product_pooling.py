"""Estimate the products of a class from all classes (`pooling`).

Products of categories, of numbers with categories, and of numbers have priors apart. Those of
numbers have nearly the same variance in all pairs: where numbers depend strongly on each other, two
that are not correlated need a coefficient, too, as the inverse of a correlation matrix shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .group_variances import alike_variances, group_variances
from .pooling import pooled
from .product_departures import Departure


@dataclass(frozen=True, eq=False)
class PooledProducts:
    """The pooled evidence on a class, as one equivalent noisy observation.

    Attributes:
        difference: products of standardised numbers and indicators minus those of independent
            columns, float64 (k, k).
        ridge: noise variance of each over its prior variance, (k, k); large where there is no
            dependence to be found.
    """

    difference: Tensor
    ridge: Tensor


def pooled_products(own: Departure, others: Sequence[Departure]) -> PooledProducts:
    """Pool the departures of all classes for one class.

    Args:
        own: departure of the class.
        others: departures of the others.
    """
    difference, ridge = own.difference.clone(), torch.full_like(own.noise, torch.inf)
    for kind, (place, mine) in enumerate(zip(own.places, own.grouped, strict=True)):
        if not mine.weight.any():
            continue
        variances = group_variances if kind < 2 else alike_variances
        found = pooled(mine, [other.grouped[kind] for other in others], variances)
        # Indicators of a column act together, so the ridge counts the noise before the projection.
        held = own.projection_factor[place] * found.noise / found.variance
        held = torch.where(mine.weight > 0, held, torch.inf)
        for whole, values in ((difference, found.difference.clamp(-1, 1)), (ridge, held)):
            whole[place] = values
            whole.T[place] = values
    return PooledProducts(difference, ridge)
