"""The Gaussian mechanism on integers: the one place where sensitive sums become public ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...common.adjacency import Adjacency
from ...common.arguments import argument
from ...common.display.representations import RedactedRepr
from ...common.errors import BudgetError
from ...common.features.base import FeatureMap, sensitivity
from .accountant import epsilon_for, noise_multiplier
from .discrete_gaussian import FURTHEST, LARGEST_SIGMA, discrete_gaussian

MECHANISM = "discrete Gaussian on exact integer sums"
NO_MECHANISM = "none: exact sums"
DEFAULT_COUNT_WEIGHT = 0.25
"""Weight of a class count beside a unit-norm feature. It adds 3 % to the noise on the features and
gives a class count to within 22 records at epsilon 1 and delta 1e-5."""

_TIGHT: Final = 1e-8
"""Relative amount by which a claimed epsilon may exceed that of its noise: ten times the
calibration's margin."""
SMOOTHING: Final = 3.0
"""The discrete Gaussian is accounted for as a continuous one of variance sigma^2 - 3^2."""


@dataclass(frozen=True, eq=False)
class NoiseScale:
    """The noise that a release needs, in grid units.

    Attributes:
        noise_multiplier: standard deviation at sensitivity 1; 0 for no noise.
        sensitivity: L2 sensitivity of the integer sums and weighted counts, rounded up.
        sigma: standard deviation of the noise on every coordinate, rounded up.
        count_weight: the amount that one record adds to its class count.
        factors: the factor by which each row of the sums is multiplied after the noise is added,
            float64 (d,); None if all are 1. The noise on a row is sigma divided by its factor,
            rounded up.
    """

    noise_multiplier: float
    sensitivity: int
    sigma: int
    count_weight: int
    factors: NDArray[np.float64] | None = None

    def sigmas(self, rows: int) -> NDArray[np.int64]:
        """The standard deviation of the noise on each row of the sums, int64 (rows,).

        Raises:
            BudgetError: a row's factor is so small that its noise does not fit 64 bits.
        """
        if self.factors is None:
            return np.full(rows, self.sigma)
        wide = np.hypot(self.sigma / self.factors, SMOOTHING) * (1 + 2.0**-40)
        if wide.max() > LARGEST_SIGMA:
            raise BudgetError(
                "noise does not fit 64 bits: choose a larger "
                f"{argument('epsilon', option='--eps')}, or embed again with a larger "
                f"{argument('capacity')}"
            )
        return np.ceil(wide).astype(np.int64)

    def of_rows(self, rows: NDArray[np.int64]) -> NoiseScale:
        """The same noise for sums that have only these rows, in this order."""
        return self if self.factors is None else replace(self, factors=self.factors[rows])


@dataclass(frozen=True, eq=False, repr=False)
class NoisySums(RedactedRepr):
    """The output of the mechanism.

    Attributes:
        sums: int64 (d, c), in grid units.
        counts: int64 (c,), in grid units times the count weight; None if they were left out.
    """

    sums: NDArray[np.int64]
    counts: NDArray[np.int64] | None


def calibrate(still: NoiseScale, *, epsilon: float, delta: float) -> NoiseScale:
    """The noise that makes `add_noise` (epsilon, delta) differentially private.

    Guarantee:
        Integer features times g have norm at most the map's bound, with its signs
        (`dpntk.common.numerics.exact`), so `sensitivity` in grid units bounds the change of the
        integers. N_Z(0, sigma^2) is a randomised function of N(0, sigma^2 - s^2), up to a factor 1
        +- 2 exp(-2 pi^2 s^2) per coordinate (Poisson summation), which is 1e-76 for s = 3. So the
        exact result for the continuous Gaussian of variance sigma^2 - 9 holds.
        (docs/privacy/proofs.md, statements 5 and 7.)

    Args:
        still: the sensitivity under the guarantee's adjacency, from `no_noise`.
        epsilon: epsilon of the guarantee.
        delta: delta of the guarantee.

    Raises:
        BudgetError: epsilon and delta promise nothing, or need more noise than 64 bits hold.
    """
    multiplier = noise_multiplier(epsilon, delta)
    spent = epsilon_for(multiplier, delta)
    if spent < epsilon * (1 - _TIGHT):
        raise BudgetError(
            f"{argument('epsilon', epsilon, option='--eps')} is more than the least noise there "
            f"is spends, {spent:.4g}: choose that, or less"
        )
    sigma = math.ceil(math.hypot(multiplier * still.sensitivity, SMOOTHING) * (1 + 2.0**-40))
    if sigma > LARGEST_SIGMA:
        raise BudgetError(
            f"epsilon {epsilon:g} with delta {delta:g} needs more noise than 64 bits hold: "
            f"choose a larger one, or embed again with a larger {argument('capacity')}, which "
            "makes the grid coarser"
        )
    return replace(still, noise_multiplier=multiplier, sigma=sigma)


def no_noise(
    feature_map: FeatureMap,
    units_per_one: int,
    *,
    adjacency: Adjacency,
    count_weight: float,
    rows_per_unit: int = 1,
) -> NoiseScale:
    """The scale of a release that is not private: a sensitivity in grid units, and no noise.

    Guarantee:
        A unit of `rows_per_unit` records changes the sums by at most as many times the sensitivity
        of one record, so that sensitivity is multiplied. (docs/privacy/proofs.md, statement 21.)

    Args:
        feature_map: the map that was embedded with.
        units_per_one: how many grid units make 1.
        adjacency: how neighbours differ.
        count_weight: weight of a class count beside a unit-norm feature; 0 leaves counts out.
        rows_per_unit: the most records that differ between neighbours.

    Raises:
        BudgetError: the weight makes no sense.
    """
    if not 0 <= count_weight <= 1:
        named = argument("count_weight", count_weight)
        raise BudgetError(f"{named}: it must lie between 0 and 1")
    weight = math.floor(count_weight * units_per_one)
    if count_weight and not weight:
        named = argument("count_weight", count_weight)
        raise BudgetError(f"{named}: too small for the embedding's grid")
    bound = rows_per_unit * sensitivity(feature_map, adjacency, count_weight=count_weight)
    # Floats carry 53 bits; one part in 2^40 far exceeds their rounding error.
    integer_bound = math.ceil(bound * units_per_one * (1 + 2.0**-40))
    return NoiseScale(0.0, integer_bound, 0, weight)


def add_noise(
    sums: NDArray[np.int64], counts: NDArray[np.int64] | None, scale: NoiseScale
) -> NoisySums:
    """Add the noise, once, to every coordinate of the sums and of the weighted class counts.

    Guarantee:
        With a `scale` from `calibrate` for the map and grid of `sums`, the result satisfies
        (epsilon, delta) differential privacy. The noise of every coordinate is drawn independently
        and exactly from the operating system's randomness; no seed exists. The same holds if some
        rows get their noise in a further call, and the first call's result decides which rows these
        are. (docs/privacy/proofs.md, statements 9, 22 and 23.)

    Args:
        sums: S, int64 (d, c), in grid units.
        counts: records in each class, int64 (c,); None if they are not released here.
        scale: the noise.

    Raises:
        BudgetError: sum and noise together could leave 64 bits.
    """
    sigmas = scale.sigmas(len(sums))
    _require_room(max(int(sums.max()), -int(sums.min())), int(sigmas.max()))
    noisy = sums.copy()
    for sigma in dict.fromkeys(sigmas.tolist()):
        rows = sigmas == sigma
        drawn = discrete_gaussian(int(rows.sum()) * sums.shape[1], sigma)
        noisy[rows] += drawn.reshape(-1, sums.shape[1])
    return NoisySums(noisy, None if counts is None else noisy_counts(counts, scale))


def noisy_counts(counts: NDArray[np.int64], scale: NoiseScale) -> NDArray[np.int64] | None:
    """Add noise to the weighted class counts alone.

    Guarantee:
        That of `add_noise` for the counts and the sums together, whichever gets its noise first,
        and even if this result decides which sums are released. (docs/privacy/proofs.md, statements
        9, 22 and 23.)

    Args:
        counts: records in each class, int64 (c,).
        scale: how much noise.

    Returns:
        int64 (c,), in grid units times the count weight; None if that is 0.

    Raises:
        BudgetError: count and noise together could leave 64 bits.
    """
    if not scale.count_weight:
        return None
    weighted = [int(count) * scale.count_weight for count in counts]
    _require_room(max(weighted, default=0), scale.sigma)
    drawn = discrete_gaussian(counts.size, scale.sigma)
    return np.array(weighted, dtype=np.int64) + drawn


def _require_room(largest: int, sigma: int) -> None:
    if largest + FURTHEST * sigma + 1 >= 2**63:
        raise BudgetError(
            "sums and noise do not fit 64 bits together: embed again with a larger "
            f"{argument('capacity')}"
        )
