"""Privacy units: all rows with the same value in one column are protected together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import NoneType
from typing import Any, Final

from ..adjacency import Adjacency
from ..arguments import argument, integer, require_kind, set_plain
from ..errors import BudgetError, SchemaError
from .names import require_name

MOST_ROWS: Final = 10_000


@dataclass(frozen=True)
class PrivacyUnit:
    """The rows of one person, of which a limited number count.

    Example::

        PrivacyUnit("patient_id", rows=5)

    Guarantee:
        A release hides all rows of a person together, whatever they contain and however many there
        are. (docs/privacy/proofs.md, statement 21.)

    Attributes:
        column: name of the column whose values identify persons; it is part of no record.
        rows: the number of rows of one person that count; further rows are left out.

    Raises:
        SchemaError: the column has no name, or the number of rows is not supported.
    """

    column: str
    rows: int

    def __post_init__(self) -> None:
        require_name(self.column, "the column of the privacy unit")
        wanted = f"a whole number, 1 to {MOST_ROWS:,}"
        counted = f"rows of one {self.column!r} that count"
        set_plain(self, rows=integer(counted, self.rows, wanted, refusal=SchemaError))
        if not 1 <= self.rows <= MOST_ROWS:
            raise SchemaError(f"{counted} must be {wanted}")

    def require(self, adjacency: Adjacency) -> None:
        """Check that the adjacency is add-remove: how many rows there are is protected as well.

        Raises:
            BudgetError: it is not.
        """
        if adjacency is not Adjacency.ADD_REMOVE:
            raise BudgetError(
                f"all rows of one {self.column} are protected together, and so is how many there "
                f"are: add {argument('adjacency', Adjacency.ADD_REMOVE)}"
            )

    def to_json(self) -> dict[str, Any]:
        """A plain mapping that `from_json` reads back."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: object) -> PrivacyUnit:
        """Read what `to_json` wrote.

        Raises:
            SchemaError: something is missing, unknown, of the wrong type, or out of range.
        """
        if not isinstance(document, Mapping) or set(document) != {"column", "rows"}:
            raise SchemaError("privacy_unit: it has the entries column and rows")
        if not isinstance(document["column"], str):
            raise SchemaError("privacy_unit: column is a column's name")
        return cls(document["column"], document["rows"])

    @property
    def whole(self) -> str:
        """The unit that is protected, in words."""
        return f"all rows of any one {self.column}"

    @property
    def bounded(self) -> str:
        """The number of its rows that count, in words."""
        return f"at most {self.rows:,} of them count"


def rows_per_unit(unit: PrivacyUnit | None) -> int:
    """The most records that one unit contributes; 1 if each record is its own unit."""
    return 1 if unit is None else unit.rows


def declared_unit(column: str | None, rows: int | None) -> PrivacyUnit | None:
    """The privacy unit given by the options `unit` and `rows_per_unit`, if any.

    Raises:
        SchemaError: one of the two is missing.
    """
    if column is None and rows is None:
        return None
    if column is None:
        raise SchemaError(f"{argument('rows_per_unit')} means nothing without {argument('unit')}")
    if rows is None:
        raise SchemaError(
            f"{argument('unit', column)}: declare with {argument('rows_per_unit')} how many rows "
            "of one value count, such as 5: the noise grows with it, and rows beyond are left out"
        )
    return PrivacyUnit(column, rows)


def require_unit_or_none(given: object) -> None:
    """Check that an argument is a privacy unit, if there is one.

    Raises:
        SchemaError: it is of another type.
    """
    wanted = "a PrivacyUnit, such as PrivacyUnit('patient', rows=5)"
    require_kind("privacy_unit", given, (PrivacyUnit, NoneType), wanted, refusal=SchemaError)
