"""Projection of numbers onto the probability simplex."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def to_simplex(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest probability vector (Duchi et al. 2008, "Efficient projections ... l1-ball")."""
    values = values - values.max()  # does not change the result, and keeps values small
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    kept = np.flatnonzero(ordered > excess)[-1]
    shares = np.maximum(values - excess[kept], 0)
    projected: NDArray[np.float64] = shares / shares.sum()
    return projected
