"""A schema's entries in TOML, as dpntk writes them and as a person may have written them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, NamedTuple

from ...errors import SchemaError
from ..columns.checks import MOST_DECIMALS
from ..columns.dtypes import DTYPES, LARGEST
from ..columns.kinds import ColumnKind, Transform
from .private_bounds import widest_bounds


class Marks(NamedTuple):
    """A file's marks on its entries, which a schema does not hold; see `draft.Draft`."""

    unconfirmed: tuple[str, ...]
    private: tuple[str, ...]
    left_out_confirmed: bool
    names_confirmed: bool
    constraints_confirmed: bool


def take_marks(document: dict[str, Any], where: str) -> Marks:
    """Remove the marks from a schema's entries, and leave entries that `TableSchema` reads.

    Args:
        document: the file's entries, changed in place. Columns with private bounds get the widest
            ones, dates become texts, and integers become floats if values are continuous.
        where: the file, for the message.

    Raises:
        SchemaError: a mark is invalid.
    """
    unconfirmed, private = [], []
    columns = document.get("columns")
    for column in columns if isinstance(columns, list) else ():
        if not isinstance(column, dict):
            continue
        if not _confirmed(column, "confirmed", where):
            unconfirmed.append(column.get("name", ""))
        bounds = column.pop("bounds", None)
        if bounds is not None:
            _require_private(bounds, column, where)
            private.append(column.get("name", ""))
        for bound in ("lower", "upper"):
            value = column.get(bound)
            if isinstance(value, date | datetime):  # TOML has its own dates
                column[bound] = value.isoformat()
            elif type(value) is int and column.get("kind") == ColumnKind.CONTINUOUS.value:
                column[bound] = float(value)  # people write 0 for 0.0
    return Marks(
        tuple(unconfirmed),
        tuple(private),
        left_out_confirmed=_confirmed(document, "left_out_confirmed", where),
        names_confirmed=_confirmed(document, "names_confirmed", where),
        constraints_confirmed=_confirmed(document, "constraints_confirmed", where),
    )


def _confirmed(entries: dict[str, Any], name: str, where: str) -> bool:
    """Remove the owner's confirmation from some entries; they are confirmed if it is absent."""
    confirmed = entries.pop(name, True)
    if not isinstance(confirmed, bool):
        raise SchemaError(f"{where}: {name} is true or false")
    return confirmed


def _require_private(bounds: object, column: dict[str, object], where: str) -> None:
    """Give a column that is marked `bounds = "private"` the widest bounds."""
    at = f"{where}: column {column.get('name')!r}"
    if bounds != "private":
        raise SchemaError(f'{at}: bounds = "private", or lower and upper')
    if said := [entry for entry in ("lower", "upper", "values") if entry in column]:
        raise SchemaError(f'{at}: bounds = "private" leaves no room for {" and ".join(said)}')
    try:
        kind = ColumnKind(column.get("kind"))
        transform = Transform(column.get("transform", "none"))
    except ValueError:
        return  # the schema will report it
    if not kind.numeric or kind.timed:
        raise SchemaError(
            f'{at}: columns with bounds = "private" are numeric, and no dates or times'
        )
    match column.get("dtype"), column.get("step"), column.get("decimals"):
        case (_, bool(), _) | (_, _, bool()):
            return  # likewise
        case str(dtype), int() | float() | None as step, int() | None as decimals if (
            dtype in DTYPES
        ):
            if kind is ColumnKind.INTEGER and isinstance(step, float):
                raise SchemaError(f"{at}: the step of integers is an integer")
            wide, fine = 1 if step is None else step, decimals or 0
            if 0 < wide <= LARGEST and 0 <= fine <= MOST_DECIMALS:
                column["lower"], column["upper"] = widest_bounds(
                    kind, dtype, transform, step, decimals
                )


def toml_lines(values: Mapping[str, Any]) -> list[str]:
    """One line for each entry of a TOML table."""
    return [f"{name} = {toml_value(value)}" for name, value in values.items()]


def toml_value(value: str | float | list[str]) -> str:
    """A value in TOML: texts and lists of them as in JSON."""
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
