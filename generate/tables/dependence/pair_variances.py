"""The prior variance of the dependence of each pair of columns, estimated from all pairs.

A few pairs of columns depend strongly on each other, and most hardly at all: their variances differ
by orders of magnitude. If all pairs had the same prior variance, that of the few, the noise on all
others would be believed. So the distribution of orders of magnitude is learnt from all pairs
(nonparametric maximum likelihood, Laird 1978, "Nonparametric maximum likelihood estimation of a
mixing distribution"), and each pair has the variance that its own products then make likely.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from ..marginals.denoising import mixture_weights

_ORDERS: Final = 10.0 ** torch.arange(-6, 0.01, 0.25, dtype=torch.float64)
"""Candidates for a variance: departures are at most about 1."""


def pair_variances(squares: Tensor, noise: Tensor, freedom: Tensor) -> Tensor:
    """The prior variance of departures of each pair of columns.

    Args:
        squares: the mean square of a pair's noisy departures, float64 (pairs,).
        noise: variance of the noise on these, positive, (pairs,).
        freedom: degrees of freedom of the mean square, (pairs,).

    Returns:
        Positive, (pairs,): the variance with which as much of a departure is kept as on average
        over the candidates, given the mean square.
    """
    together = noise[:, None] + _ORDERS
    logs = -freedom[:, None] / 2 * (together.log() + squares[:, None] / together)
    likelihoods = (logs - logs.amax(dim=1, keepdim=True)).exp().numpy()
    likely = torch.from_numpy(likelihoods * mixture_weights(likelihoods))
    likely /= likely.sum(dim=1, keepdim=True)
    kept, lost = ((likely * (part / together)).sum(dim=1) for part in (_ORDERS, noise[:, None]))
    return noise * kept / lost
