"""A column of a table: what is publicly known of its values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from numbers import Integral, Real
from typing import Any

import numpy as np

from ...errors import SchemaError
from .checks import require_consistent
from .durations import DurationFormat
from .entries import read_entries
from .fields import ColumnFields
from .kinds import ColumnKind, Missing


@dataclass(frozen=True, repr=False)
class Column(ColumnFields):
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
        between: of a duration that is in no file: the two columns of dates or times, from the first
            to the second of which it is (`dpntk.common.schema.spans`); empty otherwise.

    Raises:
        SchemaError: a field is impossible, or fields contradict each other.
    """

    def __post_init__(self) -> None:
        require_consistent(self)

    @classmethod
    def integer(
        cls,
        name: str,
        lower: int,
        upper: int,
        *,
        dtype: str = "int64",
        transform: str = "none",
        step: int | None = None,
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
            step: a number of which all of them are multiples; 1 if None.
            values: all possible values, from `lower` to `upper`, if they are few and not in equal
                steps.
            missing: whether values may be missing.

        Raises:
            SchemaError: a value is impossible, or values contradict each other.
        """
        return cls._numeric(
            ColumnKind.INTEGER, name, lower, upper, missing,
            dtype=dtype, transform=transform, step=step,
            values=_listed(name, values, ColumnKind.INTEGER),
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
        step: float | None = None,
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
            step: a number of which all of them are multiples; any numbers if None.
            decimals: number of decimal places, in place of a step; any if None.
            values: all possible values, from `lower` to `upper`, if they are few and not in equal
                steps, as the middles of brackets are.
            missing: whether values may be missing.

        Raises:
            SchemaError: a value is impossible, or values contradict each other.
        """
        return cls._numeric(
            ColumnKind.CONTINUOUS, name, lower, upper, missing,
            dtype=dtype, transform=transform, step=step, decimals=decimals,
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
        between: tuple[str, str] | None = None,
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
            between: if no file holds it: the columns of dates or times, from the first to the
                second of which it is.
            missing: whether values may be missing.

        Raises:
            SchemaError: a value is impossible, or values contradict each other.
        """
        return cls._numeric(
            ColumnKind.DURATION, name, lower, upper, missing,
            dtype=dtype, unit=unit, transform=transform, format=format,
            between=list(between) if isinstance(between, tuple | list) else between,
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
        if entries.get("step") is not None:
            entries["step"] = _in_json(entries["step"], kind)
        return cls._of(kind, name, missing, **bounds, **entries)

    @classmethod
    def _of(cls, kind: ColumnKind, name: str, missing: bool, **entries: object) -> Column:
        """The column with these entries of a schema file; entries that are None are left out."""
        said = {entry: value for entry, value in entries.items() if value is not None}
        if missing:
            said["missing"] = (Missing.INDICATOR if kind.numeric else Missing.CATEGORY).value
        return cls.from_json({"name": name, "kind": kind.value, **said})

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
