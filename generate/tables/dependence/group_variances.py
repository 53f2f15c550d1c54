"""The prior variance of each departure from independence, estimated from all groups.

A few pairs of columns depend strongly on each other, and most hardly at all: their variances differ
by orders of magnitude. If all pairs had the same prior variance, that of the few, the noise on all
others would be believed. Within a pair of categories, it is mostly the frequent ones that show it,
but sometimes a rare one alone (a disease and its drug). So the distribution of orders of magnitude,
and of how they depend on frequency, is learnt from all groups (nonparametric maximum likelihood,
Laird 1978, "Nonparametric maximum likelihood estimation of a mixing distribution"), and each
departure has the variance that its group then makes likely.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import torch
from torch import Tensor

from ..marginals.denoising import mixture_weights
from .grouped_departures import LEAST, GroupedDepartures, average

_CERTAIN: Final = 1e-9
"""The variance of a group that shows nothing for certain."""


def group_variances(departures: Sequence[GroupedDepartures]) -> Tensor:
    """The prior variance of each departure of a class, given those of all classes.

    Args:
        departures: of the class, and then of the others.

    Returns:
        Positive, float64 (n,): the variance with which as much of a departure is kept as on average
        over the candidates; 1 where no class says anything.
    """
    own = departures[0]
    known = torch.stack([each.freedom for each in departures]).sum(dim=0) > 0
    logs = torch.stack([each.likelihoods.double() for each in departures]).sum(dim=0)
    return likely_variances(own, own.variances(), logs, known)


def alike_variances(departures: Sequence[GroupedDepartures]) -> Tensor:
    """The same, if variances are nearly the same in all groups.

    Args:
        departures: of the class, and then of the others.

    Returns:
        Positive, float64 (n,).
    """
    own, (total, weight) = departures[0], _beyond_noise(departures)
    usual = average(total.sum(), weight.sum())
    return own.shrunk(own.averages(total, weight), usual).clamp(min=LEAST)


def certain_variances(departures: Sequence[GroupedDepartures]) -> Tensor:
    """The same, each group by itself, and only as far as noise does not explain it.

    What noise alone would exceed one time in six counts as noise.

    Args:
        departures: of the class, and then of the others.

    Returns:
        Positive, float64 (n,).
    """
    own, (total, weight) = departures[0], _beyond_noise(departures)
    of_noise = (2 / own.of_groups(weight).clamp(min=LEAST)).sqrt()[own.group]
    return (own.averages(total, weight) - of_noise).clamp(_CERTAIN, 1.0)


def _beyond_noise(departures: Sequence[GroupedDepartures]) -> tuple[Tensor, Tensor]:
    """Squares without what noise adds to them, weighted by their precision, and the weights."""
    total, weight = torch.zeros(()), torch.zeros(())
    for each in departures:
        of_each = each.weight / each.noise.square()
        total = total + of_each * (each.difference.square() - each.noise)
        weight = weight + of_each
    return total, weight


def likely_variances(
    own: GroupedDepartures, candidates: Iterable[Tensor], logs: Tensor, known: Tensor
) -> Tensor:
    """The variance with which as much of a departure is kept as on average over candidates.

    How frequent each candidate is, is learnt from all groups.

    Args:
        own: departures of a class.
        candidates: prior variances, positive, float64 (n,) each.
        logs: log-likelihood of each group under each candidate, float64 (groups, candidates).
        known: the groups of which something is known, bool (groups,).

    Returns:
        Positive, (n,); 1 where nothing is known.
    """
    shares = torch.zeros_like(logs)
    if known.any():
        likelihoods = (logs[known] - logs[known].amax(dim=1, keepdim=True)).exp()
        likely = likelihoods * torch.from_numpy(mixture_weights(likelihoods.numpy()))
        shares[known] = likely / likely.sum(dim=1, keepdim=True)
    kept, lost = torch.zeros_like(own.noise), torch.zeros_like(own.noise)
    for variance, of_groups in zip(candidates, shares.unbind(dim=1), strict=True):
        share = of_groups[own.group]
        kept += share * variance / (own.noise + variance)
        lost += share * own.noise / (own.noise + variance)
    found = own.noise * kept / lost.clamp(min=LEAST**2)
    return torch.where(kept + lost > 0, found.clamp(min=LEAST), 1.0)
