"""Membership inference: guess which records synthetic ones were made from.

The attacker knows the synthetic records and some others of the same population. A record is
suspected if synthetic records are much denser around it than the population is (the density ratio
of van Breugel, Sun, Qian and van der Schaar 2023, "Membership inference attacks against synthetic
data through overfitting detection"). Both densities are nearest-neighbour estimates, so nothing is
trained and no shadow models are needed.

The success of such an attack is a lower bound on the leakage; finding nothing proves nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .closest_record import Points, distances_to_closest

CONFIDENCE: Final = 0.95
_SAME: Final = 1e-6
"""Added to distances, so that a copy has a finite score."""


@dataclass(frozen=True)
class Area:
    """Area under an attack's receiver operating characteristic: 1/2 for guessing, 1 if perfect.

    Attributes:
        value: the area.
        low: lower end of its confidence interval.
        high: upper end.
    """

    value: float
    low: float
    high: float


def attack(synthetic: Points, members: Points, outsiders: Points, population: Points) -> Area:
    """Guess by the density ratio which records the synthetic ones were made from.

    Args:
        synthetic: float64 (n, d).
        members: float64 (m, d), records that they were made from.
        outsiders: float64 (k, d), records of the same population that they were not made from.
        population: float64 (l, d), other records that the attacker knows.
    """
    return area(*(_suspicion(some, synthetic, population) for some in (members, outsiders)))


def _suspicion(records: Points, synthetic: Points, population: Points) -> NDArray[np.float64]:
    """Log ratio of distances to the population and to the synthetic records, float64 (n,)."""
    near, usual = (distances_to_closest(records, some) for some in (synthetic, population))
    return np.log((usual + _SAME) / (near + _SAME))


def area(members: NDArray[np.float64], outsiders: NDArray[np.float64]) -> Area:
    """The area with its confidence interval (DeLong, DeLong and Clarke-Pearson 1988).

    Args:
        members: float64 (m,), scores of records that were used; at least 2.
        outsiders: float64 (k,), scores of records that were not; at least 2.
    """
    ranks = stats.rankdata(np.concatenate([members, outsiders]))
    above = (ranks[: len(members)] - stats.rankdata(members)) / len(outsiders)
    below = 1 - (ranks[len(members) :] - stats.rankdata(outsiders)) / len(members)
    value = float(above.mean())
    variance = above.var(ddof=1) / len(members) + below.var(ddof=1) / len(outsiders)
    reach = float(stats.norm.ppf((1 + CONFIDENCE) / 2)) * math.sqrt(variance)
    return Area(value, max(0.0, value - reach), min(1.0, value + reach))
