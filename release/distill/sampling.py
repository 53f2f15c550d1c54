"""Poisson sampling: each record joins a step's batch by an independent coin toss."""

from __future__ import annotations

import math
import os

import numpy as np
from numpy.typing import NDArray

from ...common.arguments import argument
from ...common.errors import BudgetError
from ..mechanism.subsampled_gaussian import LEAST_SAMPLING_PROB


def poisson_sample(records: int, sampling_prob: float) -> NDArray[np.int64]:
    """Draw a batch.

    Guarantee:
        Each record is in the batch with probability floor(p 2^64) / 2^64, where p is
        `sampling_prob`, independently of all others and of all other batches, provided that the
        operating system's random bytes are uniform. There is no seed. So a step is the subsampled
        Gaussian mechanism that the accountant assumes, with an assumed probability not below the
        real one. (docs/privacy/proofs.md, statement 17.)

    Args:
        records: the number of records.
        sampling_prob: each record's probability.

    Returns:
        The indices of the batch's records, in order, int64 (b,); b is random.

    Raises:
        BudgetError: the probability is out of range.
    """
    require_sampling_prob(sampling_prob)
    if sampling_prob == 1:
        return np.arange(records)
    coins = np.frombuffer(os.urandom(8 * records), dtype=np.uint64)
    return np.flatnonzero(coins < np.uint64(math.floor(sampling_prob * 2.0**64)))


def require_sampling_prob(sampling_prob: float) -> None:
    """Check a sampling probability.

    Raises:
        BudgetError: it is not above 0 and at most 1.
    """
    if not LEAST_SAMPLING_PROB <= sampling_prob <= 1:
        named = argument("sampling_prob", sampling_prob)
        raise BudgetError(f"{named}: it must be above 0 and at most 1, such as 0.02")
