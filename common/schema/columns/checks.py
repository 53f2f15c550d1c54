"""Checks of what is said of a column."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from ...errors import SchemaError
from ..classes import MOST_CLASSES
from ..names import require_name
from ..origin import Origin
from .dates import seconds_of
from .dtypes import DATE_DTYPES, DTYPES, DURATION_DTYPES, LARGEST, number_of, range_of_integers
from .durations import LONGEST
from .fields import ColumnFields
from .kinds import ColumnKind, Missing, Transform

MOST_DECIMALS: Final = 15
MOST_VALUES: Final = 128
"""The most values of a numeric column that can be listed. Marginals have a cell for each."""
_FIRST: Final = seconds_of("0001-01-01")
_LAST: Final = seconds_of("9999-12-31T23:59:59")
_LAST_IN_NANOSECONDS: Final = seconds_of("2262-01-01")


def require_consistent(column: ColumnFields) -> None:
    """Raise an error if a field is impossible, or if fields contradict each other.

    Raises:
        SchemaError: so it is.
    """
    require_name(column.name, "a column")
    known = DTYPES
    if column.kind.timed:
        known = ("string", *(DATE_DTYPES if column.kind.temporal else DURATION_DTYPES))
    if column.dtype not in known:
        raise _wrong(column, f"dtype {column.dtype!r}: known are {', '.join(known)}")
    if column.kind_origin is not Origin.DECLARED and (
        column.origin is not Origin.PRIVATE or column.kind_origin is not Origin.FROM_DATA
    ):
        raise _wrong(column, 'kind_origin is "from-data", of a column of origin "private"')
    if column.between != ():
        _require_span(column)
    if not column.kind.timed and (column.unit or column.format):
        raise _wrong(column, "unit and format are of dates, times and durations")
    if column.kind.temporal:
        _require_dates(column)
    elif column.kind.timed:
        _require_durations(column)
    if column.kind.numeric:
        _require_bounds(column)
        _require_multiples(column)
        _require_values(column)
    else:
        _require_categories(column)


def _wrong(column: ColumnFields, what: str, value: str | None = None) -> SchemaError:
    """An error; bounds and categories go into `value`, because a draft's are from records."""
    return SchemaError(f"column {column.name!r}: {what}", value)


def _require_bounds(column: ColumnFields) -> None:
    lower, upper = column.lower, column.upper
    if lower is None or upper is None:
        raise _wrong(column, "a numeric column has the bounds lower and upper")
    if column.categories or column.other is not None:
        raise _wrong(column, "a numeric column has bounds, not categories")
    if column.kind is not ColumnKind.CONTINUOUS and not (type(lower) is type(upper) is int):
        raise _wrong(column, "the bounds of integers are integers")
    if column.kind is ColumnKind.CONTINUOUS and not (type(lower) is type(upper) is float):
        raise _wrong(column, "the bounds of continuous values are floats")
    if not -LARGEST <= lower < upper <= LARGEST:
        raise _wrong(
            column, "its bounds have to go up, between -2^53 and 2^53", f"{lower} to {upper}"
        )
    if column.transform is Transform.LOG1P and lower < 0:
        raise _wrong(column, "log1p needs a lower bound of at least 0; signed-log does not")
    if column.missing is Missing.CATEGORY:
        raise _wrong(column, 'a numeric column has missing = "indicator" or "refused"')
    if column.dtype in ("string", "bool") and not column.kind.timed:
        raise _wrong(column, f"dtype {column.dtype} does not hold numbers")
    if column.kind is ColumnKind.CONTINUOUS and "int" in column.dtype:
        raise _wrong(column, f"dtype {column.dtype} holds integers: its kind is integer")
    if column.kind is ColumnKind.INTEGER and "int" in column.dtype:
        least, most = range_of_integers(column.dtype)
        if lower < least or upper > most:
            raise _wrong(
                column, f"dtype {column.dtype} does not hold its bounds", f"{lower} to {upper}"
            )


def _require_span(column: ColumnFields) -> None:
    if column.kind is not ColumnKind.DURATION:
        raise _wrong(column, 'between is of a duration: kind = "duration"')
    given: object = column.between
    if not isinstance(given, tuple) or not all(isinstance(name, str) for name in given):
        raise _wrong(column, "between is a tuple of two columns, as in ('begin', 'end')")
    if len(given) != 2 or len({column.name, *given}) != 3:
        raise _wrong(column, 'between names two other columns, as in ["begin", "end"]')
    if column.format:
        raise _wrong(column, "no file holds it, so it has no format")
    if column.origin is Origin.PRIVATE:
        raise _wrong(column, "it is computed from others, so its bounds are declared")


def _require_dates(column: ColumnFields) -> None:
    if column.transform is not Transform.NONE or (column.step, column.decimals) != (None, None):
        raise _wrong(column, "dates and times have a unit, and no transform, step or decimals")
    if column.kind is ColumnKind.DATE and column.unit is not None:
        raise _wrong(column, 'the unit of dates is a day; kind = "datetime" has others')
    if column.dtype != "string" and (column.dtype == "date32") != (column.kind is ColumnKind.DATE):
        raise _wrong(column, f"dtype {column.dtype} is not of a {column.kind.value}")
    try:
        form = column.date_format
    except SchemaError as error:
        raise _wrong(column, str(error)) from error
    if form.has_time != (column.kind is ColumnKind.DATETIME):
        raise _wrong(column, f"format {form.text!r} is not of a {column.kind.value}")
    bounds = [bound * column.seconds for bound in (column.lower, column.upper) if bound is not None]
    if not all(_FIRST <= bound <= _LAST for bound in bounds):
        raise _wrong(column, "its bounds are between the years 1 and 9999")
    if column.dtype == "timestamp[ns]" and not all(abs(b) < _LAST_IN_NANOSECONDS for b in bounds):
        raise _wrong(column, "dtype timestamp[ns] holds the years 1678 to 2261")


def _require_durations(column: ColumnFields) -> None:
    if (column.step, column.decimals) != (None, None):
        raise _wrong(column, "durations have a unit, and no step or decimals")
    try:
        finest = column.duration_format.finest
    except SchemaError as error:
        raise _wrong(column, str(error)) from error
    if finest > column.seconds:
        raise _wrong(column, f"format {column.format!r} does not write its unit: say a longer one")
    bounds = [bound * column.seconds for bound in (column.lower, column.upper) if bound is not None]
    if not all(abs(bound) <= LONGEST for bound in bounds):
        raise _wrong(column, "its bounds are at most 10,000,000 days")
    if column.dtype == "duration[ns]" and not all(abs(b) < _LAST_IN_NANOSECONDS for b in bounds):
        raise _wrong(column, "dtype duration[ns] holds durations of up to 292 years")


def _require_multiples(column: ColumnFields) -> None:
    if column.step is not None and column.decimals is not None:
        raise _wrong(column, "it has either step or decimals, not both")
    if column.decimals is not None and column.kind is not ColumnKind.CONTINUOUS:
        raise _wrong(column, "decimals are of continuous values")
    whole = type(column.decimals) is int
    if column.decimals is not None and not (whole and 0 <= column.decimals <= MOST_DECIMALS):
        raise _wrong(column, f"decimals are 0 to {MOST_DECIMALS}")
    if column.step is not None and not 0 < column.step <= LARGEST:
        raise _wrong(column, "step is a number above 0")
    if (
        column.kind is ColumnKind.INTEGER
        and column.step is not None
        and type(column.step) is not int
    ):
        raise _wrong(column, "the step of integers is an integer")
    if column.step is None and column.decimals is None:
        return
    granule, (lower, upper) = column.granule, column.bounds
    assert granule is not None
    if granule.digits > MOST_DECIMALS or max(-lower, upper) * 10**granule.digits > LARGEST:
        raise _wrong(column, "its step is too small for its bounds")
    ends = np.array([lower, upper], dtype=np.float64)
    if not np.array_equal(granule.rounded(ends), ends):
        raise _wrong(
            column,
            f"its bounds are multiples of {granule.size:g}, as its values are",
            f"{lower} to {upper}",
        )


def _require_values(column: ColumnFields) -> None:
    if not column.values:
        return
    if column.kind.timed:
        raise _wrong(column, "values are of numbers, not of dates, times and durations")
    if column.origin is Origin.PRIVATE:
        raise _wrong(column, "its values are listed, so its bounds were not found privately")
    if (column.step, column.decimals, column.transform) != (None, None, Transform.NONE):
        raise _wrong(column, "a column whose values are listed has no step, decimals or transform")
    if not 2 <= len(column.values) <= MOST_VALUES:
        raise _wrong(
            column,
            f"{len(column.values)} values: 2 to {MOST_VALUES} can be listed; for more, leave "
            "values out, and say lower and upper alone",
        )
    whole = column.kind is ColumnKind.INTEGER
    if not all(type(value) is (int if whole else float) for value in column.values):
        raise _wrong(column, f"its values are {'integers' if whole else 'floats'}")
    if not all(a < b for a, b in pairwise(column.values)):
        raise _wrong(column, "its values are listed in increasing order")
    if (column.values[0], column.values[-1]) != column.bounds:
        raise _wrong(column, "its values begin with lower and end with upper")


def _require_categories(column: ColumnFields) -> None:
    if column.step is not None or column.decimals is not None or column.values:
        raise _wrong(column, "a column of categories has no step, no decimals and no values")
    if column.lower is not None or column.upper is not None:
        raise _wrong(column, "a column of categories has no bounds")
    if column.transform is not Transform.NONE:
        raise _wrong(column, "a column of categories has no transform")
    if not 1 <= len(column.categories) <= MOST_CLASSES:
        raise _wrong(column, f"{len(column.categories)} categories: 1 to {MOST_CLASSES} can be")
    if len(set(column.categories)) != len(column.categories):
        raise _wrong(column, "two categories have the same name")
    for category in column.categories:
        require_name(category, f"column {column.name!r}: a category", empty=True)
    if column.kind is ColumnKind.BOOLEAN and len(column.categories) != 2:
        raise _wrong(column, "a boolean column has two categories: false first, then true")
    if column.other is not None and column.other not in column.categories:
        raise _wrong(column, f"other = {column.other!r} is not among its categories")
    if column.missing is Missing.INDICATOR:
        raise _wrong(column, 'a column of categories has missing = "category" or "refused"')
    if column.dtype == "bool" and column.categories not in (("false", "true"), ("true", "false")):
        raise _wrong(column, "the categories of dtype bool are false and true")
    if column.dtype not in ("string", "bool"):
        for category in column.categories:
            if number_of(category, column.dtype) is None:
                raise _wrong(
                    column,
                    f"dtype {column.dtype} does not hold a category: write it like -12 or 0.5, "
                    "or say string",
                    category,
                )
        if len(set(column.numbers)) != len(column.numbers):
            raise _wrong(column, "two categories are the same number")
