"""What several releases from the same records promise together.

Guarantee:
    Gaussian mechanisms compose exactly: releases with noise multipliers z_1, ..., z_k, fixed
    beforehand, are together as private as a single one with 1/z^2 = sum_i 1/z_i^2 (Dong, Roth, Su
    2022, "Gaussian Differential Privacy", corollary 3.3). Under a ceiling whether there is another
    release, and with which multiplier, may be decided in the light of the earlier ones: all of them
    together satisfy the ceiling (Smith and Thakurta 2022, "Fully adaptive composition for Gaussian
    differential privacy").
    Releases under different adjacencies are added up under replace-one, which is defined for all
    of them: exchanging a record is taking one away and adding one.
    (docs/privacy/proofs.md, statement 11.)

    Releases from the parts of a merged embedding, made before they were merged, touch different
    records: the exchange of one record changes one part, so the part that spent most counts, and
    the releases from the whole are added to it. (docs/privacy/proofs.md, statement 14.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...common.adjacency import Adjacency
from ...common.display.text import rounded_up
from ...common.errors import BudgetError
from ...common.ledger import Ledger
from .accountant import SMALLEST_EPSILON, epsilon_for, noise_multiplier


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


def total_of(ledger: Ledger, delta: float) -> Total:
    """What releases promise together.

    Args:
        ledger: of the releases.
        delta: at which epsilon is to be taken.

    Raises:
        BudgetError: delta is no probability, noise was added that hides nothing, or the releases
            protect unlike privacy units.
    """
    adjacency, releases = adjacency_of(ledger), len(ledger.all_entries)
    if not releases:
        return Total(0.0, delta, adjacency, 0)
    # Rounded up: the sum of the squares is off by a few units in the last place at most.
    precision = _gdp_mu_squared(ledger, adjacency) * (1 + 2.0**-40)
    return Total(epsilon_for(1 / math.sqrt(precision), delta), delta, adjacency, releases)


def _gdp_mu_squared(ledger: Ledger, adjacency: Adjacency) -> float:
    """The largest sum of 1/z_i^2 over the releases that touch one record; infinite without noise.

    Args:
        ledger: of the releases.
        adjacency: under which the multipliers z_i are meant.
    """
    parts = max((_gdp_mu_squared(part, adjacency) for part in ledger.parts), default=0.0)
    alike = adjacency is Adjacency.ADD_REMOVE
    multipliers = [
        e.noise_multiplier if alike else e.noise_multiplier_replace_one for e in ledger.entries
    ]
    if 0 in multipliers:
        return math.inf
    return math.fsum([parts, *(1 / multiplier**2 for multiplier in multipliers)])


def _under_each_ceiling(ledger: Ledger) -> Iterator[Ledger]:
    """The ledger, and what each part's ledger would be with the whole's releases in it.

    Only those that have a ceiling. A part's owner was promised that all releases that touch the
    part's records stay below its ceiling, those from the whole included.
    """
    if ledger.ceiling is not None:
        yield ledger
    for part in ledger.parts:
        yield from _under_each_ceiling(replace(part, entries=(*part.entries, *ledger.entries)))


def require_below_ceiling(ledger: Ledger) -> None:
    """Check that the releases in a ledger, the latest included, stay within every ceiling.

    Raises:
        BudgetError: they spend more.
    """
    for limited in _under_each_ceiling(ledger):
        ceiling = limited.ceiling
        assert ceiling is not None
        if _gdp_mu_squared_left(limited) < 0:
            total = total_of(limited, ceiling.delta)
            before = total_of(replace(limited, entries=limited.entries[:-1]), ceiling.delta)
            of_part = (
                "" if limited is ledger else " that was set for all or a part of these records"
            )
            raise BudgetError(
                f"the budget of epsilon {ceiling.epsilon:g} at delta {ceiling.delta:g}{of_part} "
                f"does not allow this release: {rounded_up(before.epsilon)} is spent already, and "
                f"with it the total would be {rounded_up(total.epsilon)}; choose a smaller epsilon"
            )


def strictest(ledger: Ledger) -> Ledger | None:
    """The ledger, or the one of a part with the whole's releases, whose ceiling leaves least.

    None if there is no ceiling at all.
    """
    return min(_under_each_ceiling(ledger), key=_gdp_mu_squared_left, default=None)


def remaining(ledger: Ledger) -> float:
    """The largest epsilon that one more release may have, at the ceiling's delta; 0 if none.

    Args:
        ledger: with a ceiling of its own; those of its parts are left to `strictest`.

    Raises:
        ValueError: the ledger has no ceiling.
    """
    left = _gdp_mu_squared_left(ledger)
    if ledger.ceiling is None or left <= 0:
        return 0.0
    # Rounded down, so that a release of this size is really accepted.
    largest = epsilon_for(1 / math.sqrt(left), ledger.ceiling.delta) * (1 - 1e-6)
    return largest if largest >= SMALLEST_EPSILON else 0.0


def _gdp_mu_squared_left(ledger: Ledger) -> float:
    """What 1/z^2 one more release may have; not above 0 if none is left."""
    if ledger.ceiling is None:
        raise ValueError("a ledger without a ceiling has no limit")
    ceiling = ledger.ceiling
    allowed = 1 / noise_multiplier(ceiling.epsilon, ceiling.delta) ** 2
    return allowed - _gdp_mu_squared(ledger, adjacency_of(ledger))


def adjacency_of(ledger: Ledger) -> Adjacency:
    """The releases' own if they share one, else replace-one.

    Raises:
        BudgetError: they protect unlike privacy units, so that there is no total.
    """
    entries = ledger.all_entries
    if len({entry.privacy_unit for entry in entries}) > 1:
        raise BudgetError(
            "some of the releases protect another privacy unit than others, and what unlike ones "
            "promise cannot be added up"
        )
    alike = bool(entries) and all(e.adjacency is Adjacency.ADD_REMOVE for e in entries)
    return Adjacency.ADD_REMOVE if alike else Adjacency.REPLACE_ONE
