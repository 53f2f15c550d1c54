"""A column of a table: what is publicly known of its values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...display.representations import BriefRepr
from ...errors import SchemaError
from ..classes import MOST_CLASSES
from ..names import require_name
from ..origin import Origin
from .dates import ISO_DATE, ISO_TIME, DateFormat, TimeUnit, iso_text, seconds_of
from .dtypes import (
    DATE_DTYPES,
    DTYPES,
    DURATION_DTYPES,
    LARGEST,
    number_of,
    range_of_integers,
)
from .durations import LONGEST, DurationFormat
from .entries import read_entries
from .granule import Granule, granule_of
from .kinds import ColumnKind, Missing, Transform

MOST_DECIMALS: Final = 15
MOST_VALUES: Final = 128
"""The most values of a numeric column that can be listed. Marginals have a cell for each."""
_FIRST: Final = seconds_of("0001-01-01")
_LAST: Final = seconds_of("9999-12-31T23:59:59")
_LAST_IN_NANOSECONDS: Final = seconds_of("2262-01-01")


@dataclass(frozen=True, repr=False)
class Column(BriefRepr):
    """A column of a table: what is publicly known about its values.

    Make one with `integer`, `continuous`, `categorical`, `boolean`, `date`, `datetime` or
    `duration` rather than from its fields.

    Example::

        Column.integer("age", 0, 120)
        Column.categorical("ward", ["medicine", "surgery"], missing=True)
        Column.datetime("seen", "2000-01-01", "2029-12-31T23:59:00", unit="minute")

    Attributes:
        name: the name in the header.
        kind: what its values mean.
        dtype: how the source stores it, one of `DTYPES`; generated tables store it in the same way.
        lower: smallest value of a numeric column, to which smaller ones are clipped; None for
            categories. It is a float for continuous values, otherwise an int: durations count
            steps, and dates and times count steps since the beginning of 1970.
        upper: largest value of a numeric column; see `lower`.
        categories: all categories of any other column, as texts, in order; two if boolean.
        other: the category that unlisted values count as; None if they are refused.
        transform: the scale of a numeric column.
        missing: how missing values are treated.
        origin: where the bounds or categories come from. If `FROM_DATA`, everything but the name
            comes from the data.
        kind_origin: where kind, type, transform and treatment of missing values come from, if the
            bounds were found with differential privacy: `DECLARED` or `FROM_DATA`.
        step: a number of which all integers or continuous values are multiples; if None, 1 or the
            type's own precision.
        decimals: number of decimal places of continuous values, in place of a step.
        values: all numbers that a numeric column can hold, in increasing order from `lower` to
            `upper`, if they are few and not in equal steps; others count as the nearest of them.
            Empty otherwise. They are floats for continuous values, otherwise ints.
        unit: the step to which times and durations are truncated; seconds if None.
        format: how dates, times and durations are written as texts (`dates.DateFormat`,
            `durations.DurationFormat`); as in ISO 8601 if empty.
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
    step: float | None = None
    decimals: int | None = None
    values: tuple[float, ...] = ()
    unit: TimeUnit | None = None
    format: str = ""

    @classmethod
    def integer(
        cls,
        name: str,
        lower: int,
        upper: int,
        *,
        dtype: str = "int64",
        transform: str = "none",
        values: Iterable[int] = (),
        missing: bool = False,
    ) -> Column:
        """A column of whole numbers.

        Args:
            name: its name in the header.
            lower: smallest possible value in any such table.
            upper: largest possible value in any such table.
            dtype: how it is stored.
            transform: "log1p" or "signed-log", for amounts that span orders of magnitude.
            values: all possible values, from `lower` to `upper`, if they are few and not in equal
                steps.
            missing: whether values may be missing.

        Raises:
            SchemaError: a value is impossible, or values contradict each other.
        """
        return cls._numeric(
            ColumnKind.INTEGER, name, lower, upper, missing,
            dtype=dtype, transform=transform, values=_listed(name, values, ColumnKind.INTEGER),
        )  # fmt: skip

    @classmethod
    def continuous(
        cls,
        name: str,
        lower: float,
        upper: float,
        *,
        dtype: str = "float64",
        transform: str = "none",
        decimals: int | None = None,
        values: Iterable[float] = (),
        missing: bool = False,
    ) -> Column:
        """A column of real numbers.

        Args:
            name: its name in the header.
            lower: smallest possible value in any such table.
            upper: largest possible value in any such table.
            dtype: how it is stored.
            transform: "log1p" or "signed-log", for amounts that span orders of magnitude.
            decimals: number of decimal places; any if None.
            values: all possible values, from `lower` to `upper`, if they are few and not in equal
                steps, as the middles of brackets are.
            missing: whether values may be missing.

        Raises:
            SchemaError: a value is impossible, or values contradict each other.
        """
        return cls._numeric(
            ColumnKind.CONTINUOUS, name, lower, upper, missing,
            dtype=dtype, transform=transform, decimals=decimals,
            values=_listed(name, values, ColumnKind.CONTINUOUS),
        )  # fmt: skip

    @classmethod
    def date(
        cls,
        name: str,
        lower: str | dt.date,
        upper: str | dt.date,
        *,
        dtype: str = "date32",
        format: str = "",
        missing: bool = False,
    ) -> Column:
        """A column of days.

        Args:
            name: its name in the header.
            lower: first possible day in any such table; a text as in "2000-01-31".
            upper: last possible day in any such table.
            dtype: how it is stored: "date32", or "string" for texts.
            format: how texts write days, as in "%d.%m.%Y"; "%Y-%m-%d" if empty.
            missing: whether values may be missing.

        Raises:
            SchemaError: a value is impossible, or values contradict each other.
        """
        return cls._numeric(
            ColumnKind.DATE, name, lower, upper, missing, dtype=dtype, format=format
        )

    @classmethod
    def datetime(
        cls,
        name: str,
        lower: str | dt.date,
        upper: str | dt.date,
        *,
        dtype: str = "timestamp[us]",
        unit: str | None = None,
        format: str = "",
        missing: bool = False,
    ) -> Column:
        """A column of times, without a time zone.

        Args:
            name: its name in the header.
            lower: first possible time in any such table; a text as in "2000-01-31" or
                "2000-01-31T12:00:00".
            upper: last possible time in any such table.
            dtype: how it is stored: "timestamp[s]", "[ms]", "[us]" or "[ns]", or "string" for
                texts.
            unit: "day", "hour" or "minute" to truncate to it; seconds if None.
            format: how texts write times; "%Y-%m-%d %H:%M:%S" if empty.
            missing: whether values may be missing.

        Raises:
            SchemaError: a value is impossible, or values contradict each other.
        """
        return cls._numeric(
            ColumnKind.DATETIME, name, lower, upper, missing, dtype=dtype, unit=unit, format=format
        )

    @classmethod
    def duration(
        cls,
        name: str,
        lower: str | dt.timedelta,
        upper: str | dt.timedelta,
        *,
        dtype: str = "duration[us]",
        unit: str | None = None,
        transform: str = "none",
        format: str = "",
        missing: bool = False,
    ) -> Column:
        """A column of lengths of time.

        Args:
            name: its name in the header.
            lower: shortest possible duration in any such table; a text as in "PT12H30M".
            upper: longest possible duration in any such table, as in "P60D".
            dtype: how it is stored: "duration[s]", "[ms]", "[us]" or "[ns]", or "string" for texts.
            unit: "day", "hour" or "minute" to truncate to it; seconds if None.
            transform: "log1p" or "signed-log", if they span orders of magnitude.
            format: how texts write durations, as in "%H:%M:%S"; as in ISO 8601 if empty.
            missing: whether values may be missing.

        Raises:
            SchemaError: a value is impossible, or values contradict each other.
        """
        return cls._numeric(
            ColumnKind.DURATION, name, lower, upper, missing,
            dtype=dtype, unit=unit, transform=transform, format=format,
        )  # fmt: skip

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
            name: its name in the header.
            categories: all possible categories in any such table, as texts.
            ordered: whether they have an order, that of the list.
            dtype: how it is stored.
            other: the category that unlisted values count as; they are refused if None.
            missing: whether values may be missing.

        Raises:
            SchemaError: a value is impossible, or values contradict each other.
        """
        kind = ColumnKind.ORDINAL if ordered else ColumnKind.CATEGORICAL
        found = _texts(name, categories)
        return cls._of(kind, name, missing, categories=found, dtype=dtype, other=other)

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
            name: its name in the header.
            categories: the text for false, then the text for true.
            dtype: how it is stored; if None, "bool", or "string" for other than the default
                categories.
            missing: whether values may be missing.

        Raises:
            SchemaError: a value is impossible, or values contradict each other.
        """
        found = _texts(name, categories)
        stored = dtype or ("bool" if found == ["false", "true"] else "string")
        return cls._of(ColumnKind.BOOLEAN, name, missing, categories=found, dtype=stored)

    @classmethod
    def _numeric(
        cls, kind: ColumnKind, name: str, lower: object, upper: object, missing: bool,
        **entries: object,
    ) -> Column:  # fmt: skip
        bounds = {"lower": _in_json(lower, kind), "upper": _in_json(upper, kind)}
        return cls._of(kind, name, missing, **bounds, **entries)

    @classmethod
    def _of(cls, kind: ColumnKind, name: str, missing: bool, **entries: object) -> Column:
        """The column with these entries of a schema file; entries that are None are left out."""
        said = {entry: value for entry, value in entries.items() if value is not None}
        if missing:
            said["missing"] = (Missing.INDICATOR if kind.numeric else Missing.CATEGORY).value
        return cls.from_json({"name": name, "kind": kind.value, **said})

    def __post_init__(self) -> None:
        require_name(self.name, "a column")
        known = DTYPES
        if self.kind.timed:
            known = ("string", *(DATE_DTYPES if self.kind.temporal else DURATION_DTYPES))
        if self.dtype not in known:
            raise self._wrong(f"dtype {self.dtype!r}: known are {', '.join(known)}")
        if self.kind_origin is not Origin.DECLARED and (
            self.origin is not Origin.PRIVATE or self.kind_origin is not Origin.FROM_DATA
        ):
            raise self._wrong('kind_origin is "from-data", of a column of origin "private"')
        if not self.kind.timed and (self.unit or self.format):
            raise self._wrong("unit and format are of dates, times and durations")
        if self.kind.temporal:
            self._require_dates()
        elif self.kind.timed:
            self._require_durations()
        if self.kind.numeric:
            self._require_bounds()
            self._require_multiples()
            self._require_values()
        else:
            self._require_categories()

    def _wrong(self, what: str, value: str | None = None) -> SchemaError:
        """An error; bounds and categories go into `value`, because a draft's are from records."""
        return SchemaError(f"column {self.name!r}: {what}", value)

    def _require_bounds(self) -> None:
        lower, upper = self.lower, self.upper
        if lower is None or upper is None:
            raise self._wrong("a numeric column has the bounds lower and upper")
        if self.categories or self.other is not None:
            raise self._wrong("a numeric column has bounds, not categories")
        if self.kind is not ColumnKind.CONTINUOUS and not (type(lower) is type(upper) is int):
            raise self._wrong("the bounds of integers are integers")
        if self.kind is ColumnKind.CONTINUOUS and not (type(lower) is type(upper) is float):
            raise self._wrong("the bounds of continuous values are floats")
        if not -LARGEST <= lower < upper <= LARGEST:
            raise self._wrong(
                "its bounds have to go up, between -2^53 and 2^53", f"{lower} to {upper}"
            )
        if self.transform is Transform.LOG1P and lower < 0:
            raise self._wrong("log1p needs a lower bound of at least 0; signed-log does not")
        if self.missing is Missing.CATEGORY:
            raise self._wrong('a numeric column has missing = "indicator" or "refused"')
        if self.dtype in ("string", "bool") and not self.kind.timed:
            raise self._wrong(f"dtype {self.dtype} does not hold numbers")
        if self.kind is ColumnKind.CONTINUOUS and "int" in self.dtype:
            raise self._wrong(f"dtype {self.dtype} holds integers: its kind is integer")
        if self.kind is ColumnKind.INTEGER and "int" in self.dtype:
            least, most = range_of_integers(self.dtype)
            if lower < least or upper > most:
                raise self._wrong(
                    f"dtype {self.dtype} does not hold its bounds", f"{lower} to {upper}"
                )

    def _require_dates(self) -> None:
        if self.transform is not Transform.NONE or (self.step, self.decimals) != (None, None):
            raise self._wrong("dates and times have a unit, and no transform, step or decimals")
        if self.kind is ColumnKind.DATE and self.unit is not None:
            raise self._wrong('the unit of dates is a day; kind = "datetime" has others')
        if self.dtype != "string" and (self.dtype == "date32") != (self.kind is ColumnKind.DATE):
            raise self._wrong(f"dtype {self.dtype} is not of a {self.kind.value}")
        try:
            form = self.date_format
        except SchemaError as error:
            raise self._wrong(str(error)) from error
        if form.has_time != (self.kind is ColumnKind.DATETIME):
            raise self._wrong(f"format {form.text!r} is not of a {self.kind.value}")
        bounds = [bound * self.seconds for bound in (self.lower, self.upper) if bound is not None]
        if not all(_FIRST <= bound <= _LAST for bound in bounds):
            raise self._wrong("its bounds are between the years 1 and 9999")
        if self.dtype == "timestamp[ns]" and not all(abs(b) < _LAST_IN_NANOSECONDS for b in bounds):
            raise self._wrong("dtype timestamp[ns] holds the years 1678 to 2261")

    def _require_durations(self) -> None:
        if (self.step, self.decimals) != (None, None):
            raise self._wrong("durations have a unit, and no step or decimals")
        try:
            finest = self.duration_format.finest
        except SchemaError as error:
            raise self._wrong(str(error)) from error
        if finest > self.seconds:
            raise self._wrong(f"format {self.format!r} does not write its unit: say a longer one")
        bounds = [bound * self.seconds for bound in (self.lower, self.upper) if bound is not None]
        if not all(abs(bound) <= LONGEST for bound in bounds):
            raise self._wrong("its bounds are at most 10,000,000 days")
        if self.dtype == "duration[ns]" and not all(abs(b) < _LAST_IN_NANOSECONDS for b in bounds):
            raise self._wrong("dtype duration[ns] holds durations of up to 292 years")

    def _require_multiples(self) -> None:
        if self.step is not None and self.decimals is not None:
            raise self._wrong("it has either step or decimals, not both")
        if self.decimals is not None and self.kind is not ColumnKind.CONTINUOUS:
            raise self._wrong("decimals are of continuous values")
        whole = type(self.decimals) is int
        if self.decimals is not None and not (whole and 0 <= self.decimals <= MOST_DECIMALS):
            raise self._wrong(f"decimals are 0 to {MOST_DECIMALS}")
        if self.step is not None and not 0 < self.step <= LARGEST:
            raise self._wrong("step is a number above 0")
        if self.kind is ColumnKind.INTEGER and self.step is not None and type(self.step) is not int:
            raise self._wrong("the step of integers is an integer")
        if self.step is None and self.decimals is None:
            return
        granule, (lower, upper) = self.granule, self.bounds
        assert granule is not None
        if granule.digits > MOST_DECIMALS or max(-lower, upper) * 10**granule.digits > LARGEST:
            raise self._wrong("its step is too small for its bounds")
        ends = np.array([lower, upper], dtype=np.float64)
        if not np.array_equal(granule.rounded(ends), ends):
            raise self._wrong(
                f"its bounds are multiples of {granule.size:g}, as its values are",
                f"{lower} to {upper}",
            )

    def _require_values(self) -> None:
        if not self.values:
            return
        if self.kind.timed:
            raise self._wrong("values are of numbers, not of dates, times and durations")
        if self.origin is Origin.PRIVATE:
            raise self._wrong("its values are listed, so its bounds were not found privately")
        if (self.step, self.decimals, self.transform) != (None, None, Transform.NONE):
            raise self._wrong("a column whose values are listed has no step, decimals or transform")
        if not 2 <= len(self.values) <= MOST_VALUES:
            raise self._wrong(
                f"{len(self.values)} values: 2 to {MOST_VALUES} can be listed; for more, leave "
                "values out, and say lower and upper alone"
            )
        whole = self.kind is ColumnKind.INTEGER
        if not all(type(value) is (int if whole else float) for value in self.values):
            raise self._wrong(f"its values are {'integers' if whole else 'floats'}")
        if not all(a < b for a, b in pairwise(self.values)):
            raise self._wrong("its values are listed in increasing order")
        if (self.values[0], self.values[-1]) != self.bounds:
            raise self._wrong("its values begin with lower and end with upper")

    def _require_categories(self) -> None:
        if self.step is not None or self.decimals is not None or self.values:
            raise self._wrong("a column of categories has no step, no decimals and no values")
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
                if number_of(category, self.dtype) is None:
                    raise self._wrong(
                        f"dtype {self.dtype} does not hold a category: write it like -12 or 0.5, "
                        "or say string",
                        category,
                    )
            if len(set(self.numbers)) != len(self.numbers):
                raise self._wrong("two categories are the same number")

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers that its categories stand for, as its dtype holds them; empty for texts."""
        found = (number_of(category, self.dtype) for category in self.categories)
        return tuple(number for number in found if number is not None)

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest value of a numeric column."""
        assert self.lower is not None
        assert self.upper is not None
        return self.lower, self.upper

    @property
    def granule(self) -> Granule | None:
        """The number of which all values are multiples; None if there is none."""
        return granule_of(self.kind, self.step, self.decimals)

    @property
    def is_rounded(self) -> bool:
        """Whether `rounded` changes numbers: they have a granule, or are listed."""
        return bool(self.values) or self.granule is not None

    def rounded(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The nearest of the listed values, or multiples of the granule; NaN stays NaN."""
        if self.values:
            nearest = np.array(self.values, dtype=np.float64)[self.ranks(numbers)]
            return np.where(np.isnan(numbers), np.nan, nearest)
        return numbers if self.granule is None else self.granule.rounded(numbers)

    def ranks(self, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        """The index of the nearest of the listed values; halfway, of the larger one."""
        values = np.array(self.values, dtype=np.float64)
        # Halves are exact, and IEEE 754 fixes sums: the same on every processor. There may be no
        # number between two values.
        middles = np.maximum(values[:-1] / 2 + values[1:] / 2, np.nextafter(values[:-1], np.inf))
        return np.searchsorted(middles, numbers, side="right").astype(np.int64)

    @property
    def different(self) -> int | None:
        """The number of values that have a place each, at equal distances.

        These are listed values, or those that differ by its granule, without a transform.
        """
        if self.values:
            return len(self.values)
        if self.granule is None or self.transform is not Transform.NONE:
            return None
        lower, upper = self.bounds
        return self.granule.steps(upper - lower) + 1

    @property
    def seconds(self) -> int:
        """The seconds in a step of dates, times and durations."""
        if self.kind is ColumnKind.DATE:
            return TimeUnit.DAY.seconds
        return (self.unit or TimeUnit.SECOND).seconds

    @property
    def date_format(self) -> DateFormat:
        """How texts write dates and times."""
        usual = ISO_DATE if self.kind is ColumnKind.DATE else ISO_TIME
        return DateFormat(self.format or usual)

    @property
    def duration_format(self) -> DurationFormat:
        """How texts write durations."""
        return DurationFormat(self.format)

    @property
    def choices(self) -> int:
        """Number of categories, including that of missing values; 0 for a numeric column."""
        if self.kind.numeric:
            return 0
        return len(self.categories) + (self.missing is Missing.CATEGORY)

    def to_json(self) -> dict[str, Any]:
        """A plain mapping that `from_json` reads back; default values are left out."""
        document: dict[str, Any] = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if value == entry.default and entry.name != "origin":  # which is always written
                continue
            if isinstance(value, Enum):
                value = value.value
            if self.kind.timed and entry.name in ("lower", "upper"):
                value = self.bound_text(int(value))
            document[entry.name] = list(value) if isinstance(value, tuple) else value
        return document

    def bound_text(self, steps: int) -> str:
        """A bound of dates, times or durations, given in steps, as ISO 8601 text."""
        seconds = steps * self.seconds
        if not self.kind.temporal:
            return DurationFormat().write(np.array([seconds]))[0]
        return iso_text(seconds, with_time=self.kind is ColumnKind.DATETIME)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Column:
        """Read what `to_json` wrote.

        Raises:
            SchemaError: something is missing, unknown, of the wrong type, or out of range.
        """
        return cls(**read_entries(document, {entry.name for entry in fields(cls)}))


def _texts(name: str, categories: Iterable[str]) -> list[str]:
    """A caller's categories, as texts."""
    found = [] if isinstance(categories, str) else list(categories)
    if not found or not all(isinstance(text, str) for text in found):
        raise SchemaError(
            f'column {name!r}: categories are texts, as in ["yes", "no"]; those that are numbers, '
            'too, as in ["1", "2"] with dtype="int64"'
        )
    return found


def _listed(name: str, values: Iterable[float], kind: ColumnKind) -> list[float] | None:
    """A caller's list of values in JSON's types; None if it is empty."""
    try:
        found = [_in_json(value, kind) for value in values]
    except TypeError as error:
        raise SchemaError(f"column {name!r}: values are a list of numbers") from error
    return found or None


def _in_json(bound: Any, kind: ColumnKind) -> Any:  # noqa: ANN401 - whatever somebody says
    """A bound in JSON's types: NumPy's numbers as Python's, dates and durations as texts."""
    if isinstance(bound, bool):
        return bound
    if isinstance(bound, dt.date):
        return bound.isoformat()
    if isinstance(bound, dt.timedelta) and not bound.microseconds:
        return DurationFormat().write(np.array([bound // dt.timedelta(seconds=1)]))[0]
    if kind is ColumnKind.CONTINUOUS and isinstance(bound, Real):
        return float(bound)
    return int(bound) if isinstance(bound, Integral) else bound
