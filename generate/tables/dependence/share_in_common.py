"""How far the departures of classes from independence are the same, estimated from the release.

The product of what two classes show, relative to its expected variance, estimates the share of that
variance which is common to both. Where noise could explain any such product, classes are taken to
be alike: then all that is known is what they show together.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from .grouped_departures import LEAST, GroupedDepartures, average


def share_in_common(departures: Sequence[GroupedDepartures], expected: Tensor) -> Tensor:
    """The share of the variance of departures that classes have in common, group by group.

    Args:
        departures: of the class, and then of the others; at least two.
        expected: prior variances of departures, positive, float64 (n,).

    Returns:
        Positive, at most 1, (n,).
    """
    own, nothing = departures[0], torch.zeros_like(expected)
    units = [each.difference / expected.sqrt() for each in departures]
    noises = [each.noise / expected for each in departures]
    weights = [
        each.weight / (1 + noise).square() for each, noise in zip(departures, noises, strict=True)
    ]
    product, weight, by_chance = nothing, nothing, nothing
    for one, other in itertools.combinations(range(len(departures)), 2):
        of_both = (weights[one] * weights[other]).sqrt()
        product = product + of_both * units[one] * units[other]
        weight = weight + of_both
        by_chance = by_chance + of_both.square() * noises[one] * noises[other]
    squares = [
        each * (unit.square() - noise)
        for each, unit, noise in zip(weights, units, noises, strict=True)
    ]
    seen = average(product.sum(), weight.sum())
    most = average(sum(squares, nothing).sum(), sum(weights, nothing).sum())
    usual = (seen / most.clamp(min=LEAST)).clamp(0, 1)
    found = own.shrunk(own.averages(product, weight), usual).clamp(0, 1)
    # The standard deviation of a group's average product, if all of it is noise.
    doubt = average(own.of_groups(by_chance).sqrt(), own.of_groups(weight))[own.group]
    return ((found + doubt) / (1 + doubt)).clamp(min=LEAST)
