"""Estimate the dependence of columns in a class from all classes.

Columns that depend on each other in one class mostly do so in the others, and little else is known
of a class with few records. A priori, a departure from independence in a class is g + d: a part g
common to all classes and a deviation d, both Gaussian. Their variances are estimated from the
released departures minus the noise (empirical Bayes): that of g + d from how large they are
(`group_variances`), and which share of it is g's from products of two classes. The largest classes
dominate these estimates. Groups of a class whose own departures make a larger variance likelier get
that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .group_variances import group_variances, likely_variances
from .grouped_departures import GroupedDepartures
from .share_in_common import share_in_common

Variances = Callable[[Sequence[GroupedDepartures]], Tensor]
"""Estimates the prior variances of a class's departures, (n,), from its own and those of others."""


@dataclass(frozen=True, eq=False)
class PooledDepartures:
    """All that is known of a class's departures, as one equivalent noisy observation.

    Attributes:
        difference: float64 (n,).
        noise: variance of the noise on each, (n,).
        variance: prior variance of each, (n,).
    """

    difference: Tensor
    noise: Tensor
    variance: Tensor


def pooled(
    own: GroupedDepartures,
    others: Sequence[GroupedDepartures],
    variances: Variances = group_variances,
) -> PooledDepartures:
    """Pool the departures of all classes for one class.

    Args:
        own: departures of the class.
        others: departures of the others.
        variances: estimates prior variances.
    """
    expected = variances([own, *others])
    if not others:
        return PooledDepartures(own.difference, own.noise, expected)
    of_class = _either(own, variances([own]).maximum(expected), expected)
    in_common = share_in_common([own, *others], expected) * expected.minimum(of_class)
    precisions = [
        torch.where(each.weight > 0, 1 / (each.noise + of_class - in_common), 0.0)
        for each in others
    ]
    seen, noise = pool_observations(
        own.difference,
        own.noise,
        [each.difference for each in others],
        precisions,
        of_class,
        in_common,
    )
    return PooledDepartures(seen, noise, of_class)


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


def _either(own: GroupedDepartures, larger: Tensor, smaller: Tensor) -> Tensor:
    """The variances of a class by either of two estimates, (n,).

    How often it is the one or the other is learnt from all groups; in which ones, by what a group's
    own departures make likely.
    """
    logs = torch.stack([own.log_likelihoods(each) for each in (larger, smaller)], dim=1)
    return likely_variances(own, (larger, smaller), logs, own.freedom > 0)
