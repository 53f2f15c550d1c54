"""How columns of a class go together, by what is released of all classes.

Columns that go together in one class mostly do in the others, and of a class with few records
little is known but that. Before anything is seen, how two columns of a class go together is g + d:
what classes have in common, and what is its own, Gaussian both. Their variances are what released
products leave when the noise is taken off, each weighing as it is known (empirical Bayes): squares
that of g + d, and products of two classes that of g. A pair of columns has variances of its own, as
far as it has many products; for the rest, those of all pairs.
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
"""Pairs of columns with so many products are half like all pairs, half like themselves."""


@dataclass(frozen=True, eq=False)
class Likely:
    """How the columns of a class go together, as if one look had shown what all classes do.

    Attributes:
        lacking: products of standardised numbers and indicators, less those of independent columns,
            float64 (k, k).
        ridge: the variance of the noise on each over that of what goes together, (k, k): with
            nothing left of the latter, no product is to be believed.
    """

    lacking: Tensor
    ridge: Tensor


def likely(own: Departure, others: Sequence[Departure], kind: Tensor, belongs: Tensor) -> Likely:
    """What all classes say of one.

    Args:
        own: of the class.
        others: of the others.
        kind: which products are alike before anything is seen, bool (k, k).
        belongs: to which column each of z does, (k, columns), 0 or 1.
    """
    known = [each.free & kind for each in (own, *others)]
    noises = [each.noise.clamp(min=EXACT) for each in (own, *others)]
    seen = [each.lacking for each in (own, *others)]
    every = range(len(seen))
    of_class = _variances(
        [seen[one].square() - noises[one] for one in every],
        [known[one] / noises[one].square() for one in every],
        belongs,
    ).clamp(min=EXACT)
    pairs = list(itertools.combinations(every, 2))
    in_common = torch.minimum(
        _variances(
            [seen[one] * seen[other] for one, other in pairs],
            [known[one] * known[other] / (noises[one] * noises[other]) for one, other in pairs],
            belongs,
        ).clamp(min=EXACT)
        if pairs
        else of_class,
        of_class,
    )
    precisions = [known[other] / (noises[other] + of_class - in_common) for other in every if other]
    return posterior(own, seen[1:], precisions, of_class, in_common)


def posterior(
    own: Departure,
    others: Sequence[Tensor],
    precisions: Sequence[Tensor],
    of_class: Tensor,
    in_common: Tensor,
) -> Likely:
    """The same, with known variances.

    Args:
        own: of the class.
        others: what columns of others lack, float64 (k, k) each.
        precisions: one over the variance of each of these about what classes have in common,
            (k, k); 0 where it says nothing.
        of_class: variance of how two columns of a class go together, (k, k).
        in_common: variance of what of that classes have in common, (k, k).
    """
    left = 1 / (1 / in_common + sum(precisions, torch.zeros_like(in_common)))
    expected = left * sum(
        (precision * each for precision, each in zip(precisions, others, strict=True)),
        torch.zeros_like(in_common),
    )
    before, noise = of_class - in_common + left, own.noise.clamp(min=EXACT)
    precision = 1 / noise + 1 / before
    mean = (own.lacking / noise + expected / before) / precision
    # The noise of a single look by which as much would be known.
    noise = 1 / (precision - 1 / of_class)
    return Likely(
        (mean * (1 + noise / of_class)).clamp(-1, 1),
        # Indicators of a column act as one, so that all have what has been taken off.
        own.taken_off * noise / of_class,
    )


def _variances(left: Sequence[Tensor], weights: Sequence[Tensor], belongs: Tensor) -> Tensor:
    """Those of products of each pair of columns, (k, k).

    Args:
        left: estimates of them, (k, k) each.
        weights: of each, (k, k), 0 or more.
        belongs: to which column each of z does, (k, columns), 0 or 1.
    """
    weight = sum(weights, torch.zeros_like(left[0]))
    weighed = sum(
        (one * much for one, much in zip(left, weights, strict=True)), torch.zeros_like(left[0])
    )
    of_all = weighed.sum() / weight.sum().clamp(min=EXACT)
    # What a column's indicators add up to is known.
    count = belongs.sum(dim=0)
    freedom = torch.where(count > 1, count - 1, count).clamp(min=1)
    like_all = _LIKE_OTHERS / torch.outer(freedom, freedom)
    of_pair = (belongs.T @ weighed @ belongs) / (belongs.T @ weight @ belongs).clamp(min=EXACT)
    return belongs @ ((of_pair + like_all * of_all) / (1 + like_all)) @ belongs.T
