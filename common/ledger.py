"""What has been spent: the record of every release that was made from an embedding."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any, Final

from .adjacency import Adjacency
from .arguments import argument, require_kind
from .errors import BudgetError, SchemaError

DEFAULT_DELTA: Final = 1e-5
"""Delta of releases and of ceilings; see `default_delta` if the number of records is public."""
_LEAST_NOISE: Final = 1e-6
"""Far below all multipliers that there are: its square can be divided by."""
_MOST_NOISE: Final = 1e12
"""Far above all multipliers that there are: its square is a number."""
_DEEPEST: Final = 200
"""Parts in parts: whatever is done with a ledger calls itself for each of them."""
_MOST_CEILINGS: Final = 1_000
"""So that whatever is done with a ledger is done quickly."""
Ids = frozenset[str]
"""Identifiers of releases."""
_IN_FILES: Final = {
    "noise_multiplier": "multiplier",
    "noise_multiplier_replace_one": "multiplier_replace_one",
}
"""Fields of an entry that files call something else."""


def default_delta(adjacency: Adjacency, records: int) -> float:
    """The delta of a release from so many records if nobody chooses one.

    Guarantee:
        Under add-remove, which protects the number of records, it does not depend on it.

    Args:
        adjacency: of the release.
        records: n, how many there are.

    Returns:
        1e-5; under replace-one at most the largest power of ten that is below 1/n: 1e-6 from
        100,000 records on, 1e-7 from a million.
    """
    if adjacency is Adjacency.ADD_REMOVE:
        return DEFAULT_DELTA
    return min(DEFAULT_DELTA, float(f"1e-{len(str(records))}"))


@dataclass(frozen=True)
class Entry:
    """One release.

    Attributes:
        release_id: of the release.
        created: when, in UTC, ISO 8601.
        epsilon: that it promises; infinite for a release without noise.
        delta: that it promises.
        adjacency: under which it promises them.
        noise_multiplier: standard deviation of its noise at sensitivity 1 under that adjacency; 0
            for a release without noise.
        noise_multiplier_replace_one: the same under replace-one, for adding up unlike releases.
        privacy_unit: name of the column that tells apart whose rows it protects together; None if
            it protects each record by itself. Releases of unlike units are never added up.
    """

    release_id: str
    created: str
    epsilon: float
    delta: float
    adjacency: Adjacency
    noise_multiplier: float
    noise_multiplier_replace_one: float
    privacy_unit: str | None = None

    def to_json(self) -> dict[str, Any]:
        """A plain mapping that `from_json` reads back."""
        values = asdict(self)
        if self.privacy_unit is None:
            del values["privacy_unit"]
        return {
            **{_IN_FILES.get(name, name): value for name, value in values.items()},
            "adjacency": self.adjacency.value,
            # JSON has no infinity.
            "epsilon": self.epsilon if math.isfinite(self.epsilon) else None,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Entry:
        """Read what `to_json` wrote.

        Raises:
            SchemaError: it is no such document.
        """
        try:
            said = [name for name in _FIELDS if name != "privacy_unit" or name in document]
            values = {name: document[_IN_FILES.get(name, name)] for name in said}
            epsilon = values["epsilon"]
            entry = cls(
                **{
                    **values,
                    "adjacency": Adjacency(values["adjacency"]),
                    "epsilon": math.inf if epsilon is None else epsilon,
                }
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SchemaError(f"the ledger cannot be read: {error!r}") from error
        if len(document) != len(values):
            raise SchemaError("the ledger holds more of a release than there is to one")
        if not all(isinstance(text, str) for text in (entry.release_id, entry.created)):
            raise SchemaError("the ledger holds a release without a name")
        if "privacy_unit" in values and not isinstance(entry.privacy_unit, str):
            raise SchemaError("the ledger holds a release that protects nobody's rows")
        if not all(type(number) in (int, float) for number in (entry.epsilon, entry.delta)):
            raise SchemaError("the ledger holds a release without a promise")
        # Integers of any length would be compared here, and fail where floats are needed.
        finite = 0 < entry.epsilon <= sys.float_info.max
        if not (finite or entry.epsilon == math.inf) or not 0 <= entry.delta < 1:
            raise SchemaError("the ledger holds a release with an impossible promise")
        # Without this, a damaged ledger could make what was spent look like nothing.
        for multiplier in (entry.noise_multiplier, entry.noise_multiplier_replace_one):
            if type(multiplier) is not float or not (
                multiplier == 0 or _LEAST_NOISE <= multiplier <= _MOST_NOISE
            ):
                raise SchemaError("the ledger holds impossible noise")
            if (multiplier == 0) != math.isinf(entry.epsilon):
                raise SchemaError("the ledger holds noise that contradicts its epsilon")
        return entry


_FIELDS: Final = tuple(field.name for field in fields(Entry))


@dataclass(frozen=True)
class PrivacyBudget:
    """What all releases from an embedding together may spend, set when it was made.

    Attributes:
        epsilon: of the total.
        delta: at which the total's epsilon is taken.

    Guarantee:
        No release is made that would spend more, counted as composition counts it
        (docs/privacy/proofs.md, statement 11).

    Raises:
        BudgetError: epsilon is not a positive number, or delta not between 0 and 1.
    """

    epsilon: float
    delta: float = DEFAULT_DELTA

    def __post_init__(self) -> None:
        for name, value in (("epsilon", self.epsilon), ("delta", self.delta)):
            require_kind(name, value, (int, float), "a number, such as 1.0", refusal=BudgetError)
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            epsilon = argument("epsilon", self.epsilon, option="--budget-eps")
            raise BudgetError(f"{epsilon}: epsilon must be a positive number")
        if not 0 < self.delta < 1:
            delta = argument("delta", self.delta, option="--budget-delta")
            raise BudgetError(f"{delta}: delta must lie between 0 and 1")

    def keeps(self, other: PrivacyBudget) -> bool:
        """Whether what stays within this ceiling stays within the other one."""
        return self.epsilon <= other.epsilon and self.delta <= other.delta


_UNBOUND: Final = PrivacyBudget(sys.float_info.max, 1 - 2**-53)


@dataclass(frozen=True)
class Ledger:
    """All releases from one embedding, in order, and the ceiling if there is one.

    Attributes:
        entries: the releases.
        ceiling: what they may spend together.
        parts: of a merged embedding: the ledgers of what it was merged from, as they were then. A
            record is in one of the parts only, so it is touched by that part's releases and by
            `entries`, and not by those of the other parts.

    Raises:
        SchemaError: parts are in parts too deeply, or too many have a ceiling.
    """

    entries: tuple[Entry, ...] = ()
    ceiling: PrivacyBudget | None = None
    parts: tuple[Ledger, ...] = ()

    def __post_init__(self) -> None:
        if self._depth > _DEEPEST:
            raise SchemaError(f"merged too often: {_DEEPEST} times, one after the other, can be")
        if self._ceilings > _MOST_CEILINGS:
            raise SchemaError(f"too many ceilings: {_MOST_CEILINGS:,} parts can have one")

    @cached_property
    def _depth(self) -> int:
        return 1 + max((part._depth for part in self.parts), default=0)

    @cached_property
    def _ceilings(self) -> int:
        return (self.ceiling is not None) + sum(part._ceilings for part in self.parts)

    @property
    def all_entries(self) -> tuple[Entry, ...]:
        """The releases from the parts, and then those from the whole."""
        return (*(entry for part in self.parts for entry in part.all_entries), *self.entries)

    def with_entry(self, entry: Entry) -> Ledger:
        """The ledger with one more release."""
        return replace(self, entries=(*self.entries, entry))

    def going_on_with(self, later: Ledger) -> Ledger:
        """The ledger with the releases of another, and with its ceilings.

        Where releases are of parts, they count as of the whole: more than they have spent, never
        less. That a part of this ledger knows of a release says nothing, for the release may have
        been of more than this part; and a name says nothing, for whoever gave a part may have put
        another release under it. So do ceilings count: one that was set for a part binds the whole,
        unless it, or one that is as low, binds the same releases here. An empty ledger goes on as
        the other one.

        Guarantee:
            Every release of the other ledger is among those of the whole, with what it has spent.
            (docs/privacy/proofs.md, statement 11.)
        """
        if not self.all_entries and not self.parts:
            return later if self.ceiling is None else later._under(self.ceiling)
        new = tuple(dict.fromkeys(e for e in later.all_entries if e not in self.entries))
        rest = self._without(frozenset(new))
        joint = replace(rest, entries=(*rest.entries, *new))
        here = tuple(joint._bound())
        for ceiling, bound in later._bound():
            if not any(own.keeps(ceiling) and bound <= those for own, those in here):
                joint = joint._under(ceiling)
        return joint

    def _bound(self, above: frozenset[str] = frozenset()) -> Iterator[tuple[PrivacyBudget, Ids]]:
        """All ceilings, each with the releases that it binds, those of the whole included."""
        own = above | {entry.release_id for entry in self.entries}
        if self.ceiling is not None:
            yield self.ceiling, own | {entry.release_id for entry in self.all_entries}
        for part in self.parts:
            yield from part._bound(own)

    def _under(self, ceiling: PrivacyBudget) -> Ledger:
        """The ledger, bound by one more ceiling."""
        whole = self
        while whole.ceiling is not None:  # a single part is the whole once more
            if whole.ceiling.keeps(ceiling):
                return self
            if len(whole.parts) != 1:
                break
            (whole,) = whole.parts
        if self.ceiling is None or ceiling.keeps(self.ceiling):
            return replace(self, ceiling=ceiling)
        return Ledger(ceiling=ceiling, parts=(self,))  # neither of the two keeps the other

    def beginning_with(self, spent: tuple[Entry, ...]) -> Ledger:
        """The ledger with what was spent on something that its embedding was made with.

        Args:
            spent: entries of releases from the same records; those that are there already, here
                or in the parts, are not counted twice. One that the whole has under the same name
                stays as it is there.
        """
        known = {entry.release_id: entry for entry in self.entries}
        first = tuple(known.get(entry.release_id, entry) for entry in spent)
        rest = self._without(frozenset(first))
        return replace(rest, entries=(*first, *rest.entries))

    def renewed_by(self, copy: Ledger) -> Ledger:
        """The ledger with what another one of the same embedding has: their parts are the same."""
        alike = copy.parts == self.parts
        return self.going_on_with(replace(copy, parts=()) if alike else copy)

    def covers(self, other: Ledger) -> bool:
        """Whether nothing of another ledger is lost with it, parts being in the same order."""
        bound = other.ceiling is None or (self.ceiling or _UNBOUND).keeps(other.ceiling)
        if not bound or not set(other.entries) <= set(self.entries):
            return False
        pairs = itertools.zip_longest(self.parts, other.parts, fillvalue=Ledger())
        return all(own.covers(others) for own, others in pairs)

    def _without(self, entries: frozenset[Entry]) -> Ledger:
        return replace(
            self,
            entries=tuple(entry for entry in self.entries if entry not in entries),
            parts=tuple(part._without(entries) for part in self.parts),
        )

    def to_json(self) -> dict[str, Any]:
        """A plain mapping that `from_json` reads back."""
        return {
            "entries": [entry.to_json() for entry in self.entries],
            "ceiling": None if self.ceiling is None else asdict(self.ceiling),
            **({"parts": [part.to_json() for part in self.parts]} if self.parts else {}),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Ledger:
        """Read what `to_json` wrote.

        Raises:
            SchemaError: it is no such document.
        """
        try:
            return cls(
                entries=tuple(map(Entry.from_json, document["entries"])),
                ceiling=None
                if document["ceiling"] is None
                else PrivacyBudget(**document["ceiling"]),
                parts=tuple(cls.from_json(part) for part in document.get("parts", ())),
            )
        except (
            KeyError, TypeError, ValueError, ArithmeticError, AttributeError, BudgetError,
        ) as error:  # fmt: skip
            raise SchemaError(f"the ledger cannot be read: {error!r}") from error
