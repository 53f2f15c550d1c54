"""Lower bounds on epsilon from an observer's scores.

An observer gives every output of a mechanism a score, which is larger if the output more likely
came from the second of two neighbouring data sets. (epsilon, delta) differential privacy bounds how
well any score can tell the two apart; so scores that tell them apart well prove that epsilon is
large, with a confidence that depends on nothing but the number of runs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from ...common.ledger import SMALLEST_EPSILON
from ...release.mechanism.accountant import epsilon_for

Scores = NDArray[np.float64]


def epsilon_clopper_pearson(
    first: Scores, second: Scores, delta: float, confidence: float
) -> float:
    """Lower bound that assumes nothing about the distribution of the scores.

    For every set of outputs, P[second] <= e^epsilon P[first] + delta. The set is "score at least a
    threshold"; the threshold is chosen on one half of the runs, and the two probabilities are
    bounded on the other half by the exact intervals of Clopper and Pearson (1934), as in Jagielski,
    Ullman and Oprea 2020, "Auditing Differentially Private Machine Learning", algorithm 1.

    Args:
        first: float64 (n,), of runs on the first data set.
        second: float64 (n,), of runs on the second.
        delta: of the guarantee.
        confidence: probability with which the bound is to hold.

    Returns:
        Epsilon, at least 0.
    """
    best = (-math.inf, 0.0)
    for threshold in np.quantile(second[::2], np.linspace(0.5, 1, 60, endpoint=False)):
        bound = _at_threshold(first[::2], second[::2], float(threshold), delta, confidence)
        best = max(best, (bound, float(threshold)))
    return max(0.0, _at_threshold(first[1::2], second[1::2], best[1], delta, confidence))


def _at_threshold(
    first: Scores, second: Scores, threshold: float, delta: float, confidence: float
) -> float:
    false_alarms, hits = int((first >= threshold).sum()), int((second >= threshold).sum())
    if not hits or false_alarms == len(first):
        return -math.inf
    error = (1 - confidence) / 2  # half for each of the two probabilities
    most_false = special.betainccinv(false_alarms + 1, len(first) - false_alarms, error)
    fewest_hits = special.betaincinv(hits, len(second) - hits + 1, error)
    return math.log((fewest_hits - delta) / most_false) if fewest_hits > delta else -math.inf


def epsilon_from_gdp(first: Scores, second: Scores, delta: float, confidence: float) -> float:
    """Lower bound that assumes normal scores with a common unknown variance.

    Two normal distributions whose means are mu standard deviations apart have the trade-off curve
    of a Gaussian mechanism with noise multiplier 1/mu (Dong, Roth and Su 2022, "Gaussian
    Differential Privacy", section 2.2), and so exactly its epsilon. The two-sample t statistic has
    a noncentral t distribution; the bound uses the largest mu that is rejected.

    Args:
        first: float64 (n,), of runs on the first data set.
        second: float64 (n,), of runs on the second.
        delta: of the guarantee.
        confidence: probability with which the bound is to hold.

    Returns:
        Epsilon, at least 0.
    """
    runs = len(first)
    pooled = math.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2)
    unit = math.sqrt(2 / runs)
    statistic = float(second.mean() - first.mean()) / (pooled * unit)

    def excess(shift: float) -> float:
        return float(stats.nct.sf(statistic, 2 * runs - 2, shift)) - (1 - confidence)

    if excess(0.0) >= 0:
        return 0.0
    lowest = optimize.brentq(excess, 0.0, statistic)
    found = epsilon_for(1 / (lowest * unit), delta)
    return found if found > SMALLEST_EPSILON else 0.0  # results are rounded up to it
