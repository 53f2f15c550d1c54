"""Conditions on rows: evaluating them, and deciding whether they can hold.

As in SQL, a comparison with a missing value neither holds nor fails. A row keeps a rule unless it
fails, and matches a requested condition only if it holds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...display.representations import RedactedRepr
from ..columns.codes import MISSING
from ..columns.column import Column
from ..columns.kinds import Missing

_EXACT: Final = 2.0**-40
_EXACT_FLOAT32: Final = 2.0**-20
"""Sums count as equal if they differ by less, relative to the largest of their terms."""

Values = Mapping[str, NDArray[Any]]
"""Maps a column's name to its values: numbers (float64, NaN where missing) or codes (int64)."""
Columns = Mapping[str, Column]


@dataclass(frozen=True, repr=False)
class Truth(RedactedRepr):
    """The rows for which a condition is true and false, bool (n,); unknown if neither."""

    holds: NDArray[np.bool_]
    fails: NDArray[np.bool_]


class Condition(ABC):
    """A condition on a row."""

    @property
    @abstractmethod
    def names(self) -> frozenset[str]:
        """The columns that it mentions."""

    @property
    def size(self) -> int:
        """The number of comparisons in it."""
        return 1

    @property
    @abstractmethod
    def negated(self) -> Condition:
        """The condition that holds where it fails, and fails where it holds."""

    @abstractmethod
    def truth(self, values: Values) -> Truth:
        """The rows for which it is true and false."""

    @abstractmethod
    def possible(self, columns: Columns, codes: Mapping[str, int]) -> bool:
        """Whether some values between the bounds may fulfil it, judging each comparison by itself.

        Args:
            columns: the table's columns, by name.
            codes: the codes of columns whose category is known.
        """


class Relation(Enum):
    """How a sum compares with 0."""

    AT_MOST = "<="
    BELOW = "<"
    EQUAL = "="
    UNEQUAL = "!="


@dataclass(frozen=True)
class Comparison(Condition):
    """A sum of multiples of numeric columns, compared with 0.

    Attributes:
        terms: names of columns, each once, and their factors.
        constant: the constant term.
        relation: the relation of the sum to 0.
        exact: the sum counts as 0 if it is smaller than this, relative to its terms; 0 for
            integers.
    """

    terms: tuple[tuple[str, float], ...]
    constant: float
    relation: Relation
    exact: float

    @property
    def names(self) -> frozenset[str]:
        """See `Condition`."""
        return frozenset(name for name, _ in self.terms)

    @property
    def negated(self) -> Condition:
        """See `Condition`."""
        if self.relation in (Relation.EQUAL, Relation.UNEQUAL):
            equal = self.relation is Relation.EQUAL
            return replace(self, relation=Relation.UNEQUAL if equal else Relation.EQUAL)
        return Comparison(
            tuple((name, -factor) for name, factor in self.terms),
            -self.constant,
            Relation.BELOW if self.relation is Relation.AT_MOST else Relation.AT_MOST,
            self.exact,
        )

    def sums(self, values: Values) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The sum in each row, float64 (n,), and the tolerance within which it counts as 0."""
        parts = [factor * values[name] for name, factor in self.terms]
        parts.append(np.full_like(parts[0], self.constant))
        slack: NDArray[np.float64] = self.exact * np.max(np.abs(parts), axis=0)
        return np.sum(parts, axis=0), slack

    def truth(self, values: Values) -> Truth:
        """See `Condition`."""
        total, slack = self.sums(values)
        known = ~np.isnan(total)
        match self.relation:
            case Relation.AT_MOST:
                holds = total <= slack
            case Relation.BELOW:
                holds = total < -slack
            case Relation.EQUAL:
                holds = np.abs(total) <= slack
            case Relation.UNEQUAL:
                holds = np.abs(total) > slack
        return Truth(known & holds, known & ~holds)

    def possible(self, columns: Columns, codes: Mapping[str, int]) -> bool:
        """See `Condition`."""
        least = most = self.constant
        largest = abs(self.constant)
        for name, factor in self.terms:
            ends = [factor * bound for bound in columns[name].bounds]
            least, most = least + min(ends), most + max(ends)
            largest = max(largest, *map(abs, ends))
        slack = self.exact * largest  # as in `sums`, or more
        match self.relation:
            case Relation.AT_MOST:
                return least <= slack
            case Relation.BELOW:
                return least < 0
            case Relation.EQUAL:
                return -slack <= most and least <= slack
            case Relation.UNEQUAL:
                return least < most or least != 0


@dataclass(frozen=True)
class Among(Condition):
    """A category is one of several, or none of them.

    Attributes:
        name: the column's name.
        codes: the codes of the categories as written, which may be few of many.
        inside: whether the category must be one of them.
    """

    name: str
    codes: tuple[int, ...] | range
    inside: bool = True

    @property
    def names(self) -> frozenset[str]:
        """See `Condition`."""
        return frozenset({self.name})

    @property
    def negated(self) -> Condition:
        """See `Condition`."""
        return replace(self, inside=not self.inside)

    def allowed(self, column: Column) -> NDArray[np.bool_]:
        """Whether each category of the column fulfils it, bool (categories,)."""
        fine: NDArray[np.bool_] = np.isin(np.arange(len(column.categories)), self.codes)
        return fine if self.inside else ~fine

    def truth(self, values: Values) -> Truth:
        """See `Condition`."""
        found = values[self.name]
        known, fine = found != MISSING, np.isin(found, self.codes) == self.inside
        return Truth(known & fine, known & ~fine)

    def possible(self, columns: Columns, codes: Mapping[str, int]) -> bool:
        """See `Condition`."""
        if self.name in codes:
            return (codes[self.name] in self.codes) == self.inside
        return (
            len(self.codes) > 0
            if self.inside
            else (len(self.codes) < len(columns[self.name].categories))
        )


@dataclass(frozen=True)
class IsMissing(Condition):
    """A value is missing, or is not.

    Attributes:
        name: the column's name.
        wanted: whether it must be missing.
    """

    name: str
    wanted: bool

    @property
    def names(self) -> frozenset[str]:
        """See `Condition`."""
        return frozenset({self.name})

    @property
    def negated(self) -> Condition:
        """See `Condition`."""
        return IsMissing(self.name, not self.wanted)

    def truth(self, values: Values) -> Truth:
        """See `Condition`."""
        found = is_missing(values[self.name])
        return Truth(found == self.wanted, found != self.wanted)

    def possible(self, columns: Columns, codes: Mapping[str, int]) -> bool:
        """See `Condition`."""
        return not self.wanted or columns[self.name].missing is not Missing.REFUSED


@dataclass(frozen=True)
class _Several(Condition):
    """Several conditions combined."""

    parts: tuple[Condition, ...]

    @property
    def names(self) -> frozenset[str]:
        """See `Condition`."""
        return frozenset().union(*(part.names for part in self.parts))

    @property
    def size(self) -> int:
        """See `Condition`."""
        return sum(part.size for part in self.parts)


@dataclass(frozen=True)
class All(_Several):
    """All of several conditions."""

    @property
    def negated(self) -> Condition:
        """See `Condition`."""
        return Either(tuple(part.negated for part in self.parts))

    def truth(self, values: Values) -> Truth:
        """See `Condition`."""
        found = [part.truth(values) for part in self.parts]
        return Truth(
            np.logical_and.reduce([truth.holds for truth in found]),
            np.logical_or.reduce([truth.fails for truth in found]),
        )

    def possible(self, columns: Columns, codes: Mapping[str, int]) -> bool:
        """See `Condition`."""
        return all(part.possible(columns, codes) for part in self.parts)


@dataclass(frozen=True)
class Either(_Several):
    """At least one of several conditions."""

    @property
    def negated(self) -> Condition:
        """See `Condition`."""
        return All(tuple(part.negated for part in self.parts))

    def truth(self, values: Values) -> Truth:
        """See `Condition`."""
        found = [part.truth(values) for part in self.parts]
        return Truth(
            np.logical_or.reduce([truth.holds for truth in found]),
            np.logical_and.reduce([truth.fails for truth in found]),
        )

    def possible(self, columns: Columns, codes: Mapping[str, int]) -> bool:
        """See `Condition`."""
        return any(part.possible(columns, codes) for part in self.parts)


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values of a column, numbers or codes, are missing."""
    missing: NDArray[np.bool_] = (
        np.isnan(values) if values.dtype == np.float64 else values == MISSING
    )
    return missing


def exactness(columns: list[Column], factors: list[float], constant: float) -> float:
    """The precision of a comparison of sums: see `Comparison.exact`."""
    if any(column.dtype == "float32" for column in columns):
        return _EXACT_FLOAT32
    whole = all(column.granule is not None and column.granule.digits == 0 for column in columns)
    return 0.0 if whole and all(number.is_integer() for number in (*factors, constant)) else _EXACT
