"""Estimate the dependence of columns in a class from all classes.

Columns that depend on each other in one class mostly do so in the others, and little else is known
of a class with few records. A priori, the dependence of two columns in a class is g + d: a part g
common to all classes and a deviation d, both Gaussian. Their variances are estimated from the
released products minus the noise (empirical Bayes): that of g + d from their squares, and which
share of it is g's from products of two classes. The largest classes dominate these estimates. Pairs
of a class whose own products make a larger variance likelier get that.

Each product has a variance of its own (`pair_variances`). Only pairs of numbers share one, nearly:
where numbers depend strongly on each other, two that are not correlated need a coefficient, too, as
the inverse of a correlation matrix shows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from .pair_variances import kept_as_on_average, pair_variances, posterior_shares
from .product_departures import EXACT, Departure

_LIKE_OTHERS: Final = 8.0
"""With this many products, a pair's own variance and that of all pairs weigh equally."""


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

    Products of categories, of numbers with categories, and of numbers have priors apart.

    Args:
        own: departure of the class.
        others: departures of the others.
    """
    difference, ridge = own.difference, torch.full_like(own.noise, torch.inf)
    for numbers in range(3):
        kind = own.numbers == numbers
        if (kind & own.changeable).any():
            found = _pooled(own, others, kind, pair_variances if numbers < 2 else _alike)
            difference = torch.where(kind, found.difference, difference)
            ridge = torch.where(kind & own.changeable, found.ridge, ridge)
    return PooledProducts(difference, ridge)


def _pooled(
    own: Departure,
    others: Sequence[Departure],
    kind: Tensor,
    variances: Callable[[Sequence[Departure], Tensor], Tensor],
) -> PooledProducts:
    """The same for products of one kind, bool (k, k), by their prior variances."""
    of_class = in_common = expected = variances([own, *others], kind)
    if others:
        by_itself = variances([own], kind)
        of_class = _either(own, kind, by_itself.maximum(expected), expected)
        looks = [_Look.of(each, expected, kind) for each in (own, *others)]
        in_common = _share_in_common(looks, own) * expected.minimum(of_class)
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
    """The departure of a class, relative to expected variances.

    Attributes:
        difference: see `Departure`, (k, k).
        noise: variance of the noise on each of these, positive, (k, k).
        known: which products are to be looked at, 0 or 1, (k, k).
    """

    difference: Tensor
    noise: Tensor
    known: Tensor

    @classmethod
    def of(cls, departure: Departure, expected: Tensor, kind: Tensor) -> _Look:
        noise = departure.noise.clamp(min=EXACT) / expected
        known = (departure.changeable & kind).double()
        return cls(departure.difference / expected.sqrt(), noise, known)

    @property
    def weight(self) -> Tensor:
        """In averages of squares, if these have the expected variances, (k, k)."""
        return self.known / (1 + self.noise).square()

    @property
    def beyond_noise(self) -> Tensor:
        """Squares of differences without what the noise adds to them, (k, k)."""
        return self.difference.square() - self.noise


def _alike(departures: Sequence[Departure], kind: Tensor) -> Tensor:
    """Prior variances if they are nearly the same for all pairs of columns; positive, (k, k)."""
    looks = [_Look.of(each, torch.ones_like(each.noise), kind) for each in departures]
    total, weight = _sums((look.beyond_noise, look.known / look.noise.square()) for look in looks)
    usual = _ratio(total.sum(), weight.sum())
    return _shrunk(departures[0], total, weight, usual).clamp(min=EXACT)


def _share_in_common(looks: Sequence[_Look], own: Departure) -> Tensor:
    """The share of the variance of each pair that classes have in common, positive, (k, k)."""
    total, weight = _sums(
        (one.difference * other.difference, (one.weight * other.weight).sqrt())
        for one, other in itertools.combinations(looks, 2)
    )
    squares, of_squares = _sums((look.beyond_noise, look.weight) for look in looks)
    square = _ratio(squares.sum(), of_squares.sum()).clamp(min=EXACT)
    usual = (_ratio(total.sum(), weight.sum()) / square).clamp(0, 1)
    return _shrunk(own, total, weight, usual).clamp(EXACT, 1)


def _either(own: Departure, kind: Tensor, larger: Tensor, smaller: Tensor) -> Tensor:
    """The variances of a class by either of two estimates, (k, k).

    How often it is the one or the other is learnt from all pairs; in which ones, by what a pair's
    own products make likely.
    """
    variances, pairs = (larger, smaller), own.pairs(own.changeable & kind)
    logs = torch.stack([own.log_likelihoods(each)[pairs] for each in variances], dim=1)
    return kept_as_on_average(own, pairs, variances, posterior_shares(logs))


def _shrunk(own: Departure, total: Tensor, weight: Tensor, usual: Tensor) -> Tensor:
    """The average of each pair, for each of its products, (k, k).

    The fewer products a pair has, the more it is shrunk towards a usual one.

    Args:
        own: departure of a class.
        total: weighted sums of values, over the classes, (k, k).
        weight: sums of the weights, (k, k).
        usual: the usual value.
    """
    belongs, freedom = own.belongs, own.freedom.clamp(min=1)
    like_others = _LIKE_OTHERS / torch.outer(freedom, freedom)
    of_pair = _ratio(belongs.T @ total @ belongs, belongs.T @ weight @ belongs)
    return belongs @ ((of_pair + like_others * usual) / (1 + like_others)) @ belongs.T


def _sums(terms: Iterable[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """The sum of values times their weights, and that of the weights, of several classes."""
    total, weight = torch.zeros(()), torch.zeros(())
    for value, of_value in terms:
        total, weight = total + of_value * value, weight + of_value
    return total, weight


def _ratio(total: Tensor, weight: Tensor) -> Tensor:
    """The average of values with these sums; 0 if nothing is known of any."""
    return total / weight.clamp(min=EXACT)
