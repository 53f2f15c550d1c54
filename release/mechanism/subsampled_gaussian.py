"""Accounting for the subsampled Gaussian mechanism, from sampling rate, noise and steps.

A step adds up vectors of norm at most 1 over a Poisson sample of the records and adds Gaussian
noise. The privacy loss of many such steps, each of which may depend on the earlier ones, is
dominated, if a record is added or removed, by that of the pairs

    N(0, z^2)  and  (1 - rate) N(0, z^2) + rate N(1, z^2),

in both directions, composed with themselves (Zhu, Dong, Wang 2022, "Optimal Accounting of
Differential Privacy via Characteristic Function", theorems 10 and 11). If a record is exchanged for
another, it is dominated by that of

    (1 - rate) N(0, z^2) + rate N(-1, z^2)  and  (1 - rate) N(0, z^2) + rate N(1, z^2)

(docs/privacy/proofs.md, statement 18, has the proof). dp-accounting composes their privacy loss
distributions, rounding up (Doroshenko et al. 2022, "Connect the Dots"). No analysis is tighter than
the distributions themselves; the resulting epsilon exceeds theirs only by the cost of the grid of
1e-4.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, Final

from ...common.adjacency import Adjacency
from ...common.arguments import argument
from ...common.errors import BudgetError
from ...common.ledger import require_budget
from .accountant import noise_multiplier

SAMPLED_ACCOUNTANT: Final = "privacy loss distribution of the Poisson-subsampled Gaussian"
_SMALLEST_MULTIPLIER: Final = 0.3
LARGEST_SAMPLED_MULTIPLIER: Final = 4096.0
MOST_STEPS: Final = 1 << 17
LEAST_SAMPLING_PROB: Final = 2.0**-32
_LARGEST_EPSILON: Final = 500.0
"""Privacy losses that range over more than this take gigabytes to compose, and promise nothing."""
DEFAULT_GRID: Final = 1e-4
_COARSE_GRID: Final = 1e-3
_ROUGH_GRID: Final = 0.1
"""On this grid, every possible run is composed within a second and 200 MB."""
_MARGIN: Final = 1e-4
"""Relative amount by which noise is rounded up."""
_STRIDE: Final = 1.25
"""Factor between the multipliers that are tried until the one sought lies between two."""
_LEAST_SPENT: Final = 1e-9
"""Less than this counts as this, so that it has a logarithm."""
_LOST_PER_STEP: Final = 2.0**-50
"""Bounds the part of delta lost per step to rounding, when Fourier transforms are raised to the
power of the steps. Where the exact figure is known, the observed loss is below a tenth of this."""


@dataclass(frozen=True)
class SampledGaussian:
    """Many identical steps of the subsampled Gaussian mechanism.

    Attributes:
        sampling_prob: probability with which each record is in a step.
        noise_multiplier: standard deviation of a step's noise at sensitivity 1.
        steps: the number of steps.
    """

    sampling_prob: float
    noise_multiplier: float
    steps: int

    def __post_init__(self) -> None:
        if not LEAST_SAMPLING_PROB <= self.sampling_prob <= 1:
            raise BudgetError(f"a sampling rate of {self.sampling_prob:g}: it is from 2^-32 to 1")
        if not 1 <= self.steps <= MOST_STEPS:
            raise BudgetError(f"{self.steps:,} steps: 1 to {MOST_STEPS:,} are accounted for")
        if not _SMALLEST_MULTIPLIER <= self.noise_multiplier <= LARGEST_SAMPLED_MULTIPLIER:
            raise BudgetError(
                f"noise of {self.noise_multiplier:g} times the clip norm: "
                f"{_SMALLEST_MULTIPLIER:g} to {LARGEST_SAMPLED_MULTIPLIER:g} are accounted for; "
                "change rate, steps or epsilon"
            )

    def to_json(self) -> dict[str, float]:
        """A plain mapping that `from_json` reads back."""
        return {
            "rate": self.sampling_prob,
            "multiplier": self.noise_multiplier,
            "steps": self.steps,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> SampledGaussian:
        """Read what `to_json` wrote.

        Raises:
            BudgetError: a number is out of its range.
            KeyError: there is no such number.
            ValueError: a number is of another type.
        """
        rate, multiplier, steps = (document[name] for name in ("rate", "multiplier", "steps"))
        if type(steps) is not int or not {type(rate), type(multiplier)} <= {int, float}:
            raise ValueError("a rate, a multiplier or a number of steps that is no such number")
        return cls(float(rate), float(multiplier), steps)


def sampled_epsilon(
    runs: Sequence[SampledGaussian],
    delta: float,
    grid: float = DEFAULT_GRID,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
) -> float:
    """The joint epsilon of all runs.

    Guarantee:
        The result is not below the true epsilon, if dp-accounting's floating-point arithmetic
        loses no more of delta than it is reduced by here: ten times what was seen wherever the
        exact figure is known. Losses are rounded up. (docs/privacy/proofs.md, statement 18.)

    Args:
        runs: the runs on the same records; each may depend on the earlier ones.
        delta: the delta at which epsilon is taken.
        grid: the discretisation of privacy losses; a coarser one is faster and gives a larger
            epsilon.
        adjacency: which data sets are indistinguishable, whatever adjacency the runs were made for.

    Returns:
        Epsilon; infinite if delta is lost in rounding, or if epsilon exceeds `_LARGEST_EPSILON` on
        a rough grid, so that time and memory stay small for all inputs.

    Raises:
        BudgetError: delta is not between 0 and 1.
    """
    require_budget(1.0, delta)
    left = delta - _LOST_PER_STEP * sum(run.steps for run in runs)
    if left <= 0 or _composed(tuple(runs), left, _ROUGH_GRID, adjacency) > _LARGEST_EPSILON:
        return math.inf
    return _composed(tuple(runs), left, grid, adjacency)


@cache
def _composed(
    runs: tuple[SampledGaussian, ...], delta: float, grid: float, adjacency: Adjacency
) -> float:
    # Slow to import, so imported only here.
    from dp_accounting import NeighboringRelation, dp_event
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    relation = {
        Adjacency.ADD_REMOVE: NeighboringRelation.ADD_OR_REMOVE_ONE,
        Adjacency.REPLACE_ONE: NeighboringRelation.REPLACE_ONE,
    }[adjacency]
    accountant = PLDAccountant(relation, value_discretization_interval=grid)
    steps: Counter[tuple[float, float]] = Counter()
    for run in runs:
        steps[run.sampling_prob, run.noise_multiplier] += run.steps
    for (sampling_prob, multiplier), count in steps.items():  # like steps are composed at once
        step = dp_event.GaussianDpEvent(multiplier)
        accountant.compose(dp_event.PoissonSampledDpEvent(sampling_prob, step), count)
    return float(accountant.get_epsilon(delta))


def calibrate_sampled_gaussian(
    epsilon: float,
    delta: float,
    sampling_prob: float,
    steps: int,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
) -> SampledGaussian:
    """The least noise, rounded up, with which all steps together are (epsilon, delta) private.

    Guarantee:
        `sampled_epsilon` of the result is at most `epsilon`.

    Args:
        epsilon: epsilon of the whole run.
        delta: delta of the whole run.
        sampling_prob: probability with which each record is in a step.
        steps: how many.
        adjacency: which data sets are to be indistinguishable.

    Raises:
        BudgetError: a number makes no sense, or the noise is out of the accountant's range.
    """
    # Slow to import, so imported only here.
    from scipy.optimize import brentq

    require_budget(epsilon, delta)
    if delta < (least := 2 * _LOST_PER_STEP * steps):
        raise BudgetError(
            f"{argument('delta', delta)}: over {steps:,} steps less than {least:.2g} is lost in "
            "rounding"
        )

    coarse = _COARSE_GRID * min(max(1.0, epsilon), 10.0)
    most = 2 * max(epsilon, _LARGEST_EPSILON)

    def spent(multiplier: float, grid: float) -> float:
        run = SampledGaussian(sampling_prob, multiplier, steps)
        return sampled_epsilon([run], delta, grid, adjacency)

    def excess(multiplier: float) -> float:
        """The logarithm of what is spent over what may be: above 0 where noise is too little."""
        return math.log(min(max(spent(multiplier, coarse), _LEAST_SPENT), most) / epsilon)

    low = high = _first_guess(epsilon, delta, sampling_prob, steps)
    while excess(high) > 0:
        low, high = high, _STRIDE * high
    while low > _SMALLEST_MULTIPLIER and excess(low) <= 0:
        low, high = max(low / _STRIDE, _SMALLEST_MULTIPLIER), low
    if excess(low) <= 0:
        high = low
    else:
        high = brentq(excess, low, high, xtol=_MARGIN * low / 4) + _MARGIN * low / 4
    while spent(high, DEFAULT_GRID) > epsilon:
        high *= 1 + _MARGIN
    return SampledGaussian(sampling_prob, high, steps)


def _first_guess(epsilon: float, delta: float, sampling_prob: float, steps: int) -> float:
    """About the multiplier that is sought if a record is added or removed.

    By the central limit theorem many steps are like one with the parameter
    rate sqrt(steps (e^(1 / z^2) - 1)) of Gaussian differential privacy (Bu, Dong, Long, Su 2020,
    "Deep Learning with Gaussian Differential Privacy").
    """
    together = 1 / (sampling_prob * noise_multiplier(epsilon, delta))
    guess = 1 / math.sqrt(math.log1p(together**2 / steps))
    return min(max(guess, _SMALLEST_MULTIPLIER), LARGEST_SAMPLED_MULTIPLIER)


def sampled_accountant_version() -> str:
    """The name and version of the library that computes the numbers."""
    return f"dp-accounting {version('dp-accounting')}"
