"""What an HDF5 file of ours may hold, as a list; and what one holds, before its values are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

FLOAT32: Final = "<f4"
FLOAT64: Final = "<f8"
INT64: Final = "<i8"
UINT8: Final = "|u1"
"""Values of datasets, in NumPy's notation, which names the byte order too."""

TEXT: Final = "text"
INTEGER: Final = "integer"
NUMBER: Final = "number"
"""Attributes, all of them scalars: UTF-8 of variable length, int64, float64."""

Value = str | int | float


class Rule(NamedTuple):
    """What a dataset may be.

    Attributes:
        dtype: of its values.
        dimensions: how many it has at most; at least one.
    """

    dtype: str
    dimensions: int


@dataclass(frozen=True)
class Layout:
    """All that a file may hold; what is not named here is not accepted.

    Attributes:
        what: the file is, in words.
        version: of the format: the attribute `format_version`, which every file has.
        datasets: of the root group, by name.
        attributes: of the root group, by name: `TEXT`, `INTEGER` or `NUMBER`.
        groups: of the root group, by name: the rule for what is in them, datasets of any names.
        optional: names of datasets and attributes that a file may lack.
        longest_text: characters in an attribute.
    """

    what: str
    version: int
    datasets: Mapping[str, Rule]
    attributes: Mapping[str, str]
    groups: Mapping[str, Rule]
    optional: tuple[str, ...] = ()
    longest_text: int = 1 << 20

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Layout:
        """From its fields, in which JSON has made lists of tuples."""
        rules = {
            name: {key: Rule(*rule) for key, rule in document[name].items()}
            for name in ("datasets", "groups")
        }
        return cls(**{**document, **rules})

    @cached_property
    def as_json(self) -> dict[str, Any]:
        """Its fields, for `from_json`."""
        return asdict(self)

    def allows(self, names: set[str], known: set[str]) -> bool:
        """Whether names are the known ones, but perhaps for some that a file may lack."""
        return known - set(self.optional) <= names <= known


class Place(NamedTuple):
    """Where the values of a dataset lie: in one piece, row by row.

    Attributes:
        dtype: of the values.
        shape: of the dataset.
        offset: of the first byte, from the beginning of the file.
    """

    dtype: str
    shape: tuple[int, ...]
    offset: int


class Inventory(NamedTuple):
    """What is in a file, and where.

    Attributes:
        attributes: of the root group, by name.
        places: of the datasets, by their path without a slash at the beginning.
    """

    attributes: dict[str, Value]
    places: dict[str, Place]

    @classmethod
    def from_json(cls, document: Any) -> Inventory:  # noqa: ANN401 - of whatever shape
        """From its fields, in which JSON has made lists of tuples."""
        attributes, places = document
        return cls(
            attributes,
            {
                path: Place(dtype, tuple(shape), offset)
                for path, (dtype, shape, offset) in places.items()
            },
        )
