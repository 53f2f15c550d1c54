"""The schema of a table: what is publicly known of its columns, their bounds and categories.

The owner states it in `schema.toml` (`dpntk.common.schema.drafts.toml`). It is part of the
embedding and the release as JSON, and determines the form of a generated table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final

from ..arguments import integer, require_kind, set_plain
from ..display.representations import BriefRepr
from ..display.text import counted
from ..errors import SchemaError
from ..ledger import Entry
from .classes import some_classes
from .columns.checks import MOST_VALUES
from .columns.column import Column
from .columns.kinds import ColumnKind, Missing
from .columns.lookup import LookupColumn
from .columns.made import MadeColumn
from .columns.ranks import has_ranks, ranks_of
from .columns.unread import UnreadColumn, in_places
from .csv_format import CsvFormat
from .names import require_name
from .origin import Origin
from .privacy_unit import PrivacyUnit, require_unit_or_none
from .rules.condition import Condition
from .rules.consistency import can_hold_together
from .rules.language import parse_condition
from .spans import require_spans, rules_of
from .table_entries import MOST_COLUMNS, ORIGINS, read_entries

BINS: Final = 20
"""Soft bins of a numeric column, unless it has fewer integers."""
LEVELS: Final = 255
MOST_CONSTRAINTS: Final = 100
MOST_INPUTS: Final = 50_000
_SHAPE: Final = "kinds, types, scales, steps, formats"
"""What a schema states of all columns beside names, bounds and categories, in words. A step is a
number, decimals, or a unit of time."""
NO_LABEL: Final = "all"
"""The name of the only class in a table without a label."""
_LEFT_OUT_OF_JSON: Final[dict[str, Any]] = {
    **dict.fromkeys(ORIGINS, Origin.DECLARED.value),
    "constraints": [],
    "spent": [],
    "privacy_unit": None,
    "by_rank": [],
}
"""The default values of entries, which JSON leaves out."""


@dataclass(frozen=True, repr=False)
class TableSchema(BriefRepr):
    """A table with mixed columns: what is publicly known about it.

    Example::

        TableSchema(
            (Column.integer("age", 0, 120), Column.boolean("readmitted", ["no", "yes"])),
            label="readmitted",
            left_out=("name",),
        )

    Attributes:
        columns: the columns that are used, including the label, in the order of the source, and
            those that are the time between two others.
        label: name of the column that holds a record's class; None if there is none.
        left_out: names of the source's columns that are neither used nor generated; an empty name
            stands for all columns without a name.
        left_out_origin: who has chosen these: the owner (`DECLARED`), or a look at the data
            (`FROM_DATA`).
        names_origin: where the names of columns come from: the owner (`DECLARED`), or the first
            line of data that may lack a header, so that it may be a record (`FROM_DATA`).
        bins: number of soft bins of a numeric column; see `dpntk.common.schema.encoding`.
        csv: the format of CSV files.
        spent: earlier releases from the same records that found the bounds of columns whose origin
            is `PRIVATE`, with differential privacy. They are part of every total.
        made: columns of the source that are not read; generated tables make them from a pattern, or
            look them up by another column.
        constraints: rules that every row of a generated table keeps, in the language of
            `dpntk.common.schema.rules.language`.
        privacy_unit: the unit whose rows are protected together, identified by a column that is
            left out or among `made`; None if each row is protected by itself.
        constraints_origin: who has stated the constraints: the owner (`DECLARED`), or a look at the
            data (`FROM_DATA`).
        by_rank: names of columns of categories that are encoded as numbers, their ranks: see
            `with_ranks`.
    """

    columns: tuple[Column, ...]
    label: str | None = None
    left_out: tuple[str, ...] = ()
    bins: int = BINS
    csv: CsvFormat = field(default_factory=CsvFormat)
    spent: tuple[Entry, ...] = ()
    left_out_origin: Origin = Origin.DECLARED
    made: tuple[UnreadColumn, ...] = ()
    constraints: tuple[str, ...] = ()
    privacy_unit: PrivacyUnit | None = None
    names_origin: Origin = Origin.DECLARED
    constraints_origin: Origin = Origin.DECLARED
    by_rank: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._require_kinds()
        names = [column.name for column in self.described] + list(self.left_out)
        self._require_columns(names)
        self._require_unit(names)
        for entry in ORIGINS:
            if getattr(self, entry) not in (Origin.DECLARED, Origin.FROM_DATA):
                raise SchemaError(f'{entry} is "declared" or "from-data"')
        if not 2 <= self.bins <= 100:
            raise SchemaError(f"{self.bins} bins: 2 to 100 are supported")
        self._require_label()
        if not self.features:
            raise SchemaError("there is no column but the label")
        if bool(self.spent) != bool(self.private_bounds):
            raise SchemaError("bounds of private origin and what was spent on them go together")
        if any(not column.kind.numeric for column in self.private_bounds):
            raise SchemaError("categories are not found with differential privacy")
        require_spans(self.by_name)
        for column in self.lookups.values():
            column.require_fitting(self.by_name)
        self._require_ranks()
        self._require_encodable()
        if self.record_size > MOST_INPUTS:
            raise SchemaError(
                f"records have {self.record_size} values when encoded, at most {MOST_INPUTS} are "
                "supported: leave columns with many categories out, or list fewer and name an other"
            )
        self._require_constraints()

    def _require_kinds(self) -> None:
        """Check the types of what is easily written as something else, such as one text."""
        for name, kind, some in (
            ("columns", Column, "Columns, such as (Column.integer('age', 0, 120),)"),
            ("left_out", str, "names, such as ('name',)"),
            ("constraints", str, "texts, such as ('discharge >= admission',)"),
            ("by_rank", str, "names, such as ('stage',)"),
        ):
            given = getattr(self, name)
            require_kind(name, given, (tuple, list), f"a tuple of {some}", refusal=SchemaError)
            for each in given:
                require_kind(f"each of {name}", each, kind, f"one of {some}", refusal=SchemaError)
            set_plain(self, **{name: tuple(given)})
        # What no file holds comes last, here as in files.
        set_plain(self, columns=tuple(sorted(self.columns, key=lambda each: bool(each.between))))
        wanted = "a CsvFormat, such as CsvFormat(separator=';')"
        require_kind("csv", self.csv, CsvFormat, wanted, refusal=SchemaError)
        bins = integer("bins", self.bins, "a whole number, such as 20", refusal=SchemaError)
        set_plain(self, bins=bins)
        require_unit_or_none(self.privacy_unit)

    def _require_columns(self, names: Sequence[str]) -> None:
        """Check the number of columns, their names, and the positions of those made anew."""
        if not 1 <= len(self.columns) <= MOST_COLUMNS or len(names) > 2 * MOST_COLUMNS:
            raise SchemaError(f"{len(self.columns)} columns: 1 to {MOST_COLUMNS} are supported")
        for name in self.left_out:
            require_name(name, "a column that is left out", empty=True)
        repeated = [name for name, times in Counter(names).items() if times > 1]
        if repeated:
            raise SchemaError(f"column {repeated[0]!r} is there twice")
        places = [column.place for column in self.made]
        if places != sorted(places) or any(
            self.written[c.place : c.place + 1] != (c,) for c in self.made
        ):
            raise SchemaError("columns that are made anew: not in the order of their places")

    def _require_unit(self, names: Sequence[str]) -> None:
        """Check that the privacy unit's column is in no record, and that past releases fit it."""
        unit = self.privacy_unit
        if unit is not None and unit.column not in names:
            raise SchemaError(
                f"privacy unit: the schema does not know column {unit.column!r}: name it in "
                "left_out"
            )
        if unit is not None and unit.column in self.by_name:
            raise SchemaError(
                f"privacy unit: column {unit.column!r} tells whose a row is, so it is in no "
                "record: name it in left_out and do not describe it"
            )
        protected = None if unit is None else unit.column
        if any(entry.privacy_unit != protected for entry in self.spent):
            raise SchemaError(
                "the bounds were found for another privacy unit, and the two cannot be added up: "
                "find them anew"
            )

    def _require_label(self) -> None:
        """Check that the label is a column of at least two categories, none of them missing."""
        if self.label is None:
            return
        label = self.label_column
        if label is None:
            raise SchemaError(f"label {self.label!r}: there is no column of that name")
        if label.kind.numeric:
            raise SchemaError(
                f"label {self.label!r}: its column is {label.kind.value}, a label is "
                "categorical, ordinal or boolean"
            )
        if len(label.categories) < 2:
            raise SchemaError(
                f"label {self.label!r}: one class tells nothing: list all categories that "
                "there could be, or leave the label out"
            )
        if label.missing is not Missing.REFUSED:
            raise SchemaError(f"label {self.label!r}: a label cannot be missing")

    def _require_ranks(self) -> None:
        """Check that what is encoded by rank has ranks."""
        for name in self.by_rank:
            if name not in self.by_name or not has_ranks(self.by_name[name]):
                raise SchemaError(
                    f"by_rank: {name!r} is no column of two categories, or of up to {MOST_VALUES} "
                    "ordered ones without an other"
                )
        if len(set(self.by_rank)) < len(self.by_rank):
            raise SchemaError("by_rank: a column is there twice")

    def _require_encodable(self) -> None:
        """Check that a CSV file in the declared encoding can hold all texts of the schema."""
        for column in self.described:
            texts = (
                (column.format, *column.categories) if isinstance(column, Column) else column.texts
            )
            try:
                "".join((column.name, *texts)).encode(self.csv.encoding)
            except UnicodeError as error:
                raise SchemaError(
                    f"column {column.name!r}: {self.csv.encoding} cannot write its name or one of "
                    "its categories: choose another encoding"
                ) from error

    def _require_constraints(self) -> None:
        """Check that there are not too many constraints, and that some row keeps all of them."""
        repeated = len(set(self.constraints)) < len(self.constraints)
        if len(self.constraints) > MOST_CONSTRAINTS or repeated:
            raise SchemaError(f"constraints: {MOST_CONSTRAINTS} at most, and none of them twice")
        if not can_hold_together(self.rules, self.by_name):
            raise SchemaError("constraints: no row between the bounds keeps all of them")

    @cached_property
    def features(self) -> tuple[Column, ...]:
        """All columns but the label."""
        return tuple(column for column in self.columns if column.name != self.label)

    @cached_property
    def encoded(self) -> tuple[Column, ...]:
        """The features as records hold them: by rank, categories are the integers of their rank."""
        return tuple(
            ranks_of(column) if column.name in self.by_rank else column for column in self.features
        )

    @cached_property
    def stored(self) -> tuple[Column, ...]:
        """The columns that the source has: all but the time between two others."""
        return tuple(column for column in self.columns if not column.between)

    @cached_property
    def written(self) -> tuple[Column | UnreadColumn, ...]:
        """All columns of a generated table, in the order of the source."""
        found: list[Column | UnreadColumn] = list(self.stored)
        for column in self.made:
            found.insert(column.place, column)
        return tuple(found)

    @cached_property
    def described(self) -> tuple[Column | UnreadColumn, ...]:
        """All columns, in the order of the source; what it has not, comes last."""
        return (*self.written, *(column for column in self.columns if column.between))

    @cached_property
    def longest_row(self) -> int:
        """The number of characters in the texts of a generated row, at most."""
        texts = (
            column.categories if isinstance(column, Column) else column.texts
            for column in self.written
        )
        return sum(max(map(len, each), default=0) for each in texts)

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """The columns that are used, by name."""
        return {column.name: column for column in self.columns}

    @cached_property
    def lookups(self) -> dict[str, LookupColumn]:
        """The columns that follow from others, by name."""
        return {column.name: column for column in self.made if isinstance(column, LookupColumn)}

    @cached_property
    def rules(self) -> tuple[Condition, ...]:
        """The rules of `rule_texts`, parsed."""
        return tuple(map(self.condition, self.rule_texts))

    def condition(self, text: str) -> Condition:
        """Parse a condition on rows; see `dpntk.common.schema.rules.language`.

        Raises:
            SchemaError: it is invalid, mentions unknown columns or categories, or no row can fulfil
                it.
        """
        return parse_condition(text, self.by_name, self.lookups)

    @cached_property
    def rule_texts(self) -> tuple[str, ...]:
        """The constraints, and what ties the time between two columns to them."""
        spans = (column for column in self.columns if column.between)
        return (*self.constraints, *(rule for span in spans for rule in rules_of(span)))

    @cached_property
    def label_column(self) -> Column | None:
        """The column that holds a record's class, if any."""
        return next((column for column in self.columns if column.name == self.label), None)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of all classes: the label's categories, or one class without a label."""
        return (NO_LABEL,) if self.label_column is None else self.label_column.categories

    def knots(self, column: Column) -> int:
        """The number of a numeric column's soft bins.

        If it has at most `bins` values, in equal steps or listed, each has its own bin.
        """
        return min(self.bins, column.different or self.bins)

    def width(self, column: Column) -> int:
        """The number of values of one of the `encoded` columns in a record."""
        if column.kind.numeric:
            return 1 + self.knots(column) + (column.missing is Missing.INDICATOR)
        return column.choices + (column.kind is ColumnKind.ORDINAL)

    @cached_property
    def record_size(self) -> int:
        """Number of values in an encoded record."""
        return sum(map(self.width, self.encoded))

    @property
    def levels(self) -> int:
        """Encoded records hold integers 0..levels, which stand for the values 0..1."""
        return LEVELS

    @property
    def from_data(self) -> tuple[str, ...]:
        """The pieces that were looked up in the records, and so are outside the guarantee."""
        described = [c.name for c in self.columns if c.origin is Origin.FROM_DATA]
        bounded = [c.name for c in self.columns if c.kind_origin is Origin.FROM_DATA]
        found = []
        if self.names_origin is Origin.FROM_DATA:
            found.append("names of the columns")
        if described:
            bounds = _bounds(c for c in self.columns if c.origin is Origin.FROM_DATA)
            what = f"{_SHAPE}, {bounds}, categories, and whether values are missing, of"
            found.append(f"{what} {', '.join(described)}")
        if bounded:
            what = f"{_SHAPE}, and whether values are missing, of"
            found.append(f"{what} {', '.join(bounded)}")
        if self.left_out_origin is Origin.FROM_DATA:
            found.append("which columns are left out")
        if self.constraints_origin is Origin.FROM_DATA:
            found.append("which constraints all rows keep")
        if looked_up := [c for c in self.lookups.values() if c.origin is Origin.FROM_DATA]:
            found.append(_following(looked_up))
        return tuple(found)

    def with_privacy_unit(self, unit: PrivacyUnit) -> TableSchema:
        """The schema with a privacy unit, whose column is in no record.

        Raises:
            SchemaError: there is no such column, the label or a constraint needs it, or the schema
                has another unit or bounds that were found for another unit.
        """
        if self.privacy_unit not in (None, unit):
            raise SchemaError("the schema has another privacy unit: change it there, or leave it")
        if unit.column not in self.by_name:
            return replace(self, privacy_unit=unit)
        if self.by_name[unit.column].between:
            raise SchemaError(
                f"privacy unit: column {unit.column!r} is computed from others: no file holds it"
            )
        return replace(
            self,
            **in_places(column for column in self.described if column.name != unit.column),
            left_out=(*self.left_out, unit.column),
            privacy_unit=unit,
        )

    def with_ranks(self) -> TableSchema:
        """The schema by which to encode rows if a release measures all pairs of numbers.

        Categories with an order are encoded by rank: then they are measured in these pairs, too,
        and the estimates of numbers hold for them. With a label this is worth it for ordered
        categories alone, and if they are no more than the numbers: much of what goes together is
        what each class says of each column, which more pairs would drown.
        """
        ranked = [column for column in self.features if has_ranks(column)]
        if self.label is not None:
            ranked = [column for column in ranked if column.kind is ColumnKind.ORDINAL]
            if len(ranked) > sum(column.kind.numeric for column in self.features):
                return self
        return replace(self, by_rank=tuple(column.name for column in ranked))

    @property
    def private_bounds(self) -> tuple[Column, ...]:
        """The columns whose bounds were found with differential privacy."""
        return tuple(column for column in self.columns if column.origin is Origin.PRIVATE)

    @property
    def known(self) -> tuple[str, ...]:
        """What is taken as public, in words."""
        found = ", ".join(column.name for column in self.private_bounds)
        but = f" (but for the bounds of {found})" if found else ""
        made = any(isinstance(column, MadeColumn) for column in self.made)
        patterns = ("patterns of columns that are made anew",) if made else ()
        lookups = (_following(self.lookups.values()),) if self.lookups else ()
        rules = ("constraints on rows",) if self.constraints else ()
        unit = self.privacy_unit
        counting = () if unit is None else (f"number of rows of one {unit.column} that count",)
        return (
            f"names, {_SHAPE}, {_bounds(self.columns)} and categories of the columns{but}, and "
            "which of them may lack values",
            *patterns,
            *lookups,
            *rules,
            *counting,
        )

    @property
    def summary(self) -> str:
        """What the records are, in words."""
        classes = "" if self.label is None else f", {self.label} in {some_classes(self.classes)}"
        return f"{self.noun}{classes}"

    @property
    def noun(self) -> str:
        """The plural noun for the records."""
        return f"rows of {counted(len(self.columns), 'column')}"

    def to_json(self) -> dict[str, Any]:
        """A plain mapping that `from_json` reads back."""
        document = {
            "kind": "table",
            "columns": [column.to_json() for column in self.described],
            "label": self.label,
            "left_out": list(self.left_out),
            "left_out_origin": self.left_out_origin.value,
            "names_origin": self.names_origin.value,
            "bins": self.bins,
            "csv": self.csv.to_json(),
            "constraints": list(self.constraints),
            "constraints_origin": self.constraints_origin.value,
            "spent": [entry.to_json() for entry in self.spent],
            "privacy_unit": None if self.privacy_unit is None else self.privacy_unit.to_json(),
            "by_rank": list(self.by_rank),
        }
        return {
            name: value
            for name, value in document.items()
            if name not in _LEFT_OUT_OF_JSON or value != _LEFT_OUT_OF_JSON[name]
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TableSchema:
        """Read what `to_json` wrote.

        Raises:
            SchemaError: something is missing, of the wrong type, or out of range.
        """
        schema = cls.of_entries({name: document[name] for name in document if name != "kind"})
        if schema.to_json() != dict(document):
            raise SchemaError("not a schema that this dpntk reads: unknown entries")
        return schema

    @classmethod
    def of_entries(cls, document: Mapping[str, Any]) -> TableSchema:
        """Read a mapping in which default values may be left out.

        Raises:
            SchemaError: something is missing, unknown, of the wrong type, or out of range.
        """
        known = {entry.name for entry in fields(cls)} - {"made"}  # these are among the columns
        return cls(**read_entries(document, known))


def _following(columns: Iterable[LookupColumn]) -> str:
    """What is known of columns that follow from others, in words."""
    return "values of " + ", ".join(f"{each.name} for each {each.of}" for each in columns)


def _bounds(columns: Iterable[Column]) -> str:
    """What is known of numbers, in words."""
    return "bounds, listed values" if any(column.values for column in columns) else "bounds"
