"""Confirming a draft: shows what it looked up, and asks for a yes or no to each column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...common.cli.prompts import confirmed
from ...common.display.console import TextTable, show
from ...common.schema.columns.column import Column
from ...common.schema.columns.kinds import Missing
from ...common.schema.columns.lookup import LOOKUP, LookupColumn
from ...common.schema.drafts.draft import Draft

_MOST_CATEGORIES: Final = 8
_LONGEST: Final = 60
_ENTRIES: Final = ("transform", "step", "decimals", "unit", "format")


def accepted(draft: Draft) -> Draft:
    """Show what was looked up, and confirm the columns to which the owner says yes."""
    table = TextTable("what was looked up in the data")
    table.add_column("column")
    table.add_column("kind", wrap=False)
    table.add_column("scale, step, format")
    table.add_column("values")
    table.add_column("missing", wrap=False)
    for column in draft.schema.described:
        match column:
            case LookupColumn():
                pairs = [f"{category} = {value}" for category, value in column.values.items()]
                kind, source = f"{LOOKUP}, {column.dtype}", f"follows from {column.of}"
                table.add_row(column.name, kind, source, _some(pairs), "")
            case Column():
                missing = "" if column.missing is Missing.REFUSED else "yes"
                kind = f"{column.kind.value}, {column.dtype}"
                table.add_row(column.name, kind, _steps(column), _values(column), missing)
    show(table)
    names = not draft.names_confirmed and confirmed(
        "names of columns: some could be values: does the first line hold names, and no record?"
    )
    known = [
        name
        for name in draft.unconfirmed
        if confirmed(f"{name}: would all of this be said of any such table, without a look at it?")
    ]
    if not draft.left_out_confirmed and confirmed(
        f"left out: {', '.join(name or '(no name)' for name in draft.schema.left_out)}: would they "
        "be, whatever is in them?"
    ):
        known += draft.schema.left_out
    rules = [
        rule
        for rule in draft.schema.constraints
        if confirmed(f"{rule}: does every row of any such table keep this, without a look at it?")
    ]
    constraints = None if draft.constraints_confirmed else rules
    return draft.confirm(*known, names=names, constraints=constraints)


def _steps(column: Column) -> str:
    """The other properties of numbers and times, which a yes confirms as well."""
    said = column.to_json()
    return ", ".join(f"{entry} {said[entry]}" for entry in _ENTRIES if entry in said)


def _values(column: Column) -> str:
    """The bounds, or some of the listed values or categories."""
    if column.kind.numeric and not column.values:
        texts = map(column.bound_text if column.kind.timed else str, column.bounds)  # type: ignore[arg-type]
        return " to ".join(texts)
    return _some(column.categories or [f"{value:g}" for value in column.values])


def _some(listed: Sequence[str]) -> str:
    """The first of several texts, and how many there are beside them."""
    first = ", ".join(listed[:_MOST_CATEGORIES])
    first = first if len(first) <= _LONGEST else f"{first[:_LONGEST]}…"
    more = len(listed) - _MOST_CATEGORIES
    return f"{first} and {more} more" if more > 0 else first
