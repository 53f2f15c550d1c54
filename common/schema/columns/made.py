"""Columns made anew from a public pattern: identifiers and texts, whose values are not read.

Their source values are neither used nor released. A generated table has such columns so that it has
all columns of its source; their values follow from the row numbers alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from ...display.text import unknown_names
from ...errors import SchemaError
from ..names import require_name

MADE: Final = "made"
"""The `kind` of such a column."""
_PATTERN: Final = re.compile(r"[^{}\0]*(\{number(:0?[1-9][0-9]?d?)?\}[^{}\0]*)?")
_WIDEST: Final = 20


@dataclass(frozen=True)
class MadeColumn:
    """A column that is made anew.

    Attributes:
        name: its name in the header.
        pattern: its text in every row, with at most one `{number}`, which counts the rows from 1;
            `{number:06d}` has six digits.
        dtype: "string", or "int64" for the pattern `{number}`.
        place: the column's position in the table, from 0.

    Guarantee:
        Nothing of it is read from the records, so nothing of them is in it. Its pattern is part of
        the schema, which is public and goes out with every release.

    Raises:
        SchemaError: the name or the pattern is invalid, or the type does not suit the pattern.
    """

    name: str
    pattern: str
    dtype: str = "string"
    place: int = 0

    def __post_init__(self) -> None:
        require_name(self.name, "a column")
        where = f"column {self.name!r}"
        require_name(self.pattern, f"{where}: a pattern", empty=True)
        found = _PATTERN.fullmatch(self.pattern)
        if found is None or int(re.sub("[^0-9]", "", found[2] or "") or 0) > _WIDEST:
            raise SchemaError(
                f'{where}: a pattern has at most one {{number}}, as in "P-{{number:06d}}"'
            )
        if self.dtype != "string" and (self.dtype, self.pattern) != ("int64", "{number}"):
            raise SchemaError(f'{where}: dtype string, or int64 with the pattern "{{number}}"')

    @property
    def texts(self) -> tuple[str, ...]:
        """What a file of it has to be able to write."""
        return (self.pattern,)

    def values(self, count: int) -> list[str] | list[int]:
        """The values of the first `count` rows."""
        numbers = range(1, count + 1)
        if self.dtype != "string":
            return list(numbers)
        return [self.pattern.format(number=number) for number in numbers]

    def to_json(self) -> dict[str, Any]:
        """A plain mapping that `from_json` reads back, with the column's position."""
        said = {"name": self.name, "kind": MADE, "pattern": self.pattern}
        return said if self.dtype == "string" else {**said, "dtype": self.dtype}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], place: int) -> MadeColumn:
        """Read what `to_json` wrote.

        Args:
            document: the mapping.
            place: its position among all columns.

        Raises:
            SchemaError: something is missing, unknown, of the wrong type, or out of range.
        """
        values = {name: value for name, value in document.items() if name != "kind"}
        where = f"column {values.get('name')!r}"
        known = {entry.name for entry in fields(cls)} - {"place"}
        if unknown := set(values) - known:
            raise SchemaError(f"{where}: {unknown_names(unknown, known)}")
        if not all(isinstance(values.get(name), str) for name in ("name", "pattern")):
            raise SchemaError(f"{where}: name and pattern are texts")
        if not isinstance(values.get("dtype", ""), str):
            raise SchemaError(f"{where}: dtype is a text")
        return cls(**values, place=place)
