"""How columns of a class go together, by what is released of all classes.

Columns that go together in one class mostly do in the others, and of a class with few records
little is known but that. Before anything is seen, by how much columns of a class are other than
independent is g + d: what classes have in common, and what is its own, Gaussian both. Their
variances are what released numbers leave when the noise is taken off, each weighing as it is known
(empirical Bayes): squares that of g + d, and products of two classes that of g. A class by itself
may vary more than all do together, of which the largest ones are known best; not less, for of a
class with few records nothing would be left.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

EXACT: Final = 1e-12
"""Variances are at least that."""

Mean = Callable[[Tensor, Tensor], Tensor]
"""Of what is alike before anything is seen, from sums of weighed numbers and of weights."""


@dataclass(frozen=True, eq=False)
class Look:
    """What is seen of a class.

    Attributes:
        lacking: how columns go together in it, less what independent ones would do, float64 (n,),
            or of any shape.
        noise: variance of the noise on each, likewise.
        known: 1, or 0 of what is not to be looked at, likewise.
    """

    lacking: Tensor
    noise: Tensor
    known: Tensor


@dataclass(frozen=True, eq=False)
class Pooled:
    """One look by which as much would be known of a class as by those at all classes.

    Attributes:
        lacking: as of a `Look`.
        noise: likewise.
        variance: of how columns of a class go together, likewise.
    """

    lacking: Tensor
    noise: Tensor
    variance: Tensor


def pooled(own: Look, others: Sequence[Look], mean: Mean) -> Pooled:
    """What all classes say of one.

    Args:
        own: of the class.
        others: of the others.
        mean: over what is alike.
    """
    looks = [own, *others]
    seen, known = [look.lacking for look in looks], [look.known for look in looks]
    noises = [look.noise.clamp(min=EXACT) for look in looks]
    nothing = torch.zeros_like(own.lacking)
    weights = [each / noise.square() for each, noise in zip(known, noises, strict=True)]
    squares = [
        weight * (each.square() - noise)
        for weight, each, noise in zip(weights, seen, noises, strict=True)
    ]
    of_any = mean(sum(squares, nothing), sum(weights, nothing)).clamp(min=EXACT)
    of_class = torch.maximum(mean(squares[0], weights[0]), of_any)
    in_common = of_class
    if others:
        pairs = list(itertools.combinations(range(len(looks)), 2))
        weights = [known[a] * known[b] / (noises[a] * noises[b]) for a, b in pairs]
        products = [
            weight * seen[a] * seen[b] for weight, (a, b) in zip(weights, pairs, strict=True)
        ]
        in_common = (
            mean(sum(products, nothing), sum(weights, nothing)).clamp(min=EXACT).minimum(of_any)
        )
    apart = of_class - in_common
    precisions = [each / (noise + apart) for each, noise in zip(known, noises, strict=True)]
    return posterior(own, seen[1:], precisions[1:], of_class, in_common)


def posterior(
    own: Look,
    others: Sequence[Tensor],
    precisions: Sequence[Tensor],
    of_class: Tensor,
    in_common: Tensor,
) -> Pooled:
    """The same, with known variances.

    Args:
        own: of the class.
        others: what columns of other classes lack.
        precisions: one over the variance of each of these about what classes have in common; 0
            where it says nothing.
        of_class: variance of how columns of a class go together.
        in_common: variance of what of that classes have in common.
    """
    nothing = torch.zeros_like(own.lacking)
    left = 1 / (1 / in_common + sum(precisions, nothing))
    weighed = (precision * other for precision, other in zip(precisions, others, strict=True))
    expected = left * sum(weighed, nothing)
    before, noise = of_class - in_common + left, own.noise.clamp(min=EXACT)
    precision = 1 / noise + 1 / before
    likely = (own.lacking / noise + expected / before) / precision
    noise = 1 / (precision - 1 / of_class)
    return Pooled(likely * (1 + noise / of_class), noise, of_class)
