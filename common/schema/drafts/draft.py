"""Drafts of a table's schema: what is stated, and what its owner has not confirmed yet.

`dpntk schema` drafts a schema from the data; the owner must confirm what it looked up there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from ...arguments import require_flag, require_kind
from ...display.representations import RedactedRepr
from ...display.text import some_of
from ...errors import SchemaError
from ...ledger import Entry
from ...storage.plain import parse_toml
from ..columns.column import Column
from ..columns.lookup import LookupColumn
from ..columns.made import MadeColumn
from ..columns.unread import UnreadColumn, in_places
from ..origin import Origin
from ..privacy_unit import PrivacyUnit
from ..table import TableSchema
from .private_bounds import approx_bounds_schema, with_private_bounds
from .toml_entries import take_marks, toml_lines, toml_value

SCHEMA_BEGINS: Final = "# What is publicly known of a table."
"""The first line that dpntk writes; a file that an owner has written may lack it."""
_DECLARED: Final = (str, Column, LookupColumn)
_WANTED: Final = "a Column, or the name of one"
_HELD: Final = "draft"
"""The name in messages of a draft that is in no file."""


@dataclass(frozen=True, repr=False)
class Draft(RedactedRepr):
    """A schema as in a file, parts of which the owner may still have to confirm.

    Attributes:
        stated: what the file says, confirmed or not.
        unconfirmed: names of the columns that were looked up in the data, all but their names, and
            are not confirmed, also of columns that follow from others; for those in `private`, and
            those whose bounds were found with differential privacy, all but names and bounds.
        private: names of the columns whose bounds are to be found with differential privacy; in
            `stated` they have the widest bounds.
        left_out_confirmed: whether the owner confirms which columns are left out.
        names_confirmed: whether the owner confirms the names of columns. If they could be values,
            they may be a record: a file without a header begins with one.
        constraints_confirmed: whether the owner confirms the constraints, or that there are none.
    """

    stated: TableSchema
    unconfirmed: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    left_out_confirmed: bool = True
    names_confirmed: bool = True
    constraints_confirmed: bool = True

    @property
    def schema(self) -> TableSchema:
        """What the file says, with unconfirmed parts marked as looked up in the data."""
        columns = in_places(
            _from_data(column) if column.name in self.unconfirmed else column
            for column in self.stated.described
        )
        chosen = self.stated.left_out_origin if self.left_out_confirmed else Origin.FROM_DATA
        named = self.stated.names_origin if self.names_confirmed else Origin.FROM_DATA
        ruled = self.stated.constraints_origin if self.constraints_confirmed else Origin.FROM_DATA
        return replace(
            self.stated, **columns, left_out_origin=chosen, names_origin=named,
            constraints_origin=ruled,
        )  # fmt: skip

    def confirm(
        self,
        *columns: Column | LookupColumn | str,
        names: bool = False,
        constraints: Collection[str] | None = None,
    ) -> Draft:
        """The draft with the owner's confirmations.

        Args:
            columns: each is a column as publicly known, which replaces the drafted one of its name,
                be it read or looked up by another; or the name of a column that is publicly known
                as drafted, or that is left out whatever it holds.
            names: whether the names of all columns are publicly known, if some could be values.
            constraints: all rules that are known to hold for every row of any such table; they
                replace the drafted ones, which stay as they are if None.

        Raises:
            SchemaError: there is no such column, or a constraint is invalid.
        """
        require_flag("names", names, refusal=SchemaError)
        for column in columns:
            require_kind("confirm", column, _DECLARED, _WANTED, refusal=SchemaError)
        if constraints is not None and (
            isinstance(constraints, str) or not isinstance(constraints, Iterable)
        ):
            raise SchemaError("constraints must be a list of rules, such as ['age >= 18']")
        known = {each.name: _declared(each) for each in columns if not isinstance(each, str)}
        chosen = {column if isinstance(column, str) else column.name for column in columns}
        drafted = {column.name for column in self.stated.described}
        for name in chosen - drafted:
            if name in known or name not in self.stated.left_out:
                raise SchemaError(f"confirm: the draft has no column {name!r}")
        described = (known.get(column.name, column) for column in self.stated.described)
        rules = self.stated.constraints if constraints is None else tuple(constraints)
        return Draft(
            replace(self.stated, **in_places(described), constraints=rules),
            tuple(name for name in self.unconfirmed if name not in chosen),
            tuple(name for name in self.private if name not in known),
            self.left_out_confirmed or chosen.issuperset(self.stated.left_out),
            self.names_confirmed or names,
            self.constraints_confirmed or constraints is not None,
        )

    def with_privacy_unit(self, unit: PrivacyUnit) -> Draft:
        """The draft with a privacy unit, whose column is not described.

        Raises:
            SchemaError: see `TableSchema.with_privacy_unit`.
        """
        return replace(
            self,
            stated=self.stated.with_privacy_unit(unit),
            unconfirmed=tuple(name for name in self.unconfirmed if name != unit.column),
            private=tuple(name for name in self.private if name != unit.column),
        )

    def settled(self, where: str = _HELD, *, accept_from_data: bool = False) -> TableSchema:
        """The schema to work with.

        Args:
            where: the file, for the message; a draft in Python if not given.
            accept_from_data: keep what was looked up as it is: it is marked as from the data, and
                every release says that it is outside the guarantee.

        Raises:
            SchemaError: something is unconfirmed and that is not accepted.
        """
        require_flag("accept_from_data", accept_from_data, refusal=SchemaError)
        if not accept_from_data:
            self._require_names(where)  # before any message that quotes names
        if self.private:
            raise SchemaError(
                f"{where}: bounds of {some_of(self.private)} are private: find them first, with "
                "'dpntk embed DATA --schema SCHEMA.TOML --private-bounds' and 'dpntk bounds', or "
                "declare them"
            )
        if not accept_from_data:
            self._require_confirmed(where, self.unconfirmed)
            if not self.left_out_confirmed:
                raise _not_confirmed(
                    where,
                    "the data decided which columns are left out",
                    in_file="name in left_out those that you leave out whatever is in them and "
                    "remove 'left_out_confirmed = false'",
                    held=f"if you leave {some_of(self.stated.left_out)} out whatever is in them, "
                    "draft.confirm(*draft.schema.left_out)",
                )
            self._require_constraints(where)
        return self.schema

    def approx_bounds_schema(self, where: str, *, accept_from_data: bool = False) -> TableSchema:
        """The schema for counting the magnitudes of the columns in `private`.

        Their kinds and types shape the counts, so they must be settled.

        Args:
            where: the file, for the message.
            accept_from_data: see `settled`; what was looked up stays unconfirmed in the draft.

        Raises:
            SchemaError: there is no such column, or one is unconfirmed and not accepted.
        """
        if not accept_from_data:
            self._require_names(where)
            self._require_confirmed(
                where, tuple(name for name in self.private if name in self.unconfirmed)
            )
        return approx_bounds_schema(self.stated, self.private)

    def _require_names(self, where: str) -> None:
        if not self.names_confirmed:
            raise _not_confirmed(
                where,
                "some columns are named as a value of theirs could be, as where a record stands "
                "in the place of the header",
                in_file="if they are publicly known, remove 'names_confirmed = false'; if not, "
                "give the data a header and draft again",
                held="if they are publicly known, draft.confirm(names=True); if not, give the data "
                "a header (pandas.read_csv(..., header=None, names=[...])) and draft again",
            )

    def _require_constraints(self, where: str) -> None:
        if not self.constraints_confirmed:
            raise _not_confirmed(
                where,
                "which constraints rows keep was looked up in the data",
                in_file="keep under constraints those that are known to hold for every row of any "
                "such table, if any, and remove 'constraints_confirmed = false'",
                held="draft.confirm(constraints=[...]) those that hold for every row of any such "
                "table",
            )

    def _require_confirmed(self, where: str, unconfirmed: tuple[str, ...]) -> None:
        if unconfirmed:
            raise _not_confirmed(
                where,
                some_of(unconfirmed),
                in_file="replace what was looked up in the data by what is publicly known and "
                "remove 'confirmed = false'",
                held="draft.confirm() them: columns as they are publicly known, or the names of "
                "those that are so as they were looked up",
            )

    def with_bounds(
        self, bounds: Mapping[str, tuple[float, float]], spent: tuple[Entry, ...]
    ) -> Draft:
        """The draft with bounds that were found with differential privacy.

        Columns whose bounds were not found stay in `private`, and so does a column whose bounds,
        with those of columns before it, contradict a constraint: what was spent has to be kept.

        Args:
            bounds: the bounds of columns in `private`.
            spent: the releases that found them, and earlier ones from the same records.

        Raises:
            SchemaError: all of them contradict constraints, and no bounds were found before.
        """
        known = {entry.release_id for entry in self.stated.spent}
        everything = (*self.stated.spent, *(e for e in spent if e.release_id not in known))
        with suppress(SchemaError):
            return self._bounded(bounds, everything)
        kept: dict[str, tuple[float, float]] = {}
        for name, each in bounds.items():
            with suppress(SchemaError):
                self._bounded({**kept, name: each}, everything)
                kept[name] = each
        if not kept and not self.stated.private_bounds:
            raise SchemaError("the bounds that were found contradict the constraints")
        return self._bounded(kept, everything)

    def _bounded(
        self, bounds: Mapping[str, tuple[float, float]], spent: tuple[Entry, ...]
    ) -> Draft:
        columns = tuple(
            with_private_bounds(column, bounds[column.name]) if column.name in bounds else column
            for column in self.stated.columns
        )
        left = tuple(name for name in self.private if name not in bounds)
        return replace(
            self, stated=replace(self.stated, columns=columns, spent=spent), private=left
        )

    def to_toml(self) -> str:
        """The text of a `schema.toml` that `from_toml` reads back."""
        schema = self.stated
        lines = [f"{SCHEMA_BEGINS} See docs/guide/tables.md.", ""]
        if not self.names_confirmed:
            lines.append(
                "names_confirmed = false  # the first line looks like a record: is there no header?"
            )
        elif schema.names_origin is not Origin.DECLARED:
            lines.append(f"names_origin = {toml_value(schema.names_origin.value)}")
        if schema.label is not None:
            lines.append(f"label = {toml_value(schema.label)}")
        lines.append(f"left_out = {toml_value(list(schema.left_out))}")
        if not self.left_out_confirmed:
            lines.append("left_out_confirmed = false  # which these are, the data decided")
        elif schema.left_out_origin is not Origin.DECLARED:
            lines.append(f"left_out_origin = {toml_value(schema.left_out_origin.value)}")
        if schema.constraints:
            lines += ["constraints = [", *(f"  {toml_value(c)}," for c in schema.constraints), "]"]
        if not self.constraints_confirmed:
            lines.append("constraints_confirmed = false  # which ones rows keep, the data show")
        elif schema.constraints_origin is not Origin.DECLARED:
            lines.append(f"constraints_origin = {toml_value(schema.constraints_origin.value)}")
        lines += [f"bins = {schema.bins}", "", "[csv]", *toml_lines(schema.csv.to_json())]
        for column in schema.described:
            lines += ["", "[[columns]]", *self._lines_of(column)]
        if schema.privacy_unit is not None:
            lines += ["", "[privacy_unit]  # whose rows are protected together"]
            lines += toml_lines(schema.privacy_unit.to_json())
        for entry in schema.spent:
            lines += ["", "[[spent]]  # on the bounds of private origin; never remove this"]
            lines += toml_lines(entry.to_json())
        return "\n".join(lines) + "\n"

    def _lines_of(self, column: Column | UnreadColumn) -> list[str]:
        """The file's lines for a column."""
        if not isinstance(column, Column):
            return self._lines_of_unread(column)
        lines, unsaid = [], set()
        if column.name in self.unconfirmed:
            private = column.name in self.private or column.origin is Origin.PRIVATE
            bounds = "" if private else ", bounds"
            values = ", listed values" if column.values else ""
            what = f"scale, step, format{bounds}{values}" if column.kind.numeric else "categories"
            lines.append(
                f"confirmed = false  # kind, type, {what} and whether values are missing were "
                "looked up in the data"
            )
        if column.origin is Origin.DECLARED:
            unsaid.add("origin")
        if column.name in self.private:
            lines.append('bounds = "private"')
            unsaid |= {"lower", "upper"}
        said = column.to_json()
        return lines + toml_lines({name: said[name] for name in said if name not in unsaid})

    def _lines_of_unread(self, column: UnreadColumn) -> list[str]:
        lines = []
        if column.name in self.unconfirmed:
            lines.append("confirmed = false  # how its values follow was looked up in the data")
        said = column.to_json()
        values = said.pop("values", None)
        lines += toml_lines(said)
        if values is not None:
            lines += ["[columns.values]"]
            lines += [f"{toml_value(each)} = {toml_value(values[each])}" for each in values]
        return lines

    @classmethod
    def from_toml(cls, text: str, where: str) -> Draft:
        """Read the text of a `schema.toml`.

        Args:
            text: the file's text.
            where: the file, for the message.

        Raises:
            SchemaError: it is not TOML, or not a schema.
        """
        try:
            document = parse_toml(text)
        except ValueError as error:
            raise SchemaError(f"{where}: not TOML for a schema: {error}") from error
        marks = take_marks(document, where)
        try:
            return cls(TableSchema.of_entries(document), *marks)
        except SchemaError as error:
            raise SchemaError(f"{where}: {error}", error.value) from error


def _from_data(column: Column | UnreadColumn) -> Column | UnreadColumn:
    """A column marked as looked up in the data; privately found bounds keep their mark."""
    if isinstance(column, MadeColumn):  # there is nothing to look up
        return column
    if isinstance(column, Column) and column.origin is Origin.PRIVATE:
        return replace(column, kind_origin=Origin.FROM_DATA)
    return replace(column, origin=Origin.FROM_DATA)


def _declared(column: Column | LookupColumn) -> Column | LookupColumn:
    """A column marked as declared by the owner."""
    if isinstance(column, LookupColumn):
        return replace(column, origin=Origin.DECLARED)
    looked_up = column.origin is Origin.FROM_DATA
    return replace(
        column,
        origin=Origin.DECLARED if looked_up else column.origin,
        kind_origin=Origin.DECLARED,
    )


def _not_confirmed(where: str, what: str, *, in_file: str, held: str) -> SchemaError:
    """An error that says what to do about unconfirmed parts, in a file or in Python."""
    advice = f"{in_file}; or --accept-from-data"
    if where == _HELD:
        advice = f"{held}; or settled(accept_from_data=True)"
    return SchemaError(
        f"{where}: not confirmed: {what}: {advice}, and the release will say that they are outside "
        "its guarantee"
    )
