"""Estimate the dependence of columns in a class from all classes.

Columns that depend on each other in one class mostly do so in the others, and little else is known
of a class with few records. A priori, the dependence of two columns in a class is g + d: a part g
common to all classes and a deviation d, both Gaussian. Their variances are estimated from the
released products minus the noise, weighted by precision (empirical Bayes): squares estimate the
variance of g + d, and products of two classes that of g. The largest classes dominate these
estimates. A class whose own products vary more, beyond what noise explains, gets the larger
variance.

Each pair of columns has variances of its own (`pair_variances`). Only pairs of numbers share
one, nearly: where numbers depend strongly on each other, two that are not correlated need a
coefficient, too, as the inverse of a correlation matrix shows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from .pair_variances import pair_variances
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
    own: Departure,
    others: Sequence[Departure],
    kind: Tensor,
    belongs: Tensor,
    *,
    of_numbers: bool = False,
) -> PooledProducts:
    """Pool the departures of all classes for one class.

    Args:
        own: departure of the class.
        others: departures of the others.
        kind: which products share a prior, bool (k, k).
        belongs: the column of each entry of z, one-hot (k, columns).
        of_numbers: whether these are products of two numbers.
    """
    looks = [_Look.of(each, own.typical, each.changeable & kind) for each in (own, *others)]
    pairs = _Pairs(belongs, alike=of_numbers)
    in_common = of_class = pairs.variances(looks)
    if others:
        in_common = pairs.covariances(looks, of_class)
        by_itself = pairs.variances(looks[:1]) - _SURE * pairs.noise_deviation(looks[0])
        of_class = torch.maximum(of_class, by_itself)
    of_class, in_common = (pairs.each(pair) * own.typical for pair in (of_class, in_common))
    apart = of_class - in_common
    precisions = [
        (each.changeable & kind) / (each.noise.clamp(min=EXACT) + apart) for each in others
    ]
    return posterior(own, [each.difference for each in others], precisions, of_class, in_common)


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


@dataclass(frozen=True, eq=False)
class _Look:
    """The departure of a class, relative to what is typical of each product.

    Attributes:
        difference: see `Departure`, (k, k).
        noise: variance of the noise on each of these, positive, (k, k).
        weight: one over its square; 0 for products that swaps do not change, (k, k).
    """

    difference: Tensor
    noise: Tensor
    weight: Tensor

    @classmethod
    def of(cls, departure: Departure, typical: Tensor, known: Tensor) -> _Look:
        noise = departure.noise.clamp(min=EXACT) / typical
        return cls(departure.difference / typical.sqrt(), noise, known / noise.square())


def _average(total: Tensor, weight: Tensor) -> Tensor:
    """The average of all pairs; 0 if nothing is known of any."""
    return total.sum() / weight.sum().clamp(min=EXACT)


class _Pairs:
    """Averages over the products of each pair of columns, (columns, columns).

    Args:
        belongs: the column of each entry of z, one-hot (k, columns).
        alike: whether all pairs have nearly the same variance.
    """

    def __init__(self, belongs: Tensor, *, alike: bool) -> None:
        self._belongs, self._alike = belongs, alike
        # The sum of a column's indicators is known, which takes one degree of freedom.
        count = belongs.sum(dim=0).clamp(min=1)
        free = torch.where(count > 1, count - 1, count)
        self._free = torch.outer(free / count, free / count)
        self._like_all = _LIKE_OTHERS / torch.outer(free, free)

    def each(self, pairs: Tensor) -> Tensor:
        """Expand values of pairs of columns to their products, (k, k)."""
        return self._belongs @ pairs @ self._belongs.T

    def variances(self, looks: Sequence[_Look]) -> Tensor:
        """The prior variance of the departures of each pair."""
        squares, noise, weight = self._totals(looks)
        if self._alike:
            return self._shrunk(squares - noise, weight, _average(squares - noise, weight))
        known = weight > 0
        # The number of products that would weigh as much if they weighed the same.
        effective = weight.square() / self._sums([look.weight.square() for look in looks])
        found = torch.zeros_like(weight)
        found[known] = pair_variances(
            (squares / weight)[known],
            (noise / weight)[known],
            (effective * self._free)[known].clamp(min=1),
        )
        return found.clamp(min=EXACT)

    def covariances(self, looks: Sequence[_Look], variances: Tensor) -> Tensor:
        """The prior variance of what classes have in common, at most these variances."""
        both = list(itertools.combinations(looks, 2))
        weights = [(one.weight * other.weight).sqrt() for one, other in both]
        products = [
            weight * one.difference * other.difference
            for weight, (one, other) in zip(weights, both, strict=True)
        ]
        weight, product = self._sums(weights), self._sums(products)
        squares, noise, of_squares = self._totals(looks)
        share = _average(product, weight) / _average(squares - noise, of_squares).clamp(min=EXACT)
        found = self._shrunk(product, weight, share.clamp(0, 1) * variances)
        return found.minimum(variances)

    def noise_deviation(self, look: _Look) -> Tensor:
        """The standard deviation that noise gives to the variances of a single class."""
        of_all = 1 / look.weight.sum().clamp(min=EXACT)
        of_pair = 1 / self._sums([look.weight]).clamp(min=EXACT)
        squares = 2 * (of_pair + self._like_all.square() * of_all)
        return squares.sqrt() / (1 + self._like_all)

    def _shrunk(self, total: Tensor, weight: Tensor, usual: Tensor) -> Tensor:
        """The average of each pair, shrunk towards a usual one; positive."""
        of_pair = total / weight.clamp(min=EXACT)
        return ((of_pair + self._like_all * usual) / (1 + self._like_all)).clamp(min=EXACT)

    def _totals(self, looks: Sequence[_Look]) -> tuple[Tensor, Tensor, Tensor]:
        """Weighted sums of each pair's squares and of the noise in them, and the weights' sums."""
        return (
            self._sums([look.weight * look.difference.square() for look in looks]),
            self._sums([look.weight * look.noise for look in looks]),
            self._sums([look.weight for look in looks]),
        )

    def _sums(self, products: Sequence[Tensor]) -> Tensor:
        """Sums over the products of each pair, in all classes."""
        return self._belongs.T @ torch.stack(list(products)).sum(dim=0) @ self._belongs
