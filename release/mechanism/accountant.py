"""Converting (epsilon, delta) to noise and back, by the exact analytic Gaussian mechanism.

For sensitivity 1 and noise multiplier z, the Gaussian mechanism satisfies (epsilon, delta)
differential privacy exactly when

    delta >= Phi(1/(2z) - epsilon z) - e^epsilon Phi(-1/(2z) - epsilon z)

(Balle and Wang 2018, "Improving the Gaussian Mechanism for Differential Privacy", theorem 8).
autodp evaluates the right-hand side in log space. Its own calibration is not used, because it
compares deltas with an absolute tolerance that is too coarse for very small ones.
"""

from __future__ import annotations

import math
import warnings
from functools import cache, lru_cache
from importlib.metadata import version
from types import ModuleType
from typing import Final

from ...common.errors import BudgetError
from ...common.ledger import SMALLEST_EPSILON, require_budget

ACCOUNTANT: Final = "analytic Gaussian mechanism (Balle and Wang 2018)"
_RELATIVE_MARGIN: Final = 1e-9
"""Relative amount by which results are rounded to the safe side; far above the error of autodp's
log-delta."""
LARGEST_EPSILON: Final = 1e9
LARGEST_MULTIPLIER: Final = 1e9
SMALLEST_MULTIPLIER: Final = 1e-3


@lru_cache(maxsize=1 << 14)
def log_delta(noise_multiplier: float, epsilon: float) -> float:
    """The natural logarithm of the smallest delta at this noise and epsilon."""
    return float(_autodp().get_logdelta_ana_gaussian(noise_multiplier, epsilon))


@cache
def _autodp() -> ModuleType:
    """The formulas of autodp; imported only when needed, because that is slow."""
    with warnings.catch_warnings():
        # Its sources give warnings whenever Python compiles them, and it may be unable to cache
        # that.
        warnings.simplefilter("ignore", SyntaxWarning)
        from autodp import dp_bank

    module: ModuleType = dp_bank
    return module


def noise_multiplier(epsilon: float, delta: float) -> float:
    """The standard deviation of Gaussian noise at sensitivity 1, rounded up.

    Guarantee:
        At the returned value the exact delta is at most `delta`. The value exceeds the smallest
        such value by a relative 2e-9 at most. (docs/privacy/proofs.md, statement 6.)

    Raises:
        BudgetError: epsilon or delta is meaningless or out of reach.
    """
    require_budget(epsilon, delta)
    target = math.log(delta)
    low, high = math.log(SMALLEST_MULTIPLIER), math.log(LARGEST_MULTIPLIER)
    if log_delta(math.exp(high), epsilon) > target:
        raise BudgetError(f"epsilon {epsilon:g} with delta {delta:g} needs too much noise")
    while high - low > _RELATIVE_MARGIN / 2:
        middle = (low + high) / 2
        if log_delta(math.exp(middle), epsilon) > target:
            low = middle
        else:
            high = middle
    rounded_up = math.exp(high) * (1 + _RELATIVE_MARGIN)
    if log_delta(rounded_up, epsilon) > target:
        raise BudgetError(f"epsilon {epsilon:g} with delta {delta:g}: calibration failed")
    return rounded_up


def epsilon_for(multiplier: float, delta: float) -> float:
    """The epsilon that noise of this size at sensitivity 1 gives, rounded up; infinite for none.

    It is 0 where delta alone is enough, and otherwise at least 1e-4, the smallest epsilon that can
    be resolved.

    Guarantee:
        At the returned epsilon the exact delta is at most `delta`.

    Raises:
        BudgetError: no epsilon up to 10^9 is large enough, or delta is not between 0 and 1.
    """
    require_budget(1.0, delta)
    if multiplier == 0:
        return math.inf
    target = math.log(delta)
    if math.erf(1 / (math.sqrt(8) * multiplier)) * (1 + _RELATIVE_MARGIN) <= delta:
        return 0.0
    if log_delta(multiplier, SMALLEST_EPSILON) <= target:
        return SMALLEST_EPSILON
    low, high = SMALLEST_EPSILON, 1.0
    while log_delta(multiplier, high) > target:
        low, high = high, 2 * high
        if high > LARGEST_EPSILON:
            raise BudgetError(f"noise of {multiplier:g} times the sensitivity hides nothing")
    while high - low > _RELATIVE_MARGIN / 2 * high:
        middle = (low + high) / 2
        if log_delta(multiplier, middle) > target:
            low = middle
        else:
            high = middle
    return high * (1 + _RELATIVE_MARGIN)


def accountant_version() -> str:
    """The name and version of the library that computes the numbers."""
    return f"autodp {version('autodp')}"
