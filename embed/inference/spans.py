"""Drafting the time between two dates or times, of which neither is before the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...common.display.console import notice
from ...common.schema.columns.column import Column
from ...common.schema.columns.dates import TimeUnit
from ...common.schema.columns.durations import LONGEST
from ...common.schema.columns.kinds import ColumnKind, Missing
from ...common.schema.rules.condition import Comparison, Condition, Relation
from ...common.schema.rules.language import LONGEST as LONGEST_RULE
from ...common.schema.spans import rules_of
from ...common.schema.table import TableSchema
from .numbers import SeenNumbers

_UNITS: Final = {unit.seconds: unit for unit in TimeUnit}
_MOST: Final = 5
"""At most so many are drafted: each is one more column that is released."""


def with_spans(
    schema: TableSchema,
    rules: Sequence[str],
    parts: Callable[[], Iterable[Mapping[str, NDArray[Any]]]],
) -> TableSchema:
    """A drafted schema with rules, of which orders of dates become columns of their own.

    A rule such as admission <= discharge keeps the order, but how long it is from one to the other
    gets lost (`common.schema.spans`). So the draft has that as a column, unless an equality ties
    the two dates already, as stay = discharge - admission does.

    Guarantee:
        None: the longest time is looked up in the records.

    Args:
        schema: of the table, without rules.
        rules: that all rows keep.
        parts: reads all rows, in parts, each of which maps a column's name to its values.
    """
    ruled = replace(schema, constraints=tuple(rules))
    named = [rule.names for rule in ruled.rules]
    orders = {
        text: _span(schema, rule)
        for text, rule in zip(rules, ruled.rules, strict=True)
        if not any(rule.names < others for others in named)
    }
    spans = {text: span for text, span in orders.items() if span is not None}
    spans = dict(itertools.islice(spans.items(), _MOST))
    if not spans:
        return ruled
    seen = {text: SeenNumbers() for text in spans}
    for values in parts():
        for text, span in spans.items():
            first, last = span.between
            apart = values[last] - values[first]
            seen[text].observe(apart[~np.isnan(apart)])
    columns = {
        text: replace(span, upper=int(seen[text].upper), transform=seen[text].transform)
        for text, span in spans.items()
        if 0 < seen[text].upper * span.seconds <= LONGEST
    }
    for text, column in columns.items():
        notice(f"{text}: drafted as a column of its own, {column.name!r}, which no file holds")
    return replace(
        ruled,
        columns=(*schema.columns, *columns.values()),
        constraints=tuple(text for text in rules if text not in columns),
    )


def _span(schema: TableSchema, rule: Condition) -> Column | None:
    """The time between two dates of which the rule is that one is never above the other.

    Of any length; None for other rules, and if no column can be that.
    """
    match rule:
        case Comparison(((one, factor), (other, _)), 0, Relation.AT_MOST):
            names = (one, other) if factor > 0 else (other, one)
        case _:
            return None
    first, last = (schema.by_name[name] for name in names)
    if not (first.kind.temporal and last.kind.temporal and first.seconds == last.seconds):
        return None
    taken = {column.name for column in schema.described} | set(schema.left_out)
    name = f"{first.name} to {last.name}"
    if name in taken:
        return None
    missing = Missing.INDICATOR in (first.missing, last.missing)
    unit = _UNITS[first.seconds]
    found = Column(
        name,
        ColumnKind.DURATION,
        "duration[s]",
        0,
        LONGEST // first.seconds,
        missing=Missing.INDICATOR if missing else Missing.REFUSED,
        unit=None if unit is TimeUnit.SECOND else unit,
        between=(first.name, last.name),
    )
    return found if len(rules_of(found)[0]) <= LONGEST_RULE else None
