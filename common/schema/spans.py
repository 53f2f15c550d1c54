"""Time between two dates or times, as a column of its own that no file holds.

How long a stay is gets lost between two dates of several years, whose cells are weeks wide. So a
column may be declared as the time between two others: it is computed when records are read, is
released and generated like any other column, and rows are repaired until it agrees with the two.
Synthetic tables do not have it, as the data do not.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..errors import SchemaError
from .columns.column import Column
from .columns.dates import TimeUnit
from .columns.kinds import Missing
from .rules.language import LONGEST


def require_spans(columns: Mapping[str, Column]) -> None:
    """Check that the time between two columns is of columns that there are, in their unit.

    Args:
        columns: all columns, by name.

    Raises:
        SchemaError: it is not.
    """
    for column in columns.values():
        if not column.between:
            continue
        where = f"column {column.name!r}"
        for name in (column.name, *column.between):
            if "`" in name:
                raise SchemaError(f"{where}: a name has backticks, with which no rule is written")
        if len(rules_of(column)[0]) > LONGEST:
            raise SchemaError(f"{where}: its name and those of its dates are too long together")
        for name in column.between:
            end = columns.get(name)
            if end is None:
                raise SchemaError(f"{where}: between: the schema describes no column {name!r}")
            if not end.kind.temporal:
                raise SchemaError(
                    f"{where}: between: {name!r} is {end.kind.value}, no date or time"
                )
            if end.missing is Missing.INDICATOR and column.missing is Missing.REFUSED:
                raise SchemaError(
                    f'{where}: {name!r} may be missing, so it may be: say missing = "indicator"'
                )
        first, last = (columns[name] for name in column.between)
        if first.seconds != last.seconds:
            raise SchemaError(
                f"{where}: between: {first.name!r} and {last.name!r} have different units: "
                "describe both as dates, or both as times in one unit"
            )
        if first.seconds != column.seconds:
            unit = next(unit.value for unit in TimeUnit if unit.seconds == first.seconds)
            raise SchemaError(
                f'{where}: between: {first.name!r} has another unit: say unit = "{unit}"'
            )


def rules_of(column: Column) -> tuple[str, ...]:
    """The constraints that tie the time between two columns to them.

    The first is what it is. Where both are there, so is it (if names leave room to say so): a
    missing time would keep none of its bounds.
    """
    first, last = column.between
    equal = f"`{last}` = `{first}` + `{column.name}`"
    there = f"`{column.name}` is not missing or `{first}` is missing or `{last}` is missing"
    may_be_missing = column.missing is not Missing.REFUSED
    return (equal, there) if may_be_missing and len(there) <= LONGEST else (equal,)


def span_of(column: Column, values: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """The time between two columns in steps; NaN where one of them is missing.

    Args:
        column: the time between two columns.
        values: of these columns, in steps, float64 (n,) each.
    """
    first, last = column.between
    return values[last] - values[first]
