"""Columns that follow from another one by a public table, as a region follows from a district.

Their source values are neither used nor released, so they get no noise and cannot contradict the
column that they follow from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...arguments import set_plain
from ...display.text import some_of, unknown_names
from ...errors import SchemaError
from ..names import require_name
from ..origin import Origin
from .codes import MISSING
from .column import Column
from .dtypes import DTYPES, number_of

LOOKUP: Final = "lookup"
"""The `kind` of such a column."""


@dataclass(frozen=True)
class LookupColumn:
    """A column that is looked up: each category of another column has one value.

    Example::

        LookupColumn("make", of="model", values={"Golf": "VW", "Polo": "VW", "Clio": "Renault"})

    Attributes:
        name: its name in the header.
        of: the name of the column that it follows from, which holds categories.
        values: its value for each category of that column. Where the column is missing, so is it.
        dtype: one of `DTYPES` but "bool"; a type of numbers holds all values.
        place: the column's position in the table, from 0.
        origin: who has stated the values: the owner (`DECLARED`), or a look at the data
            (`FROM_DATA`).

    Guarantee:
        It is not read when records are embedded. Its values are part of the schema, which is public
        and goes out with every release; if a look at the data decided them (`origin`), the release
        says so.

    Raises:
        SchemaError: a text is too long, or the type does not hold a value.
    """

    name: str
    of: str
    values: Mapping[str, str] = field(hash=False)
    dtype: str = "string"
    place: int = 0
    origin: Origin = Origin.DECLARED

    def __post_init__(self) -> None:
        require_name(self.name, "a column")
        where = f"column {self.name!r}"
        given: object = self.values
        texts = [*given.keys(), *given.values()] if isinstance(given, Mapping) else [None]
        if not all(isinstance(text, str) for text in texts):
            raise SchemaError(f"{where}: values maps each category of {self.of!r} to a text")
        set_plain(self, values=dict(self.values))
        for value in self.values.values():
            require_name(value, f"{where}: a value", empty=True)
        if self.dtype not in DTYPES or self.dtype == "bool":
            raise SchemaError(f"{where}: dtype {self.dtype!r}: known are string and numbers")
        if self.dtype != "string" and len(self.numbers) < len(self.categories):
            raise SchemaError(
                f"{where}: dtype {self.dtype} does not hold all of its values: say string"
            )
        if len(set(self.numbers)) != len(self.numbers):
            raise SchemaError(f"{where}: two of its values are the same number")
        if self.origin not in (Origin.DECLARED, Origin.FROM_DATA):
            raise SchemaError(f'{where}: origin is "declared" or "from-data"')

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """Its different values, in their order in `values`."""
        return tuple(dict.fromkeys(self.values.values()))

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers that the different values stand for; none if its type is "string"."""
        numbers = (number_of(value, self.dtype) for value in self.categories)
        return tuple(number for number in numbers if number is not None)

    @property
    def texts(self) -> tuple[str, ...]:
        """What a file of it has to be able to write."""
        return self.categories

    def require_fitting(self, columns: Mapping[str, Column]) -> None:
        """Check that it has a value for each category of a column that there is, and no others.

        Args:
            columns: the columns that are read, by name.

        Raises:
            SchemaError: it has not.
        """
        where = f"column {self.name!r}"
        source = columns.get(self.of)
        if source is None:
            raise SchemaError(f"{where}: of: the schema describes no column {self.of!r}")
        if source.kind.numeric:
            raise SchemaError(
                f"{where}: of: {self.of!r} is {source.kind.value}, and has no categories"
            )
        lacking = [each for each in source.categories if each not in self.values]
        if lacking:
            raise SchemaError(f"{where}: values lack categories of {self.of!r}", some_of(lacking))
        known = set(source.categories)  # which may be thousands
        strange = [each for each in self.values if each not in known]
        if strange:
            raise SchemaError(f"{where}: values of no category of {self.of!r}", some_of(strange))

    def looked_up(self, source: Column, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The codes of its values.

        Args:
            source: the column that it follows from.
            codes: of that column's categories, int64 (n,), with `MISSING`.

        Returns:
            Indices into `categories`, int64 (n,), with `MISSING`.
        """
        index = {value: code for code, value in enumerate(self.categories)}
        table = np.array([*(index[self.values[each]] for each in source.categories), MISSING])
        found: NDArray[np.int64] = table[codes]  # the last one where codes are -1
        return found

    def to_json(self) -> dict[str, Any]:
        """A plain mapping that `from_json` reads back, with the column's position."""
        said = {"name": self.name, "kind": LOOKUP, "of": self.of, "values": dict(self.values)}
        if self.dtype != "string":
            said["dtype"] = self.dtype
        if self.origin is not Origin.DECLARED:
            said["origin"] = self.origin.value
        return said

    @classmethod
    def from_json(cls, document: Mapping[str, Any], place: int) -> LookupColumn:
        """Read what `to_json` wrote.

        Args:
            document: the mapping.
            place: its position among all columns.

        Raises:
            SchemaError: something is missing, unknown, of the wrong type, or out of range.
        """
        entries = {name: value for name, value in document.items() if name != "kind"}
        where = f"column {entries.get('name')!r}"
        known = {entry.name for entry in fields(cls)} - {"place"}
        if unknown := set(entries) - known:
            raise SchemaError(f"{where}: {unknown_names(unknown, known)}")
        texts = (entries.get("name"), entries.get("of"), entries.get("dtype", ""))
        if not all(isinstance(text, str) for text in texts):
            raise SchemaError(f"{where}: name, of and dtype are texts")
        if not isinstance(entries.get("values"), dict):
            raise SchemaError(f"{where}: values maps each category of another column to a text")
        try:
            origin = Origin(entries.pop("origin", Origin.DECLARED.value))
        except ValueError as error:
            raise SchemaError(f'{where}: origin is "declared" or "from-data"') from error
        return cls(**entries, place=place, origin=origin)
