"""A column of a table: what is publicly known of its values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Final

import numpy as np

from ..errors import SchemaError
from .classes import MOST_CLASSES
from .origin import Origin

LARGEST: Final = 2.0**53
_LONGEST_NAME: Final = 1_000
NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
"""How categories are written that are numbers; Arrow reads all of these."""
_LARGEST_FLOAT32: Final = 3.4e38
DTYPES: Final = (
    "string", "bool", "float32", "float64",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
)  # fmt: skip
"""How a column may be stored, in Arrow's names ("string" stands for all kinds of texts)."""


class ColumnKind(Enum):
    """What the values of a column mean."""

    CONTINUOUS = "continuous"
    """Real numbers between two bounds."""
    INTEGER = "integer"
    """Whole numbers between two bounds, both included."""
    ORDINAL = "ordinal"
    """One of several categories that have an order: the one in which they are listed."""
    CATEGORICAL = "categorical"
    """One of several categories without an order."""
    BOOLEAN = "boolean"
    """One of two categories: what stands for false, then what stands for true."""

    @property
    def numeric(self) -> bool:
        """Whether values are numbers between bounds; otherwise they are categories."""
        return self in (ColumnKind.CONTINUOUS, ColumnKind.INTEGER)


class Transform(Enum):
    """On which scale a numeric column is looked at."""

    NONE = "none"
    LOG1P = "log1p"
    """log(1 + x): for amounts from 0 that spread over orders of magnitude."""
    SIGNED_LOG = "signed-log"
    """sign(x) log(1 + |x|): the same for amounts of either sign."""


class Missing(Enum):
    """What to do with a value that is not there."""

    REFUSED = "refused"
    """It is an error."""
    CATEGORY = "category"
    """It counts as one more category (of ordinal, categorical and boolean columns)."""
    INDICATOR = "indicator"
    """A further value of the record says so (of numeric columns)."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: in the header.
        kind: what its values mean.
        dtype: how the source stores it, one of `DTYPES`; generated tables store it likewise.
        lower: of a numeric column: smallest value; what is below is clipped. None otherwise.
        upper: likewise, the largest value. Whole numbers (int) in a column of integers.
        categories: of the others: all categories, as texts, in order; two if boolean.
        other: the category that values which are not listed count as; None if they are refused.
        transform: of a numeric column: the scale on which it is looked at.
        missing: what to do with a value that is not there.
        origin: where the bounds or categories come from; from the data, all but the name does.
        kind_origin: of a column whose bounds were found with differential privacy, where its kind,
            type, transform, and what is done with missing values come from: `DECLARED`, or
            `FROM_DATA`.
    """

    name: str
    kind: ColumnKind
    dtype: str
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] = ()
    other: str | None = None
    transform: Transform = Transform.NONE
    missing: Missing = Missing.REFUSED
    origin: Origin = Origin.DECLARED
    kind_origin: Origin = Origin.DECLARED

    @classmethod
    def integer(
        cls,
        name: str,
        lower: int,
        upper: int,
        *,
        dtype: str = "int64",
        transform: str = "none",
        missing: bool = False,
    ) -> Column:
        """A column of whole numbers.

        Args:
            name: in the header.
            lower: smallest value that there could be, in any such table.
            upper: likewise, the largest.
            dtype: how it is stored.
            transform: "log1p" or "signed-log", for amounts that spread over orders of magnitude.
            missing: whether values may be missing.

        Raises:
            SchemaError: something of this is impossible.
        """
        return cls._numeric(ColumnKind.INTEGER, name, lower, upper, dtype, transform, missing)

    @classmethod
    def continuous(
        cls,
        name: str,
        lower: float,
        upper: float,
        *,
        dtype: str = "float64",
        transform: str = "none",
        missing: bool = False,
    ) -> Column:
        """A column of real numbers; arguments as of `integer`.

        Raises:
            SchemaError: something of this is impossible.
        """
        low, high = (float(bound) if type(bound) is int else bound for bound in (lower, upper))
        return cls._numeric(ColumnKind.CONTINUOUS, name, low, high, dtype, transform, missing)

    @classmethod
    def categorical(
        cls,
        name: str,
        categories: Iterable[str],
        *,
        ordered: bool = False,
        dtype: str = "string",
        other: str | None = None,
        missing: bool = False,
    ) -> Column:
        """A column of categories.

        Args:
            name: in the header.
            categories: all that there could be, in any such table, as texts.
            ordered: whether they have an order, the one in which they are listed.
            dtype: how it is stored.
            other: the category that values which are not listed count as; they are refused if None.
            missing: whether values may be missing.

        Raises:
            SchemaError: something of this is impossible.
        """
        kind = ColumnKind.ORDINAL if ordered else ColumnKind.CATEGORICAL
        return cls._of_choices(kind, name, categories, dtype, other, missing)

    @classmethod
    def boolean(
        cls,
        name: str,
        categories: Iterable[str] = ("false", "true"),
        *,
        dtype: str | None = None,
        missing: bool = False,
    ) -> Column:
        """A column of two categories.

        Args:
            name: in the header.
            categories: what stands for false, then what stands for true.
            dtype: how it is stored; if None "bool", or "string" where the categories are others.
            missing: whether values may be missing.

        Raises:
            SchemaError: something of this is impossible.
        """
        found = _texts(name, categories)
        stored = dtype or ("bool" if found == ("false", "true") else "string")
        return cls._of_choices(ColumnKind.BOOLEAN, name, found, stored, None, missing)

    @classmethod
    def _numeric(
        cls, kind: ColumnKind, name: str, lower: float, upper: float, dtype: str, transform: str,
        missing: bool,
    ) -> Column:  # fmt: skip
        scale = _one_of(Transform, transform, f"column {name!r}: transform")
        policy = Missing.INDICATOR if missing else Missing.REFUSED
        assert isinstance(scale, Transform)
        return cls(name, kind, dtype, lower, upper, transform=scale, missing=policy)

    @classmethod
    def _of_choices(
        cls, kind: ColumnKind, name: str, categories: Iterable[str], dtype: str, other: str | None,
        missing: bool,
    ) -> Column:  # fmt: skip
        policy = Missing.CATEGORY if missing else Missing.REFUSED
        found = _texts(name, categories)
        return cls(name, kind, dtype, categories=found, other=other, missing=policy)

    def __post_init__(self) -> None:
        require_name(self.name, "a column")
        if self.dtype not in DTYPES:
            raise self._wrong(f"dtype {self.dtype!r}: known are {', '.join(DTYPES)}")
        if self.kind_origin is not Origin.DECLARED and (
            self.origin is not Origin.PRIVATE or self.kind_origin is not Origin.FROM_DATA
        ):
            raise self._wrong('kind_origin is "from-data", of a column of origin "private"')
        if self.kind.numeric:
            self._require_bounds()
        else:
            self._require_categories()

    def _wrong(self, what: str, value: str | None = None) -> SchemaError:
        """What is wrong; bounds and categories are a value, for a draft has them from records."""
        return SchemaError(f"column {self.name!r}: {what}", value)

    def _require_bounds(self) -> None:
        lower, upper = self.lower, self.upper
        if lower is None or upper is None:
            raise self._wrong("a numeric column has the bounds lower and upper")
        if self.categories or self.other is not None:
            raise self._wrong("a numeric column has bounds, not categories")
        if not -LARGEST <= lower < upper <= LARGEST:
            raise self._wrong(
                "its bounds have to go up, between -2^53 and 2^53", f"{lower} to {upper}"
            )
        if self.kind is ColumnKind.INTEGER and not (type(lower) is type(upper) is int):
            raise self._wrong("the bounds of integers are integers")
        if self.kind is ColumnKind.CONTINUOUS and not (type(lower) is type(upper) is float):
            raise self._wrong("the bounds of continuous values are floats")
        if self.transform is Transform.LOG1P and lower < 0:
            raise self._wrong("log1p needs a lower bound of at least 0; signed-log does not")
        if self.missing is Missing.CATEGORY:
            raise self._wrong('a numeric column has missing = "indicator" or "refused"')
        if self.dtype in ("string", "bool"):
            raise self._wrong(f"dtype {self.dtype} does not hold numbers")
        if self.kind is ColumnKind.CONTINUOUS and "int" in self.dtype:
            raise self._wrong(f"dtype {self.dtype} holds integers: its kind is integer")
        if self.kind is ColumnKind.INTEGER and "int" in self.dtype:
            least, most = range_of_integers(self.dtype)
            if lower < least or upper > most:
                raise self._wrong(
                    f"dtype {self.dtype} does not hold its bounds", f"{lower} to {upper}"
                )

    def _require_categories(self) -> None:
        if self.lower is not None or self.upper is not None:
            raise self._wrong("a column of categories has no bounds")
        if self.transform is not Transform.NONE:
            raise self._wrong("a column of categories has no transform")
        if not 1 <= len(self.categories) <= MOST_CLASSES:
            raise self._wrong(f"{len(self.categories)} categories: 1 to {MOST_CLASSES} can be")
        if len(set(self.categories)) != len(self.categories):
            raise self._wrong("two categories have the same name")
        for category in self.categories:
            require_name(category, f"column {self.name!r}: a category", empty=True)
        if self.kind is ColumnKind.BOOLEAN and len(self.categories) != 2:
            raise self._wrong("a boolean column has two categories: false first, then true")
        if self.other is not None and self.other not in self.categories:
            raise self._wrong(f"other = {self.other!r} is not among its categories")
        if self.missing is Missing.INDICATOR:
            raise self._wrong('a column of categories has missing = "category" or "refused"')
        if self.dtype == "bool" and self.categories not in (("false", "true"), ("true", "false")):
            raise self._wrong("the categories of dtype bool are false and true")
        if self.dtype not in ("string", "bool"):
            for category in self.categories:
                if _number(category, self.dtype) is None:
                    raise self._wrong(
                        f"dtype {self.dtype} does not hold a category: write it like -12 or 0.5, "
                        "or say string",
                        category,
                    )
            if len(set(self.numbers)) != len(self.numbers):
                raise self._wrong("two categories are the same number")

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers that its categories are, as its dtype holds them; none if it holds texts."""
        found = (_number(category, self.dtype) for category in self.categories)
        return tuple(number for number in found if number is not None)

    @property
    def choices(self) -> int:
        """Number of categories, that of missing values included; 0 of a numeric column."""
        if self.kind.numeric:
            return 0
        return len(self.categories) + (self.missing is Missing.CATEGORY)

    def to_json(self) -> dict[str, Any]:
        """A plain mapping that `from_json` reads back; what has its default value is left out."""
        document: dict[str, Any] = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if value == entry.default and entry.name != "origin":  # which is always said
                continue
            if isinstance(value, Enum):
                value = value.value
            document[entry.name] = list(value) if isinstance(value, tuple) else value
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Column:
        """Read what `to_json` wrote.

        Raises:
            SchemaError: something is missing, unknown, of the wrong type, or out of range.
        """
        if not isinstance(document, Mapping):
            raise SchemaError("a column is described by a table of entries")
        name = document.get("name")
        where = f"column {name!r}" if isinstance(name, str) else "a column without a name"
        unknown = set(document) - {entry.name for entry in fields(cls)}
        if unknown:
            raise SchemaError(f"{where}: unknown: {', '.join(sorted(map(str, unknown)))}")
        values = dict(document)
        for entry, kind in _ENUMS.items():
            if entry in values:
                values[entry] = _one_of(kind, values[entry], f"{where}: {entry}")
        for entry in ("name", "kind", "dtype"):
            if entry not in values:
                raise SchemaError(f"{where}: {entry} is missing")
        for entry in ("name", "dtype", "other"):
            if not isinstance(values.get(entry, ""), str):
                raise SchemaError(f"{where}: {entry} is a text")
        for entry in ("lower", "upper"):
            bound = values.get(entry, 0)
            if isinstance(bound, bool) or not isinstance(bound, int | float):
                raise SchemaError(f"{where}: {entry} is a number")
        categories = values.get("categories", [])
        if not isinstance(categories, list) or not all(isinstance(c, str) for c in categories):
            raise SchemaError(f'{where}: categories are a list of texts, as in ["yes", "no"]')
        values["categories"] = tuple(categories)
        return cls(**values)


def _texts(name: str, categories: Iterable[str]) -> tuple[str, ...]:
    """Categories that somebody has listed, as texts."""
    found = () if isinstance(categories, str) else tuple(categories)
    if not found or not all(isinstance(text, str) for text in found):
        raise SchemaError(f'column {name!r}: categories are texts, as in ["yes", "no"]')
    return found


_ENUMS: Final[dict[str, type[Enum]]] = {
    "kind": ColumnKind,
    "transform": Transform,
    "missing": Missing,
    "origin": Origin,
    "kind_origin": Origin,
}


def _number(text: str, dtype: str) -> float | None:
    """The number that a category is, if its dtype holds it and Arrow reads it as one."""
    if dtype in ("string", "bool") or not NUMBER.fullmatch(text):
        return None
    if "int" not in dtype:
        number = float(text)
        if dtype == "float32":
            number = float(np.float32(number)) if abs(number) < _LARGEST_FLOAT32 else math.inf
        return number if math.isfinite(number) else None
    if not text.lstrip("-").isdigit():
        return None
    least, most = range_of_integers(dtype)
    return int(text) if least <= int(text) <= most else None


def range_of_integers(dtype: str) -> tuple[int, int]:
    """The smallest and the largest number of a type such as "uint8"."""
    bits = int(dtype.lstrip("uint"))
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _one_of(kind: type[Enum], value: object, where: str) -> Enum:
    try:
        return kind(value)
    except ValueError as error:
        known = ", ".join(member.value for member in kind)
        raise SchemaError(f"{where} = {value!r}: known are {known}") from error


def require_name(name: str, what: str, *, empty: bool = False) -> None:
    """Check that a name, or a text of a schema, is text and not too long.

    Args:
        name: of `what`.
        what: it is the name of, for the message.
        empty: whether it may be empty.

    Raises:
        SchemaError: it is not.
    """
    if not (name or empty) or len(name) > _LONGEST_NAME:
        raise SchemaError(f"{what} has a name of 1 to {_LONGEST_NAME} characters")
    if any(0xD800 <= ord(character) <= 0xDFFF or character == "\0" for character in name):
        raise SchemaError(f"{what} has a name that is no text")
