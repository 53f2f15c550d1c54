"""What is publicly known of a table: its columns, their bounds and categories.

The owner writes it down in `schema.toml` (`dpntk.common.schema_file`). It travels with the
embedding and the release as JSON, and says what a generated table looks like.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import cached_property
from typing import Any, Final

from .errors import SchemaError
from .schema import MOST_CLASSES, Origin, some_classes

BINS: Final = 20
"""Soft bins of a numeric column, unless it is of integers that are fewer."""
LEVELS: Final = 255
MOST_COLUMNS: Final = 2_000
MOST_INPUTS: Final = 50_000
NO_LABEL: Final = "all"
"""Name of the one class of a table without a label."""
_LARGEST: Final = 2.0**53
_LONGEST_NAME: Final = 1_000
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
        origin: where the bounds or categories come from.
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

    def __post_init__(self) -> None:
        _require_name(self.name, "a column")
        if self.dtype not in DTYPES:
            raise self._wrong(f"dtype {self.dtype!r}: known are {', '.join(DTYPES)}")
        if self.kind.numeric:
            self._require_bounds()
        else:
            self._require_categories()

    def _wrong(self, what: str) -> SchemaError:
        return SchemaError(f"column {self.name!r}: {what}")

    def _require_bounds(self) -> None:
        lower, upper = self.lower, self.upper
        if lower is None or upper is None:
            raise self._wrong("a numeric column has the bounds lower and upper")
        if self.categories or self.other is not None:
            raise self._wrong("a numeric column has bounds, not categories")
        if not -_LARGEST <= lower < upper <= _LARGEST:
            raise self._wrong(f"bounds {lower} to {upper}: they go up, between -2^53 and 2^53")
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
            bits = int(self.dtype.lstrip("uint"))
            unsigned = self.dtype.startswith("u")
            most = 2 ** (bits if unsigned else bits - 1) - 1
            if lower < (0 if unsigned else -most - 1) or upper > most:
                raise self._wrong(f"dtype {self.dtype} does not hold {lower} to {upper}")

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
            _require_name(category, f"column {self.name!r}: a category", empty=True)
        if self.kind is ColumnKind.BOOLEAN and len(self.categories) != 2:
            raise self._wrong("a boolean column has two categories: false first, then true")
        if self.other is not None and self.other not in self.categories:
            raise self._wrong(f"other = {self.other!r} is not among its categories")
        if self.missing is Missing.INDICATOR:
            raise self._wrong('a column of categories has missing = "category" or "refused"')
        if self.dtype == "bool" and self.categories not in (("false", "true"), ("true", "false")):
            raise self._wrong("the categories of dtype bool are false and true")
        if self.dtype not in ("string", "bool"):
            numbers = [_number(category, self.dtype) for category in self.categories]
            if None in numbers:
                raise self._wrong(f"dtype {self.dtype} does not hold all of its categories")
            if len(set(numbers)) != len(numbers):
                raise self._wrong("two categories are the same number")

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
            if value == entry.default and entry.name != "origin":
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


_ENUMS: Final[dict[str, type[Enum]]] = {
    "kind": ColumnKind,
    "transform": Transform,
    "missing": Missing,
    "origin": Origin,
}


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV file is written; of no meaning for Parquet.

    Attributes:
        separator: one character between values.
        encoding: of the texts, such as "utf-8" or "latin-1".
        missing: the texts that stand for a value that is not there; the first one is written.
    """

    separator: str = ","
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ("",)

    def __post_init__(self) -> None:
        if len(self.separator) != 1 or self.separator in '"\r\n' or ord(self.separator) > 127:
            raise SchemaError(f"separator {self.separator!r}: it is one character, such as ;")
        try:
            "".encode(self.encoding)
        except (LookupError, UnicodeError, ValueError) as error:
            raise SchemaError(f"encoding {self.encoding!r}: there is none of that name") from error
        if not self.missing or len(self.missing) > 100:
            raise SchemaError("missing: name the texts that stand for missing values")
        for text in self.missing:
            _require_name(text, "a missing value", empty=True)

    def to_json(self) -> dict[str, Any]:
        """A plain mapping that `from_json` reads back."""
        return {
            "separator": self.separator,
            "encoding": self.encoding,
            "missing": list(self.missing),
        }

    @classmethod
    def from_json(cls, document: object) -> CsvFormat:
        """Read what `to_json` wrote.

        Raises:
            SchemaError: something is unknown, of the wrong type, or out of range.
        """
        if not isinstance(document, Mapping) or set(document) - {f.name for f in fields(cls)}:
            raise SchemaError("csv: it has the entries separator, encoding and missing")
        values = dict(document)
        missing = values.pop("missing", [""])
        if not isinstance(missing, list) or not all(isinstance(text, str) for text in missing):
            raise SchemaError("csv: missing is a list of texts")
        if not all(isinstance(text, str) for text in values.values()):
            raise SchemaError("csv: separator and encoding are texts")
        return cls(**values, missing=tuple(missing))


@dataclass(frozen=True)
class TableSchema:
    """A table with mixed columns.

    Attributes:
        columns: those that are used, the label among them, in the order of the source.
        label: name of the column that tells a record's class; None if there is none.
        left_out: names of columns of the source that are not used and not generated.
        bins: soft bins of a numeric column; see `dpntk.common.encoding`.
        csv: how a CSV file is written.
    """

    columns: tuple[Column, ...]
    label: str | None = None
    left_out: tuple[str, ...] = ()
    bins: int = BINS
    csv: CsvFormat = field(default_factory=CsvFormat)

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns] + list(self.left_out)
        if not 1 <= len(self.columns) <= MOST_COLUMNS or len(names) > 2 * MOST_COLUMNS:
            raise SchemaError(f"{len(self.columns)} columns: 1 to {MOST_COLUMNS} are supported")
        for name in self.left_out:
            _require_name(name, "a column that is left out")
        repeated = [name for name, times in Counter(names).items() if times > 1]
        if repeated:
            raise SchemaError(f"column {repeated[0]!r} is there twice")
        if not 2 <= self.bins <= 100:
            raise SchemaError(f"{self.bins} bins: 2 to 100 are supported")
        if self.label is not None:
            label = next((c for c in self.columns if c.name == self.label), None)
            if label is None:
                raise SchemaError(f"label {self.label!r}: there is no column of that name")
            if label.kind.numeric:
                raise SchemaError(
                    f"label {self.label!r}: its column is {label.kind.value}, a label is "
                    "categorical, ordinal or boolean"
                )
            if len(label.categories) < 2:
                raise SchemaError(
                    f"label {self.label!r}: one class tells nothing: list all categories that "
                    "there could be, or leave the label out"
                )
            if label.missing is not Missing.REFUSED:
                raise SchemaError(f"label {self.label!r}: a label cannot be missing")
        if not self.features:
            raise SchemaError("there is no column but the label")
        for column in self.columns:
            try:
                "".join((column.name, *column.categories)).encode(self.csv.encoding)
            except UnicodeError as error:
                raise SchemaError(
                    f"column {column.name!r}: {self.csv.encoding} cannot write its name or one of "
                    "its categories: choose another encoding"
                ) from error
        if self.inputs > MOST_INPUTS:
            raise SchemaError(
                f"records have {self.inputs} values when encoded, at most {MOST_INPUTS} are "
                "supported: leave columns with many categories out, or list fewer and name an other"
            )

    @cached_property
    def features(self) -> tuple[Column, ...]:
        """All columns but the label."""
        return tuple(column for column in self.columns if column.name != self.label)

    @cached_property
    def label_column(self) -> Column | None:
        """The column that tells a record's class."""
        return next((column for column in self.columns if column.name == self.label), None)

    @property
    def classes(self) -> tuple[str, ...]:
        """Name of every class: the label's categories, or one class if there is no label."""
        return (NO_LABEL,) if self.label_column is None else self.label_column.categories

    def knots(self, column: Column) -> int:
        """At how many values a column has a soft bin; 0 if it is not numeric.

        Integers that are no more than `bins`, on no other scale, have one bin each.
        """
        if column.lower is None or column.upper is None:
            return 0
        if column.kind is ColumnKind.INTEGER and column.transform is Transform.NONE:
            return int(min(self.bins, column.upper - column.lower + 1))
        return self.bins

    def width(self, column: Column) -> int:
        """How many values of an encoded record stand for a column (`dpntk.common.encoding`)."""
        if column.kind.numeric:
            return 1 + self.knots(column) + (column.missing is Missing.INDICATOR)
        return column.choices + (column.kind is ColumnKind.ORDINAL)

    @cached_property
    def inputs(self) -> int:
        """Number of values in an encoded record."""
        return sum(map(self.width, self.features))

    @property
    def levels(self) -> int:
        """Encoded records hold integers 0..levels, which stand for the values 0..1."""
        return LEVELS

    @property
    def from_data(self) -> tuple[str, ...]:
        """The pieces that were looked up in the records and so are outside the guarantee."""
        names = [column.name for column in self.columns if column.origin is Origin.FROM_DATA]
        return (f"bounds and categories of {', '.join(names)}",) if names else ()

    @property
    def known(self) -> tuple[str, ...]:
        """What is taken as public, in words."""
        return ("names, bounds and categories of the columns",)

    @property
    def summary(self) -> str:
        """What the records are, in words."""
        classes = "" if self.label is None else f", {self.label} in {some_classes(self.classes)}"
        return f"{self.unit}{classes}"

    @property
    def unit(self) -> str:
        """What one speaks of in the plural."""
        return f"rows of {len(self.columns)} columns"

    def to_json(self) -> dict[str, Any]:
        """A plain mapping that `from_json` reads back."""
        return {
            "kind": "table",
            "columns": [column.to_json() for column in self.columns],
            "label": self.label,
            "left_out": list(self.left_out),
            "bins": self.bins,
            "csv": self.csv.to_json(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TableSchema:
        """Read what `to_json` wrote.

        Raises:
            SchemaError: something is missing, of the wrong type, or out of range.
        """
        schema = cls.of_entries({name: document[name] for name in document if name != "kind"})
        if schema.to_json() != dict(document):
            raise SchemaError("not a schema that this dpntk reads: unknown entries")
        return schema

    @classmethod
    def of_entries(cls, document: Mapping[str, Any]) -> TableSchema:
        """Read a mapping in which what has its default value may be left out.

        Raises:
            SchemaError: something is missing, unknown, of the wrong type, or out of range.
        """
        known = {entry.name for entry in fields(cls)}
        if set(document) - known:
            raise SchemaError(f"unknown: {', '.join(sorted(set(document) - known))}")
        columns, left_out = document.get("columns"), document.get("left_out", [])
        label, bins = document.get("label"), document.get("bins", BINS)
        if not isinstance(columns, list) or len(columns) > MOST_COLUMNS:
            raise SchemaError(f"there must be a list of 1 to {MOST_COLUMNS} columns")
        if not isinstance(left_out, list) or not all(isinstance(name, str) for name in left_out):
            raise SchemaError("left_out is a list of columns' names")
        if not isinstance(label, str | None):
            raise SchemaError("label is a column's name")
        if type(bins) is not int:
            raise SchemaError("bins is a whole number")
        return cls(
            tuple(map(Column.from_json, columns)),
            label,
            tuple(left_out),
            bins,
            CsvFormat.from_json(document.get("csv", {})),
        )


def _number(text: str, dtype: str) -> float | None:
    """The number that a category is, if its dtype holds it."""
    try:
        if "int" not in dtype:
            return float(text) if math.isfinite(float(text)) else None
        number, bits = int(text), int(dtype.lstrip("uint"))
    except ValueError:
        return None
    unsigned = dtype.startswith("u")
    most = 2 ** (bits if unsigned else bits - 1) - 1
    return number if (0 if unsigned else -most - 1) <= number <= most else None


def _one_of(kind: type[Enum], value: object, where: str) -> Enum:
    try:
        return kind(value)
    except ValueError as error:
        known = ", ".join(member.value for member in kind)
        raise SchemaError(f"{where} = {value!r}: known are {known}") from error


def _require_name(name: str, what: str, *, empty: bool = False) -> None:
    if not (name or empty) or len(name) > _LONGEST_NAME:
        raise SchemaError(f"{what} has a name of 1 to {_LONGEST_NAME} characters")
    if any(0xD800 <= ord(character) <= 0xDFFF or character == "\0" for character in name):
        raise SchemaError(f"{what} has a name that is no text")
