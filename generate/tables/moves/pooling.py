"""How columns of a class go together, by what is released of all classes.

Columns that go together in one class mostly do so in the others, and little else is known of a
class with few records. A priori, how two columns of a class go together is g + d: a part g that all
classes have in common and a part d of its own, both Gaussian. Their variances are estimated from
the released products less the noise, weighed by precision (empirical Bayes): squares estimate the
variance of g + d, and products of two classes that of g. The largest classes are known best; a
class that by itself varies more than that, and more than the noise explains, gets the larger
variance. A pair of columns has variances of its own as far as it has many products, and otherwise
those of all pairs.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from .departures import EXACT, Departure

_LIKE_OTHERS: Final = 8.0
"""With this many products, a pair of columns is judged half by itself, half by all pairs."""
_SURE: Final = 2.0
"""More standard deviations of the noise than this are not explained by noise."""


@dataclass(frozen=True, eq=False)
class PooledProducts:
    """How columns of a class go together, as one noisy look that stands for those of all classes.

    Attributes:
        lacking: products of standardised numbers and indicators, less those of independent columns,
            float64 (k, k).
        ridge: the variance of the noise on each over that of how columns go together, (k, k): if
            nothing is left of the latter, no product is to be believed.
    """

    lacking: Tensor
    ridge: Tensor


def pooled_products(
    own: Departure, others: Sequence[Departure], kind: Tensor, belongs: Tensor
) -> PooledProducts:
    """What all classes say of one.

    Args:
        own: of the class.
        others: of the others.
        kind: which products are alike before anything is seen, bool (k, k).
        belongs: to which column each of z does, (k, columns), 0 or 1.
    """
    looks = [own, *others]
    seen, known = [each.lacking for each in looks], [each.free & kind for each in looks]
    noises = [each.noise.clamp(min=EXACT) for each in looks]
    alike = _Alike(belongs)
    weights = [each / noise.square() for each, noise in zip(known, noises, strict=True)]
    squares = [each.square() - noise for each, noise in zip(seen, noises, strict=True)]
    in_common = of_class = alike.mean(squares, weights).clamp(min=EXACT)
    if others:
        pairs = list(itertools.combinations(range(len(looks)), 2))
        products = [seen[one] * seen[other] for one, other in pairs]
        by_both = [known[a] * known[b] / (noises[a] * noises[b]) for a, b in pairs]
        in_common = alike.mean(products, by_both).clamp(min=EXACT).minimum(of_class)
        by_itself = alike.mean(squares[:1], weights[:1]) - _SURE * alike.doubt(weights[0])
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
    """The same, with known variances.

    Args:
        own: of the class.
        others: what columns of others lack, float64 (k, k) each.
        precisions: one over the variance of each of these about what classes have in common,
            (k, k); 0 where it says nothing.
        of_class: variance of how two columns of a class go together, (k, k).
        in_common: variance of what of that classes have in common, (k, k).
    """
    noise = own.noise.clamp(min=EXACT)
    seen, noise = one_look(own.lacking, noise, others, precisions, of_class, in_common)
    # Indicators of a column act as one, so that all have what has been taken off.
    return PooledProducts(seen.clamp(-1, 1), own.taken_off * noise / of_class)


def one_look(
    own: Tensor,
    noise: Tensor,
    others: Sequence[Tensor],
    precisions: Sequence[Tensor],
    of_class: Tensor,
    in_common: Tensor,
) -> tuple[Tensor, Tensor]:
    """What a single look at a class would have shown that says as much as those at all do.

    Args:
        own: what is seen of the class itself, of any shape, as all others are.
        noise: variance of the noise on that, positive.
        others: what is seen of others.
        precisions: one over the variance of each of these about what classes have in common; 0
            where it says nothing.
        of_class: variance of what is true of a class, positive.
        in_common: variance of what of that classes have in common, at most that.

    Returns:
        What it would have shown, and the variance of its noise.
    """
    nothing = torch.zeros_like(in_common)
    known = sum(precisions, nothing)
    left = in_common / (1 + in_common * known)
    weighed = (precision * other for precision, other in zip(precisions, others, strict=True))
    expected = left * sum(weighed, nothing)
    before = of_class - in_common + left
    mean = (own / noise + expected / before) / (1 / noise + 1 / before)
    # One over its noise is 1 / noise + 1 / before - 1 / of_class, of which the last two may be
    # large, and alike.
    noise = 1 / (1 / noise + in_common * known * left / (before * of_class))
    return mean * (1 + noise / of_class), noise


class _Alike:
    """Products of a pair of columns are alike, and somewhat those of all pairs.

    Args:
        belongs: to which column each of z does, (k, columns), 0 or 1.
    """

    def __init__(self, belongs: Tensor) -> None:
        self._belongs = belongs
        # What a column's indicators add up to is known.
        count = belongs.sum(dim=0)
        freedom = torch.where(count > 1, count - 1, count).clamp(min=1)
        self._like_all = _LIKE_OTHERS / torch.outer(freedom, freedom)

    def mean(self, numbers: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
        """The mean of what is alike, by all classes, (k, k) as each of them is."""
        nothing = torch.zeros_like(numbers[0])
        weight = sum(weights, nothing)
        total = sum((one * much for one, much in zip(numbers, weights, strict=True)), nothing)
        of_all = total.sum() / weight.sum().clamp(min=EXACT)
        of_pair = self._of_pairs(total) / self._of_pairs(weight).clamp(min=EXACT)
        return self._each((of_pair + self._like_all * of_all) / (1 + self._like_all))

    def doubt(self, weights: Tensor) -> Tensor:
        """What noise adds to such a mean of squares: its standard deviation, (k, k).

        Args:
            weights: one over the square of the noise's variance, (k, k).
        """
        of_all = 1 / weights.sum().clamp(min=EXACT)
        of_pair = 1 / self._of_pairs(weights).clamp(min=EXACT)
        squares = 2 * (of_pair + self._like_all.square() * of_all)
        return self._each(squares.sqrt() / (1 + self._like_all))

    def _of_pairs(self, products: Tensor) -> Tensor:
        """Sums over those of each pair of columns."""
        return self._belongs.T @ products @ self._belongs

    def _each(self, pairs: Tensor) -> Tensor:
        """For each product, what there is of its pair."""
        return self._belongs @ pairs @ self._belongs.T
