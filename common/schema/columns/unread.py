"""Columns of the source that are not read: generated tables have them all the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from .column import Column
from .lookup import LOOKUP, LookupColumn
from .made import MADE, MadeColumn

UnreadColumn: TypeAlias = MadeColumn | LookupColumn
_KINDS: Final[dict[str, type[UnreadColumn]]] = {MADE: MadeColumn, LOOKUP: LookupColumn}


def in_places(described: Iterable[Column | UnreadColumn]) -> dict[str, Any]:
    """The fields of a `TableSchema` that hold its columns.

    Args:
        described: all columns, in the order of the source.

    Returns:
        `columns`, those that are read, and `made`, the others with their places.
    """
    columns = tuple(described)
    return {
        "columns": tuple(column for column in columns if isinstance(column, Column)),
        "made": tuple(
            replace(column, place=place)
            for place, column in enumerate(columns)
            if not isinstance(column, Column)
        ),
    }


def is_unread(entry: object) -> bool:
    """Whether an entry of a schema describes such a column."""
    kind = entry.get("kind") if isinstance(entry, dict) else None
    return isinstance(kind, str) and kind in _KINDS


def read_unread(entry: Mapping[str, Any], place: int) -> UnreadColumn:
    """Read the description of such a column.

    Args:
        entry: it `is_unread`.
        place: its position among all columns.

    Raises:
        SchemaError: something is missing, unknown, of the wrong type, or out of range.
    """
    return _KINDS[entry["kind"]].from_json(entry, place)
