"""Distances to the closest record."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

Points = NDArray[np.float64]

_DIGITS = 6
"""Distances are rounded to this many digits: those of equal points are not computed as exactly
0."""


def distances_to_closest(points: Points, records: Points) -> NDArray[np.float64]:
    """Euclidean distance of every point to its closest record, float64 (n,).

    Args:
        points: float64 (n, d).
        records: float64 (m, d).
    """
    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(records)
    found, _ = search.kneighbors(points)
    return np.asarray(np.round(found[:, 0], _DIGITS), dtype=np.float64)


def share_nearer(points: Points, records: Points, others: Points) -> float:
    """Share of points that are nearer to a record than to any of as many others; ties count half.

    It is about one half if points carry no information about single records, and records and others
    come from the same population.

    Args:
        points: float64 (n, d).
        records: float64 (m, d).
        others: float64 (m, d).
    """
    nearer = np.sign(distances_to_closest(points, others) - distances_to_closest(points, records))
    return float((nearer.mean() + 1) / 2)
