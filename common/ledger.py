"""What has been spent: the record of every release that was made from an embedding."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from .adjacency import Adjacency
from .errors import BudgetError, SchemaError


@dataclass(frozen=True)
class Entry:
    """One release.

    Attributes:
        release_id: of the release.
        created: when, in UTC, ISO 8601.
        epsilon: that it promises.
        delta: that it promises.
        adjacency: under which it promises them.
        multiplier: standard deviation of its noise at sensitivity 1 under that adjacency.
        multiplier_replace_one: the same under replace-one, for adding up unlike releases.
    """

    release_id: str
    created: str
    epsilon: float
    delta: float
    adjacency: Adjacency
    multiplier: float
    multiplier_replace_one: float


@dataclass(frozen=True)
class Ceiling:
    """What all releases from an embedding together may spend, set when it was made.

    Attributes:
        epsilon: of the total.
        delta: at which the total's epsilon is taken.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise BudgetError(f"--budget-eps {self.epsilon:g}: epsilon must be a positive number")
        if not 0 < self.delta < 1:
            raise BudgetError(f"--budget-delta {self.delta:g}: delta must lie between 0 and 1")


@dataclass(frozen=True)
class Ledger:
    """All releases from one embedding, in order, and the ceiling if there is one."""

    entries: tuple[Entry, ...] = ()
    ceiling: Ceiling | None = None

    def with_entry(self, entry: Entry) -> Ledger:
        """The ledger with one more release."""
        return replace(self, entries=(*self.entries, entry))

    def to_json(self) -> dict[str, Any]:
        """A plain mapping that `from_json` reads back."""
        return {
            "entries": [
                {**asdict(entry), "adjacency": entry.adjacency.value} for entry in self.entries
            ],
            "ceiling": None if self.ceiling is None else asdict(self.ceiling),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Ledger:
        """Read what `to_json` wrote.

        Raises:
            SchemaError: it is no such document.
        """
        try:
            ledger = cls(
                entries=tuple(
                    Entry(**{**entry, "adjacency": Adjacency(entry["adjacency"])})
                    for entry in document["entries"]
                ),
                ceiling=None if document["ceiling"] is None else Ceiling(**document["ceiling"]),
            )
        except (KeyError, TypeError, ValueError, BudgetError) as error:
            raise SchemaError(f"the ledger cannot be read: {error!r}") from error
        # Without this, a damaged ledger could make what was spent look like nothing.
        numbers = [
            number
            for entry in document["entries"]
            for number in (entry["multiplier"], entry["multiplier_replace_one"])
        ]
        if not all(type(n) is float and math.isfinite(n) and n > 0 for n in numbers):
            raise SchemaError("the ledger holds impossible noise")
        return ledger
