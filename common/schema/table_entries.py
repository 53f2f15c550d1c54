"""Reading a table's entries in JSON or TOML into the fields of a `TableSchema`."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final

from ..display.text import unknown_names
from ..errors import SchemaError
from ..ledger import Entry
from .columns.column import Column
from .columns.unread import is_unread, read_unread
from .csv_format import CsvFormat
from .origin import Origin
from .privacy_unit import PrivacyUnit

MOST_COLUMNS: Final = 2_000
ORIGINS: Final = ("left_out_origin", "names_origin", "constraints_origin")
"""Entries that state who has chosen something."""
_LISTS: Final = {
    "left_out": (str, "left_out is a list of columns' names"),
    "constraints": (str, 'constraints are a list of texts, as in ["discharge >= admission"]'),
    "spent": (dict, "spent is a list of tables"),
    "by_rank": (str, "by_rank is a list of columns' names"),
}
"""Maps an entry to the type of its items, with that type in words."""


def read_entries(document: Mapping[str, Any], known: Set[str]) -> dict[str, Any]:
    """Read what `TableSchema.to_json` or a person wrote.

    Args:
        document: the entries; what has its default value may be left out.
        known: names of the entries that there are.

    Returns:
        The fields by name, of the right types; none for entries that are left out.

    Raises:
        SchemaError: something is missing, unknown or of the wrong type.
    """
    if unknown := set(document) - known:
        raise SchemaError(unknown_names(unknown, known))
    values = dict(document)
    columns = values.get("columns")
    if not isinstance(columns, list) or len(columns) > MOST_COLUMNS:
        raise SchemaError(f"there must be a list of 1 to {MOST_COLUMNS} columns")
    for entry, (kind, wanted) in _LISTS.items():
        found = values.get(entry, [])
        if not isinstance(found, list) or not all(isinstance(each, kind) for each in found):
            raise SchemaError(wanted)
        values[entry] = tuple(found)
    if not isinstance(values.get("label"), str | None):
        raise SchemaError("label is a column's name")
    if type(values.get("bins", 0)) is not int:
        raise SchemaError("bins is a whole number")
    # What no file holds comes last, so that places are those in files.
    in_order = sorted(columns, key=lambda each: isinstance(each, dict) and "between" in each)
    values["columns"] = tuple(Column.from_json(each) for each in in_order if not is_unread(each))
    values["made"] = tuple(
        read_unread(each, place) for place, each in enumerate(in_order) if is_unread(each)
    )
    values["csv"] = CsvFormat.from_json(values.get("csv", {}))
    values["spent"] = tuple(map(Entry.from_json, values["spent"]))
    if values.get("privacy_unit") is not None:
        values["privacy_unit"] = PrivacyUnit.from_json(values["privacy_unit"])
    for entry in ORIGINS:
        try:
            values[entry] = Origin(values.get(entry, Origin.DECLARED.value))
        except ValueError as error:
            raise SchemaError(f'{entry} is "declared" or "from-data"') from error
    return values
