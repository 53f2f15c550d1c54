"""The ledger: a record of every release from an embedding, and of ceilings on their total."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any, Final

from .adjacency import Adjacency
from .arguments import argument, number, set_plain
from .errors import BudgetError, SchemaError

DEFAULT_DELTA: Final = 1e-5
"""The default delta of releases and ceilings; see `default_delta` if n is public."""
SMALLEST_EPSILON: Final = 1e-4
"""Below about 1e-5 the two terms of the Gaussian mechanism's delta are so close that float64 cannot
resolve their difference well enough, and noise would be off by more than its margin, to either
side."""
SMALLEST_DELTA: Final = 1e-100
"""Below this, float64 cannot resolve the difference of the two terms either, at any epsilon."""
_LEAST_NOISE: Final = 1e-6
"""Far below all real noise multipliers, but dividing by its square is safe."""
_MOST_NOISE: Final = 1e12
"""Far above all real noise multipliers, but its square is finite."""
_DEEPEST: Final = 200
"""The deepest nesting of parts: operations on a ledger are recursive."""
_MOST_CEILINGS: Final = 1_000
"""The most ceilings, so that operations on a ledger are fast."""
_IN_FILES: Final = {
    "noise_multiplier": "multiplier",
    "noise_multiplier_replace_one": "multiplier_replace_one",
}
"""Fields of an entry that have other names in files."""


def default_delta(adjacency: Adjacency, records: int) -> float:
    """The default delta of a release from a given number of records.

    Guarantee:
        Under add-remove, which protects the number of records, it does not depend on that number.

    Args:
        adjacency: the release's adjacency.
        records: n, the number of records.

    Returns:
        1e-5; under replace-one at most the largest power of ten that is below 1/n: 1e-6 from
        100,000 records on, 1e-7 from a million.
    """
    if adjacency is Adjacency.ADD_REMOVE:
        return DEFAULT_DELTA
    return min(DEFAULT_DELTA, float(f"1e-{len(str(records))}"))


@dataclass(frozen=True)
class Entry:
    """One release's entry in a ledger.

    Attributes:
        release_id: the release's ID.
        created: when, in UTC, ISO 8601.
        epsilon: its epsilon; infinite for a release without noise.
        delta: its delta.
        adjacency: the adjacency of its guarantee.
        noise_multiplier: standard deviation of its noise at sensitivity 1 under that adjacency; 0
            for a release without noise.
        noise_multiplier_replace_one: the same under replace-one, for composing releases under
            different adjacencies.
        privacy_unit: name of the privacy unit's column, whose rows it protects together; None if it
            protects each record by itself. Releases with different units are never added up.
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
        # Integers of any length could be compared here, but would fail where floats are needed.
        finite = 0 < entry.epsilon <= sys.float_info.max
        if not (finite or entry.epsilon == math.inf) or not 0 <= entry.delta < 1:
            raise SchemaError("the ledger holds a release with an impossible promise")
        # Without this, a damaged ledger could make the privacy loss look like nothing.
        for multiplier in (entry.noise_multiplier, entry.noise_multiplier_replace_one):
            if type(multiplier) is not float or not (
                multiplier == 0 or _LEAST_NOISE <= multiplier <= _MOST_NOISE
            ):
                raise SchemaError("the ledger holds impossible noise")
            if (multiplier == 0) != math.isinf(entry.epsilon):
                raise SchemaError("the ledger holds noise that contradicts its epsilon")
        return entry


_FIELDS: Final = tuple(field.name for field in fields(Entry))


def require_budget(
    epsilon: float, delta: float, *, options: tuple[str, str] = ("--eps", "--delta")
) -> None:
    """Refuse values of epsilon and delta that promise nothing or cannot be guaranteed.

    Args:
        epsilon: see above.
        delta: see above.
        options: the options of the command line that give them.

    Raises:
        BudgetError: epsilon is not a finite number of at least 1e-4, or delta is not between 0 and
            1, or is below 1e-100.
    """
    of_epsilon = argument("epsilon", epsilon, option=options[0])
    of_delta = argument("delta", delta, option=options[1])
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise BudgetError(f"{of_epsilon}: it must be a positive number, such as 1")
    if epsilon < SMALLEST_EPSILON:
        raise BudgetError(f"{of_epsilon}: {SMALLEST_EPSILON:g} is the least there is")
    if not 0 < delta < 1:
        raise BudgetError(f"{of_delta}: it must lie between 0 and 1, such as 1e-5")
    if delta < SMALLEST_DELTA:
        raise BudgetError(f"{of_delta}: {SMALLEST_DELTA:g} is the least there is")


@dataclass(frozen=True)
class PrivacyBudget:
    """A ceiling on all releases from an embedding together, set when it is made.

    Attributes:
        epsilon: the largest joint epsilon.
        delta: the delta at which the joint epsilon is taken.

    Guarantee:
        No release is made whose composition with the earlier ones would exceed it
        (docs/privacy/proofs.md, statement 11).

    Raises:
        BudgetError: epsilon is not a finite number of at least 1e-4, or delta is not between 0 and
            1, or is below 1e-100.
    """

    epsilon: float
    delta: float = DEFAULT_DELTA

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            wanted = "a number, such as 1.0"
            set_plain(
                self, **{name: number(name, getattr(self, name), wanted, refusal=BudgetError)}
            )
        require_budget(self.epsilon, self.delta, options=("--budget-eps", "--budget-delta"))

    def keeps(self, other: PrivacyBudget) -> bool:
        """Whether everything within this ceiling is also within the other one."""
        return self.epsilon <= other.epsilon and self.delta <= other.delta


_UNBOUND: Final = PrivacyBudget(sys.float_info.max, 1 - 2**-53)


@dataclass(frozen=True)
class Ledger:
    """All releases from one embedding, in order, and its ceiling if there is one.

    Attributes:
        entries: the releases.
        ceiling: the ceiling on their total, if any.
        parts: for a merged embedding, its parts' ledgers at the time of the merge. A record is in
            only one part, so it is touched by that part's releases and by `entries`, not by the
            other parts' releases.

    Raises:
        SchemaError: parts are nested too deeply, or too many have a ceiling.
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
    def is_merged(self) -> bool:
        """Whether it is that of several embeddings' sum. A single part only has its own ceiling."""
        return len(self.parts) > 1 or any(part.is_merged for part in self.parts)

    @property
    def all_entries(self) -> tuple[Entry, ...]:
        """The releases from the parts, then those from the whole."""
        return (*(entry for part in self.parts for entry in part.all_entries), *self.entries)

    def with_entry(self, entry: Entry) -> Ledger:
        """The ledger with one more release."""
        return replace(self, entries=(*self.entries, entry))

    def with_later(self, later: Ledger, *, of_part: bool = False) -> Ledger:
        """The ledger with the releases and ceilings of another.

        Releases from parts count as releases from the whole, which may overstate but never
        understates the loss. If a part of this ledger has a release already, that proves nothing,
        because the release may have touched more than this part. Neither does its name: whoever
        supplied a part may have put another release under it. Ceilings count in the same way: one
        that was set for a part binds the whole. That a part of this ledger has one as low proves
        nothing either: others of its parts have spent something, too, of which the part's ceiling
        knows nothing. An empty ledger becomes the other one.

        Args:
            later: the other one.
            of_part: whether it is the ledger of a part of this one's embedding. Then a ceiling that
                is as low as one here adds nothing, because that binds all releases which the part
                knows of: they count as releases from the whole now.

        Guarantee:
            Every release of the other ledger is among those of the whole, with its full privacy
            loss. (docs/privacy/proofs.md, statement 11.)
        """
        if not self.all_entries and not self.parts:
            return later if self.ceiling is None else later._with_ceiling(self.ceiling)
        new = tuple(dict.fromkeys(e for e in later.all_entries if e not in self.entries))
        rest = self._without(frozenset(new))
        joint = replace(rest, entries=(*rest.entries, *new))
        here = tuple(joint._all_ceilings()) if of_part else ()
        for ceiling in later._all_ceilings():
            if not any(own.keeps(ceiling) for own in here):
                joint = joint._with_ceiling(ceiling)
        return joint

    def _all_ceilings(self) -> Iterator[PrivacyBudget]:
        """Its own ceiling and those of its parts."""
        if self.ceiling is not None:
            yield self.ceiling
        for part in self.parts:
            yield from part._all_ceilings()

    def _with_ceiling(self, ceiling: PrivacyBudget) -> Ledger:
        """The ledger, bound by one more ceiling."""
        whole = self
        while whole.ceiling is not None:  # a single part is the whole again
            if whole.ceiling.keeps(ceiling):
                return self
            if len(whole.parts) != 1:
                break
            (whole,) = whole.parts
        if self.ceiling is None or ceiling.keeps(self.ceiling):
            return replace(self, ceiling=ceiling)
        return Ledger(ceiling=ceiling, parts=(self,))  # neither ceiling implies the other

    def with_earlier(self, spent: tuple[Entry, ...]) -> Ledger:
        """The ledger with releases that were used in making its embedding.

        Args:
            spent: entries of releases from the same records; those already here or in the parts are
                not counted twice. An entry of the whole with the same ID stays unchanged.
        """
        known = {entry.release_id: entry for entry in self.entries}
        first = tuple(known.get(entry.release_id, entry) for entry in spent)
        rest = self._without(frozenset(first))
        return replace(rest, entries=(*first, *rest.entries))

    def with_copy(self, copy: Ledger) -> Ledger:
        """The ledger with the releases of a copy of its embedding, which has the same parts."""
        alike = copy.parts == self.parts
        return self.with_later(replace(copy, parts=()) if alike else copy)

    def covers(self, other: Ledger) -> bool:
        """Whether it includes everything in another ledger, whose parts have the same order."""
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
