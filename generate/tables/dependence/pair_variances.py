"""The prior variance of the dependence of each pair of columns, estimated from all pairs.

A few pairs of columns depend strongly on each other, and most hardly at all: their variances differ
by orders of magnitude. If all pairs had the same prior variance, that of the few, the noise on all
others would be believed. Within a pair of categories, it is mostly the frequent ones that show it,
but sometimes a rare one alone (a disease and its drug). So the distribution of orders of magnitude,
and of how they depend on frequency, is learnt from all pairs (nonparametric maximum likelihood,
Laird 1978, "Nonparametric maximum likelihood estimation of a mixing distribution"), and each
product has the variance that the pair's own products then make likely.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from ..marginals.denoising import mixture_weights
from .product_departures import EXACT, Departure


def pair_variances(departures: Sequence[Departure], kind: Tensor) -> Tensor:
    """The prior variance of each departure of a class, given those of all classes.

    Args:
        departures: of the class, and then of the others.
        kind: which products share a prior, bool (k, k): all those of some pairs of columns with
            categories.

    Returns:
        Positive, float64 (k, k): the variance with which as much of a departure is kept as on
        average over the candidates; 1 for other products.
    """
    own = departures[0]
    pairs = own.pairs(torch.stack([each.changeable & kind for each in departures]).any(dim=0))
    if not pairs.any():
        return torch.ones_like(own.noise)
    here = pairs[own.pairs_with_categories]
    logs = torch.stack([each.likelihoods[here].double() for each in departures]).sum(dim=0)
    return kept_as_on_average(own, pairs, own.variances(), posterior_shares(logs))


def posterior_shares(logs: Tensor) -> Tensor:
    """How likely each candidate is, if all candidates' frequencies are learnt from all pairs.

    Args:
        logs: log-likelihood of each pair under each candidate, float64 (pairs, candidates).

    Returns:
        (pairs, candidates), of sum 1 for each pair.
    """
    likelihoods = (logs - logs.amax(dim=1, keepdim=True)).exp()
    likely = likelihoods * torch.from_numpy(mixture_weights(likelihoods.numpy()))
    return likely / likely.sum(dim=1, keepdim=True)


def kept_as_on_average(
    own: Departure, pairs: Tensor, variances: Iterable[Tensor], shares: Tensor
) -> Tensor:
    """The variance with which as much of a departure is kept as on average over several.

    Args:
        own: departure of a class.
        pairs: some pairs of columns, each once, bool (columns, columns).
        variances: prior variances, positive, (k, k) each.
        shares: how likely each is in these pairs, float64 (pairs, variances).

    Returns:
        Positive, float64 (k, k); 1 outside of these pairs.
    """
    noise = own.noise.clamp(min=EXACT)
    kept, lost = torch.zeros_like(noise), torch.zeros_like(noise)
    for variance, share in zip(variances, shares.unbind(dim=1), strict=True):
        likely = own.expanded(pairs, share)
        kept += likely * variance / (noise + variance)
        lost += likely * noise / (noise + variance)
    found = noise * kept / lost.clamp(min=EXACT**2)
    return torch.where(kept + lost > 0, found.clamp(min=EXACT), 1.0)
