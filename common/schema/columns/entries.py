"""Reading a column's entries in JSON or TOML into the fields of a `Column`."""

from __future__ import annotations

from collections.abc import Mapping, Set
from enum import Enum
from typing import Any, Final

from ...display.text import unknown_names
from ...errors import SchemaError
from ..origin import Origin
from .dates import TimeUnit, seconds_of
from .dtypes import LARGEST
from .durations import seconds_of_duration
from .kinds import ColumnKind, Missing, Transform

_ENUMS: Final[dict[str, type[Enum]]] = {
    "kind": ColumnKind,
    "transform": Transform,
    "missing": Missing,
    "origin": Origin,
    "kind_origin": Origin,
    "unit": TimeUnit,
}
_NEEDED: Final = ("name", "kind", "dtype")
_TEXTS: Final = ("name", "dtype", "other", "format")
_NUMBERS: Final = ("lower", "upper", "step")


def read_entries(document: Mapping[str, Any], known: Set[str]) -> dict[str, Any]:
    """Read what `Column.to_json` or a person wrote.

    Args:
        document: the entries.
        known: the names of all fields.

    Returns:
        The fields by name, of the right types; bounds of times and durations in steps.

    Raises:
        SchemaError: something is missing, unknown or of the wrong type.
    """
    if not isinstance(document, Mapping):
        raise SchemaError("a column is described by a table of entries")
    name = document.get("name")
    where = f"column {name!r}" if isinstance(name, str) else "a column without a name"
    unknown = set(document) - known
    if unknown:
        made = '; a column with a pattern has kind = "made"' if "pattern" in unknown else ""
        raise SchemaError(f"{where}: {unknown_names(unknown, known)}{made}")
    values = dict(document)
    for entry, kind in _ENUMS.items():
        if entry in values:
            try:
                values[entry] = kind(values[entry])
            except ValueError as error:
                members = ", ".join(member.value for member in kind)
                raise SchemaError(
                    f"{where}: {entry} = {values[entry]!r}: known are {members}"
                ) from error
    for entry in _NEEDED:
        if entry not in values:
            raise SchemaError(f"{where}: {entry} is missing")
    for entry in _TEXTS:
        if not isinstance(values.get(entry, ""), str):
            raise SchemaError(f"{where}: {entry} is a text")
    if values["kind"].timed:
        _count_steps(values, where)
    for entry in _NUMBERS:
        bound = values.get(entry, 0)
        if isinstance(bound, bool) or not isinstance(bound, int | float):
            raise SchemaError(f"{where}: {entry} is a number")
    if type(values.get("decimals", 0)) is not int:
        raise SchemaError(f"{where}: decimals is a whole number")
    listed = values.get("values", [])
    if not isinstance(listed, list) or any(
        isinstance(value, bool) or not isinstance(value, int | float) for value in listed
    ):
        raise SchemaError(f"{where}: values are a list of numbers, as in [0.5, 1.5, 4.0]")
    if values["kind"] is ColumnKind.CONTINUOUS:
        listed = [float(value) if abs(value) <= LARGEST else value for value in listed]
    values["values"] = tuple(listed)
    if listed:
        values = {"lower": listed[0], "upper": listed[-1], **values}
    between = values.get("between", [])
    if not isinstance(between, list) or not all(isinstance(each, str) for each in between):
        raise SchemaError(f'{where}: between is a list of two columns, as in ["begin", "end"]')
    values["between"] = tuple(between)
    categories = values.get("categories", [])
    if not isinstance(categories, list) or not all(isinstance(c, str) for c in categories):
        raise SchemaError(f'{where}: categories are a list of texts, as in ["yes", "no"]')
    values["categories"] = tuple(categories)
    return values


def _count_steps(values: dict[str, Any], where: str) -> None:
    """Replace bounds that are texts by numbers of steps."""
    long = values["kind"] is ColumnKind.DURATION
    meant = (
        "a duration as in P60D or PT12H30M"
        if long
        else "a date as in 2000-01-31, or a time as in 2000-01-31T12:00:00, without a time zone"
    )
    unit = values.get("unit", TimeUnit.SECOND)
    if values["kind"] is ColumnKind.DATE:
        unit = TimeUnit.DAY
    for entry in ("lower", "upper"):
        if entry not in values:
            continue
        wrong = f"{where}: {entry} is {meant}"
        if not isinstance(values[entry], str):
            raise SchemaError(wrong)
        try:
            seconds = (seconds_of_duration if long else seconds_of)(values[entry])
        except ValueError as error:
            raise SchemaError(wrong) from error
        values[entry], rest = divmod(seconds, unit.seconds)
        if rest:
            raise SchemaError(f"{where}: {entry} is not a whole {unit.value}")
