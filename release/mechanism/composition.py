"""Composition: the joint guarantee of several releases from the same records.

Guarantee:
    Gaussian mechanisms compose exactly: releases with noise multipliers z_1, ..., z_k, fixed
    beforehand, are together as private as a single one with 1/z^2 = sum_i 1/z_i^2 (Dong, Roth, Su
    2022, "Gaussian Differential Privacy", corollary 3.3). Under a ceiling, the earlier releases may
    influence whether another release is made, and with which multiplier: all of them together
    satisfy the ceiling (Smith and Thakurta 2022, "Fully adaptive composition for Gaussian
    differential privacy"). Releases under different adjacencies are composed under replace-one,
    which is defined for all of them: exchanging a record means removing one and adding one.
    (docs/privacy/proofs.md, statement 11.)

    Releases made from the parts of a merged embedding before the merge touch different records.
    Exchanging one record changes one part, so the part that spent most counts, and the releases
    from the whole are added to it. (docs/privacy/proofs.md, statement 14.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from ...common.adjacency import Adjacency
from ...common.arguments import require_flag
from ...common.display.text import promised, rounded_up
from ...common.errors import BudgetError
from ...common.ledger import SMALLEST_EPSILON, Ledger
from .accountant import epsilon_for, noise_multiplier

_ROUNDING: Final = 1e-9
"""A release's own epsilon is this near to what follows from its noise."""


@dataclass(frozen=True)
class Total:
    """The joint guarantee of some releases.

    Attributes:
        epsilon: the joint epsilon.
        delta: the delta at which epsilon is taken.
        adjacency: the releases' adjacency if they share one, else replace-one.
        releases: the number of releases.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    releases: int

    def __str__(self) -> str:
        """The guarantee as a message states it, which rounds nothing down."""
        at = f"epsilon {rounded_up(self.epsilon)} at delta {promised(self.delta)}"
        return f"{at} ({self.adjacency.value})"


def is_accepted(compose: Callable[[Total], bool], total: Total) -> bool:
    """Whether the owner accepts a total.

    Args:
        compose: called with the total, to ask.
        total: of all releases.

    Raises:
        BudgetError: the answer is neither True nor False: any text would count as true.
    """
    answer = compose(total)
    require_flag("what compose returns", answer, refusal=BudgetError)
    return answer


def total_of(ledger: Ledger, delta: float) -> Total:
    """The joint guarantee of the releases in a ledger; a single release's is its own.

    Args:
        ledger: the releases.
        delta: the delta at which epsilon is taken.

    Raises:
        BudgetError: delta is not between 0 and 1, a release's noise hides nothing, or the releases
            protect different privacy units.
    """
    adjacency, releases = adjacency_of(ledger), len(ledger.all_entries)
    if not releases:
        return Total(0.0, delta, adjacency, 0)
    # Rounded up, because the sum of squares is off by a few units in the last place at most.
    precision = _gdp_mu_squared(ledger, adjacency) * (1 + 2.0**-40)
    epsilon = epsilon_for(1 / math.sqrt(precision), delta)
    first = ledger.all_entries[0]
    alone = releases == 1 and (first.delta, first.adjacency) == (delta, adjacency)
    if alone and math.isclose(first.epsilon, epsilon, rel_tol=_ROUNDING):
        epsilon = first.epsilon
    return Total(epsilon, delta, adjacency, releases)


def _gdp_mu_squared(ledger: Ledger, adjacency: Adjacency) -> float:
    """The largest sum of 1/z_i^2 over the releases that touch one record; infinite without noise.

    Args:
        ledger: the releases.
        adjacency: the adjacency to which the multipliers z_i refer.
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
    """The ledger, and each part's ledger with the releases from the whole added.

    Only ledgers with a ceiling are yielded. A part's ceiling limits all releases that touch the
    part's records, those from the whole included.
    """
    if ledger.ceiling is not None:
        yield ledger
    for part in ledger.parts:
        yield from _under_each_ceiling(replace(part, entries=(*part.entries, *ledger.entries)))


def require_below_ceiling(ledger: Ledger) -> None:
    """Check that the releases in a ledger, the latest included, stay within every ceiling.

    Raises:
        BudgetError: they exceed one.
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
    """The ledger, of the whole or of a part, whose ceiling leaves the least budget.

    A part's ledger includes the releases from the whole. None if there is no ceiling at all.
    """
    return min(_under_each_ceiling(ledger), key=_gdp_mu_squared_left, default=None)


def remaining(ledger: Ledger) -> float:
    """The largest epsilon that one more release may have, at the ceiling's delta; 0 if none.

    After other releases it is that of one under their adjacency; one under another has less.

    Args:
        ledger: a ledger with a ceiling; `strictest` takes care of its parts' ceilings.

    Raises:
        ValueError: the ledger has no ceiling.
    """
    left = _gdp_mu_squared_left(ledger)
    if ledger.ceiling is None or left <= 0:
        return 0.0
    # Rounded down, so that a release with this epsilon is really accepted.
    largest = epsilon_for(1 / math.sqrt(left), ledger.ceiling.delta) * (1 - 1e-6)
    return largest if largest >= SMALLEST_EPSILON else 0.0


def _gdp_mu_squared_left(ledger: Ledger) -> float:
    """The largest 1/z^2 that one more release may have; 0 or less if none is left."""
    if ledger.ceiling is None:
        raise ValueError("a ledger without a ceiling has no limit")
    ceiling = ledger.ceiling
    allowed = 1 / noise_multiplier(ceiling.epsilon, ceiling.delta) ** 2
    return allowed - _gdp_mu_squared(ledger, adjacency_of(ledger))


def adjacency_of(ledger: Ledger) -> Adjacency:
    """The releases' adjacency if they share one, else replace-one.

    Raises:
        BudgetError: they protect different privacy units, so there is no total.
    """
    entries = ledger.all_entries
    if len({entry.privacy_unit for entry in entries}) > 1:
        raise BudgetError(
            "some of the releases protect another privacy unit than others, and what unlike ones "
            "promise cannot be added up"
        )
    alike = bool(entries) and all(e.adjacency is Adjacency.ADD_REMOVE for e in entries)
    return Adjacency.ADD_REMOVE if alike else Adjacency.REPLACE_ONE
