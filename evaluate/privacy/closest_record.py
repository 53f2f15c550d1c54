"""Distances to the closest record."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

Points = NDArray[np.float64]

_DIGITS = 6
"""What is nearer than this is the same: the distances of equal points are not exactly 0."""


def distances_to_closest(points: Points, records: Points) -> NDArray[np.float64]:
    """Euclidean distance of every point to the record that is closest to it, float64 (n,).

    Args:
        points: float64 (n, d).
        records: float64 (m, d).
    """
    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(records)
    found, _ = search.kneighbors(points)
    return np.asarray(np.round(found[:, 0], _DIGITS), dtype=np.float64)


def share_nearer(points: Points, records: Points, others: Points) -> float:
    """Share of points that are nearer to a record than to any of as many others; ties count half.

    Where points know nothing of single records, and records and others are draws of the same
    population, it is about one half.

    Args:
        points: float64 (n, d).
        records: float64 (m, d).
        others: float64 (m, d).
    """
    nearer = np.sign(distances_to_closest(points, others) - distances_to_closest(points, records))
    return float((nearer.mean() + 1) / 2)
