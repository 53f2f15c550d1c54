"""The whitelist for our HDF5 files, and the inventory of one before its values are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

FLOAT32: Final = "<f4"
FLOAT64: Final = "<f8"
INT64: Final = "<i8"
UINT8: Final = "|u1"
"""Types of datasets, in NumPy's notation, which includes the byte order."""

TEXT: Final = "text"
INTEGER: Final = "integer"
NUMBER: Final = "number"
"""Types of attributes, all scalars: UTF-8 of variable length, int64, float64."""

Value = str | int | float


class Rule(NamedTuple):
    """The rule for a dataset.

    Attributes:
        dtype: the type of its values.
        dimensions: the most dimensions that it may have; the least is one.
    """

    dtype: str
    dimensions: int


@dataclass(frozen=True)
class Layout:
    """Everything that a file may hold; anything else is refused.

    Attributes:
        what: the kind of file, in words.
        version: the version of the format: the attribute `format_version`, which every file has.
        datasets: the rules for the root group's datasets, by name.
        attributes: the types of the root group's attributes, by name: `TEXT`, `INTEGER` or
            `NUMBER`.
        groups: the root group's groups, by name, each with the rule for its datasets, which may
            have any names.
        optional: names of datasets and attributes that a file may lack.
        longest_text: the most characters in an attribute.
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
        """Make it from its fields, in which JSON has turned tuples into lists."""
        rules = {
            name: {key: Rule(*rule) for key, rule in document[name].items()}
            for name in ("datasets", "groups")
        }
        return cls(**{**document, **rules})

    @cached_property
    def as_json(self) -> dict[str, Any]:
        """The fields, for `from_json`."""
        return asdict(self)

    def allows(self, names: set[str], known: set[str]) -> bool:
        """Whether names are the known ones, apart from optional names that are missing."""
        return known - set(self.optional) <= names <= known


class Place(NamedTuple):
    """The place of a dataset's values, which lie in one piece, row by row.

    Attributes:
        dtype: the type of the values.
        shape: the shape of the dataset.
        offset: the offset of the first byte from the beginning of the file.
    """

    dtype: str
    shape: tuple[int, ...]
    offset: int


class Inventory(NamedTuple):
    """The contents of a file and their places.

    Attributes:
        attributes: the root group's attributes, by name.
        places: the places of the datasets, by their path without a leading slash.
    """

    attributes: dict[str, Value]
    places: dict[str, Place]

    @classmethod
    def from_json(cls, document: Any) -> Inventory:  # noqa: ANN401 - of whatever shape
        """Make it from its fields, in which JSON has turned tuples into lists."""
        attributes, places = document
        return cls(
            attributes,
            {
                path: Place(dtype, tuple(shape), offset)
                for path, (dtype, shape, offset) in places.items()
            },
        )
