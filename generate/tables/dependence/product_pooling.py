"""Estimate the dependence of columns in a class from all classes.

Columns that depend on each other in one class mostly do so in the others, and little else is known
of a class with few records. A priori, the dependence of two columns in a class is g + d: a part g
common to all classes and a deviation d, both Gaussian. Their variances are estimated from the
released products minus the noise, weighted by precision (empirical Bayes): squares estimate the
variance of g + d, and products of two classes that of g. The largest classes dominate these
estimates. A class whose own products vary more, beyond what noise explains, gets the larger
variance. The variances of a pair of columns are shrunk towards those of all pairs, less so if the
pair has many products.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from .product_departures import EXACT, Departure

_LIKE_OTHERS: Final = 8.0
"""With this many products, a pair's own variance and that of all pairs weigh equally."""
_SURE: Final = 2.0
"""Differences beyond this many standard deviations of the noise are significant."""


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


def pooled_products(
    own: Departure, others: Sequence[Departure], kind: Tensor, belongs: Tensor
) -> PooledProducts:
    """Pool the departures of all classes for one class.

    Args:
        own: departure of the class.
        others: departures of the others.
        kind: which products share a prior, bool (k, k).
        belongs: the column of each entry of z, one-hot (k, columns).
    """
    looks = [own, *others]
    seen, known = [each.difference for each in looks], [each.changeable & kind for each in looks]
    noises = [each.noise.clamp(min=EXACT) for each in looks]
    averages = _PairAverages(belongs)
    weights = [each / noise.square() for each, noise in zip(known, noises, strict=True)]
    squares = [each.square() - noise for each, noise in zip(seen, noises, strict=True)]
    in_common = of_class = averages.mean(squares, weights).clamp(min=EXACT)
    if others:
        pairs = list(itertools.combinations(range(len(looks)), 2))
        products = [seen[one] * seen[other] for one, other in pairs]
        by_both = [known[a] * known[b] / (noises[a] * noises[b]) for a, b in pairs]
        in_common = averages.mean(products, by_both).clamp(min=EXACT).minimum(of_class)
        by_itself = averages.mean(squares[:1], weights[:1]) - _SURE * averages.noise_deviation(
            weights[0]
        )
        of_class = torch.maximum(of_class, by_itself)
    apart = of_class - in_common
    precisions = [each / (noise + apart) for each, noise in zip(known, noises, strict=True)]
    return posterior(own, seen[1:], precisions[1:], of_class, in_common)


def posterior(
    own: Departure,
    others: Sequence[Tensor],
    precisions: Sequence[Tensor],
    of_class: Tensor,
    in_common: Tensor,
) -> PooledProducts:
    """Pool departures with known prior variances.

    Args:
        own: departure of the class.
        others: `difference` of the other classes, float64 (k, k) each.
        precisions: inverse variance of each of these about the common part g, (k, k); 0 where it
            says nothing.
        of_class: prior variance of g + d, (k, k).
        in_common: prior variance of g, (k, k).
    """
    noise = own.noise.clamp(min=EXACT)
    seen, noise = pool_observations(own.difference, noise, others, precisions, of_class, in_common)
    # Indicators of a column act together, so the ridge counts the noise before the projection.
    return PooledProducts(seen.clamp(-1, 1), own.projection_factor * noise / of_class)


def pool_observations(
    own: Tensor,
    noise: Tensor,
    others: Sequence[Tensor],
    precisions: Sequence[Tensor],
    of_class: Tensor,
    in_common: Tensor,
) -> tuple[Tensor, Tensor]:
    """Combine observations of all classes into one equivalent observation of a class.

    Args:
        own: observation of the class itself, of any shape; all others have the same.
        noise: variance of its noise, positive.
        others: observations of the other classes.
        precisions: inverse variance of each of these about the common part; 0 where it says
            nothing.
        of_class: prior variance of the class's true value, positive.
        in_common: prior variance of its common part, at most `of_class`.

    Returns:
        The equivalent observation, and the variance of its noise.
    """
    nothing = torch.zeros_like(in_common)
    known = sum(precisions, nothing)
    left = in_common / (1 + in_common * known)
    weighed = (precision * other for precision, other in zip(precisions, others, strict=True))
    expected = left * sum(weighed, nothing)
    before = of_class - in_common + left
    mean = (own / noise + expected / before) / (1 / noise + 1 / before)
    # Its precision is 1 / noise + 1 / before - 1 / of_class, where the last two may cancel.
    noise = 1 / (1 / noise + in_common * known * left / (before * of_class))
    return mean * (1 + noise / of_class), noise


class _PairAverages:
    """Averages over the products of a pair of columns, shrunk towards those of all pairs.

    Args:
        belongs: the column of each entry of z, one-hot (k, columns).
    """

    def __init__(self, belongs: Tensor) -> None:
        self._belongs = belongs
        # The sum of a column's indicators is known, which takes one degree of freedom.
        count = belongs.sum(dim=0)
        freedom = torch.where(count > 1, count - 1, count).clamp(min=1)
        self._like_all = _LIKE_OTHERS / torch.outer(freedom, freedom)

    def mean(self, numbers: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
        """The weighted mean for each product's pair, over all classes, (k, k)."""
        nothing = torch.zeros_like(numbers[0])
        weight = sum(weights, nothing)
        total = sum((one * much for one, much in zip(numbers, weights, strict=True)), nothing)
        of_all = total.sum() / weight.sum().clamp(min=EXACT)
        of_pair = self._of_pairs(total) / self._of_pairs(weight).clamp(min=EXACT)
        return self._each((of_pair + self._like_all * of_all) / (1 + self._like_all))

    def noise_deviation(self, weights: Tensor) -> Tensor:
        """The standard deviation that noise gives to such a mean of squares, (k, k).

        Args:
            weights: one over the squared noise variance, (k, k).
        """
        of_all = 1 / weights.sum().clamp(min=EXACT)
        of_pair = 1 / self._of_pairs(weights).clamp(min=EXACT)
        squares = 2 * (of_pair + self._like_all.square() * of_all)
        return self._each(squares.sqrt() / (1 + self._like_all))

    def _of_pairs(self, products: Tensor) -> Tensor:
        """Sums over the products of each pair of columns."""
        return self._belongs.T @ products @ self._belongs

    def _each(self, pairs: Tensor) -> Tensor:
        """Expand pairs of columns to their products."""
        return self._belongs @ pairs @ self._belongs.T
