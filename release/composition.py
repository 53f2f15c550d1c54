"""What several releases from the same records promise together.

Guarantee:
    Gaussian mechanisms compose exactly, also when each is chosen in the light of the earlier ones:
    releases with noise multipliers z_1, ..., z_k are together as private as a single one with
    1/z^2 = sum_i 1/z_i^2 (Dong, Roth, Su 2022, "Gaussian Differential Privacy", corollary 3.3).
    Releases under different adjacencies are added up under replace-one, which is defined for all
    of them: exchanging a record is taking one away and adding one.
    (docs/privacy.md, statement 11.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..common.adjacency import Adjacency
from ..common.errors import BudgetError
from ..common.ledger import Entry, Ledger
from .accountant import epsilon_for, noise_multiplier


@dataclass(frozen=True)
class Total:
    """The joint promise of some releases.

    Attributes:
        epsilon: of all of them together.
        delta: at which epsilon is taken.
        adjacency: the releases' own if they share one, else replace-one.
        releases: how many they are.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    releases: int


def total_of(entries: Sequence[Entry], delta: float) -> Total:
    """What releases promise together.

    Args:
        entries: of the ledger.
        delta: at which epsilon is to be taken.

    Raises:
        BudgetError: delta is no probability, or noise was added that hides nothing.
    """
    adjacency = Adjacency.ADD_REMOVE if _all_add_remove(entries) else Adjacency.REPLACE_ONE
    if not entries:
        return Total(0.0, delta, adjacency, 0)
    # Rounded up: the sum of the squares is off by a few units in the last place at most.
    precision = _precision(entries) * (1 + 2.0**-40)
    return Total(epsilon_for(1 / math.sqrt(precision), delta), delta, adjacency, len(entries))


def _all_add_remove(entries: Sequence[Entry]) -> bool:
    return bool(entries) and all(e.adjacency is Adjacency.ADD_REMOVE for e in entries)


def _precision(entries: Sequence[Entry]) -> float:
    """Sum of 1/z_i^2 under the adjacency of the total; infinite if one of them had no noise."""
    alike = _all_add_remove(entries)
    multipliers = [e.multiplier if alike else e.multiplier_replace_one for e in entries]
    if 0 in multipliers:
        return math.inf
    return math.fsum(1 / multiplier**2 for multiplier in multipliers)


def require_below_ceiling(ledger: Ledger) -> None:
    """Check that the releases in a ledger, the latest included, stay within its ceiling.

    Raises:
        BudgetError: they spend more.
    """
    ceiling = ledger.ceiling
    if ceiling is None:
        return
    total = total_of(ledger.entries, ceiling.delta)
    if total.epsilon > ceiling.epsilon * (1 + 1e-6):
        before = total_of(ledger.entries[:-1], ceiling.delta)
        raise BudgetError(
            f"the budget of epsilon {ceiling.epsilon:g} at delta {ceiling.delta:g} does not allow "
            f"this release: {before.epsilon:.4g} is spent already, and with it the total would be "
            f"{total.epsilon:.4g}; choose a smaller --eps"
        )


def most_left(ledger: Ledger) -> float:
    """The largest epsilon that one more release may have, at the ceiling's delta; 0 if none.

    Raises:
        ValueError: the ledger has no ceiling.
    """
    if ledger.ceiling is None:
        raise ValueError("a ledger without a ceiling has no limit")
    ceiling = ledger.ceiling
    allowed = 1 / noise_multiplier(ceiling.epsilon, ceiling.delta) ** 2
    spent = _precision(ledger.entries)
    if spent >= allowed:
        return 0.0
    # Rounded down, so that a release of this size is really accepted.
    return epsilon_for(1 / math.sqrt(allowed - spent), ceiling.delta) * (1 - 1e-6)
