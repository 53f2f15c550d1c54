"""Drafting a table's schema from the table, for its owner to correct and confirm."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...common.arguments import argument, require_flag, require_kind
from ...common.display.console import notice, warning
from ...common.display.text import counted, so_many, some_of, typed
from ...common.errors import DataError, SchemaError
from ...common.schema.columns.column import Column
from ...common.schema.columns.dtypes import DTYPES
from ...common.schema.columns.kinds import Missing
from ...common.schema.csv_format import MISSING_TEXTS, CsvFormat
from ...common.schema.drafts.draft import Draft
from ...common.schema.privacy_unit import PrivacyUnit, require_unit_or_none
from ...common.schema.table import TableSchema
from ...common.sources.arrow_types import type_name
from ...common.sources.base import require_records
from ...common.sources.parquet import opened, read_rows, reading_parquet
from ...common.sources.paths import AnyPath, located
from ...common.sources.tables.csv import is_csv, read_csv, read_header
from ...common.sources.tables.frames import Frame, FrameSource, is_frame, to_arrow
from ...common.sources.tables.rows import ROWS_AT_ONCE
from ...common.sources.tables.table import TableSource, find_tables, require_distinct
from ...common.sources.tables.views import without_views
from .column import MOST_LABELS, TIMED, SeenColumn
from .lookups import with_lookups
from .rules import proposed_constraints
from .spans import with_spans

if TYPE_CHECKING:
    import pyarrow as pa

ANY_MISSING: Final = CsvFormat(missing=MISSING_TEXTS)
_WHOSE: Final = re.compile(r"(^|.*[^a-zA-Z])id|.*[a-z]I[dD]|ID|Id|.*[^a-zA-Z]ID")
"""Names of columns that may identify a person, such as patient_id."""


def draft_schema(
    data: Path | str | Frame,
    label: str | None = None,
    *,
    csv: CsvFormat = ANY_MISSING,
    split: str = "train",
    columns: Collection[str] | None = None,
    privacy_unit: PrivacyUnit | None = None,
    constraints: bool = False,
) -> Draft:
    """Draft a schema from a table's columns, types and values, for its owner to confirm.

    Example::

        draft = draft_schema("patients.csv", label="readmitted")
        draft = draft.confirm(Column.integer("age", 0, 120), "ward", "readmitted")
        schema = draft.settled()

    Guarantee:
        None. The draft is sensitive: bounds and categories are those of the data, and a single
        record may decide kinds, types and missing values. Column names are unconfirmed, too, if
        they may be a record because the data lack a header.

    Args:
        data: a CSV or Parquet file, or a folder of them; an address in object storage, such as
            "s3://bucket/file.csv"; or a table in memory, such as a DataFrame.
        label: name of the column that holds the class.
        csv: how the CSV files are written, and which texts stand for missing values.
        split: "train" or "test", if a folder has both.
        columns: names of the columns to describe; all others but the label are left out, unread. If
            None, all columns that can be described are.
        privacy_unit: the unit whose rows are protected together; its column is left out, unread.
        constraints: whether to draft constraints as well: rules that all rows keep, such as
            "total = drugs + care"; the time between two dates, one of which is never before the
            other, as a column of its own; and columns that follow from another one, as a region
            follows from a district. This reads the table two or three times more.

    Returns:
        The draft. `confirm` what is publicly known, or replace it; then call `settled`.

    Raises:
        DataError: the data cannot be read, or have no rows.
        SchemaError: there is no such label, or no column that a schema can describe.
    """
    if isinstance(columns, str):
        raise SchemaError("columns must be a list of names, such as ['age', 'sex'], not a text")
    require_flag("constraints", constraints, refusal=SchemaError)
    require_kind("csv", csv, CsvFormat, "a CsvFormat, such as CsvFormat(';')", refusal=SchemaError)
    require_unit_or_none(privacy_unit)
    chosen = None if columns is None else {*columns, *filter(None, [label])}
    unit = None if privacy_unit is None else privacy_unit.column
    where, held = _found_at(data)
    seen, places, unread = _seen_in(held, where, csv, split, chosen, unit)
    _require_asked_for(where, seen, places, label, chosen, unit)
    if seen:
        require_records(max(each.texts + each.lacking for each in seen.values()), where)
    in_memory = not isinstance(held, (str, Path))
    doubtful = _say_if_names_may_be_values(where, seen, places, in_memory=in_memory)
    described = _described(where, seen, label, places if doubtful else None)
    found = tuple(column for column in described.values() if column is not None)
    left_out = tuple(name for name, column in described.items() if column is None)
    if not found:
        raise SchemaError(
            f"{where}: no column has numbers, dates, durations, or texts that are few"
        )
    _say_how_missing_is_written([seen[column.name] for column in found], csv)
    if not doubtful and unit is None:
        _say_whose_rows_are_protected(seen)
    if "" in unread:
        notice("left out: what has no name (R writes its row names so, and pandas its index)")
    schema = TableSchema(found, label, (*left_out, *unread), csv=csv, privacy_unit=privacy_unit)
    if constraints:
        schema = _with_rules(held, schema, split)
    return Draft(
        schema,
        tuple(column.name for column in schema.described),
        left_out_confirmed=not left_out,
        names_confirmed=not doubtful,
        constraints_confirmed=not constraints,  # that there is none was looked up, too
    )


def _require_asked_for(
    where: str,
    seen: Mapping[str, SeenColumn],
    places: Mapping[str, int],
    label: str | None,
    chosen: set[str] | None,
    unit: str | None,
) -> None:
    """Check that a table has the columns that were named.

    Args:
        where: the table's name in messages.
        seen: what was seen of its columns, by name.
        places: the positions of all columns, those that were not read included.
        label: name of the column that holds the class.
        chosen: names of the columns to describe; None for all.
        unit: name of the privacy unit's column.

    Raises:
        SchemaError: it lacks one, or the privacy unit's is to be described.
    """

    def absent(named: str) -> SchemaError:
        return SchemaError(f"{named}: {where} has no such column", ", ".join(filter(None, places)))

    if unit is not None:
        named = argument("privacy_unit", unit, option="--unit")
        if unit not in places:
            raise absent(named)
        if unit == label or unit in (chosen or ()):
            raise SchemaError(f"{named}: it tells whose a row is, so it is in no record")
    if label is not None and label not in seen:
        raise absent(argument("label", label))
    for name in sorted((chosen or set()) - set(seen)):
        raise absent(argument("columns", name))


def _with_rules(data: Path | str | pa.Table, schema: TableSchema, split: str) -> TableSchema:
    """The schema with the rules that all rows keep; reads the table once more by that schema."""
    columns = tuple(  # values may be missing in any of them, so let the label lack some too
        replace(column, missing=Missing.INDICATOR if column.kind.numeric else Missing.CATEGORY)
        for column in schema.columns
    )
    known = replace(schema, columns=columns, label=None, privacy_unit=None)
    source = (
        TableSource.open(located(data), known, split)
        if isinstance(data, (str, Path))
        else FrameSource.open(data, known)
    )
    schema = with_lookups(schema, source.parts)
    found = proposed_constraints(schema.columns, source.parts())
    if not found:
        notice("constraints: no rule was found that all rows keep and would not keep by chance")
    return with_spans(schema, found, source.parts)


def _found_at(data: Path | str | Frame) -> tuple[str, Path | str | pa.Table]:
    """A table's name in messages, and its source, in a form that can be read more than once."""
    if isinstance(data, (str, Path)):
        return str(data), data
    if is_frame(data):
        return type(data).__name__, to_arrow(data)
    raise DataError(
        "data must be the path of a table, or a table in memory, such as a DataFrame, not of "
        f"type {type(data).__name__}"
    )


def _seen_in(
    data: Path | str | pa.Table,
    where: str,
    csv: CsvFormat,
    split: str,
    chosen: set[str] | None,
    unit: str | None,
) -> tuple[dict[str, SeenColumn], dict[str, int], tuple[str, ...]]:
    """Look at all values of a table.

    Returns:
        What was seen of its columns, by name; the positions of all columns; and the names of
        columns that were not read.
    """
    seen: dict[str, SeenColumn] = {}
    places: dict[str, int] = {}
    unread: dict[str, None] = {}
    if isinstance(data, (str, Path)):
        for file in find_tables(located(data), split):
            dtypes = _dtypes_in(file, csv)
            places = _places(dtypes) | places
            unread |= _set_aside(dtypes, chosen, unit)
            with contextlib.closing(_blocks(file, dtypes, csv)) as blocks:
                _observe(str(file), dtypes, blocks, csv, seen)
    else:
        dtypes = _named_dtypes(where, data.schema)
        places = _places(dtypes)
        unread |= _set_aside(dtypes, chosen, unit)
        rows = data.select(_readable(dtypes)).to_batches(max_chunksize=ROWS_AT_ONCE)
        _observe(where, dtypes, rows, csv, seen)
    return seen, places, tuple(unread)


def _say_if_names_may_be_values(
    where: str, seen: Mapping[str, SeenColumn], places: Mapping[str, int], *, in_memory: bool
) -> bool:
    """Report by position columns whose names may be part of a record; returns whether any are."""
    doubtful = [str(places[name]) for name in seen if seen[name].name_may_be_a_value]
    if doubtful:
        remedy = (
            "give the columns names and draft again, or confirm(names=True)"
            if in_memory
            else "add a header and draft again, or delete 'names_confirmed = false' from the draft"
        )
        warning(
            f"{where}: {'columns' if doubtful[1:] else 'column'} {some_of(doubtful)}: the name "
            "could be a value there: is there no header? Then the first record has become the "
            f"names of columns, which go out with a release: {remedy}"
        )
    return bool(doubtful)


def _described(
    where: str,
    seen: Mapping[str, SeenColumn],
    label: str | None,
    places: Mapping[str, int] | None,
) -> dict[str, Column | None]:
    """Draft each column, and report those to leave out.

    Args:
        where: the table's name in messages.
        seen: what was seen of its columns, by name.
        label: name of the column that holds the class.
        places: the columns' positions, if notices are to give these and not the names: names that
            may be a record are for the owner only, and notices end up in logs.

    Returns:
        The columns by name, None for those to leave out.

    Raises:
        SchemaError: the label has no categories.
    """
    described: dict[str, Column | None] = {}
    unfit: dict[str, list[str]] = {}
    for name, column in seen.items():
        called = name if places is None else f"column {places[name]}"
        try:
            described[name] = column.describe(name == label, called)
        except SchemaError as error:
            if name == label:
                raise SchemaError(f"{where}: {error}", error.value) from error
            said = str(error) if places is None else f"{called}: no schema takes its name or values"
            notice(f"{said}: it is left out")
            described[name] = None
        else:
            if described[name] is None:
                unfit.setdefault(column.unfit, []).append(name)
    if label is not None:
        _require_label(label, described[label], seen[label])
    for reason, names in unfit.items():
        which = ", ".join(names) if places is None else counted(len(names), "column")
        notice(f"left out, because {reason}: {which}")
    return described


def _require_label(name: str, column: Column | None, seen: SeenColumn) -> None:
    """Check that the label has categories, and report whether rows lack it."""
    if column is None:
        raise SchemaError(
            f"{argument('label', name)}: its values are no categories (1 to {MOST_LABELS} of them)"
        )
    if seen.lacking:
        notice(
            f"{name}: without a value in {so_many(seen.lacking, 'row')}, and a record needs a "
            "label: remove them, or write a class of their own there"
        )


def _say_how_missing_is_written(columns: Iterable[SeenColumn], csv: CsvFormat) -> None:
    """Report if missing values are written differently from how generated files would be."""
    written = {text for column in columns for text in column.stand_ins}
    if written and csv.missing[0] not in written:
        # Not drafted: a single row may decide it, and the schema is part of the release.
        texts = [typed(text) for text in csv.missing if text in written]
        notice(
            f"missing values are written {', '.join(texts)} there, and {typed(csv.missing[0])} in "
            f"generated files: draft with --missing {' --missing '.join(texts)}, or change what "
            "is first under [csv], if that is publicly known"
        )


def _say_whose_rows_are_protected(seen: Mapping[str, SeenColumn]) -> None:
    """Explain privacy units if a column's name suggests one and its values repeat."""
    for name, column in seen.items():
        if _WHOSE.fullmatch(name) and not column.all_differ:
            notice(
                f"{name}: if several rows are of one person, and this says of whom: each row is "
                f"protected by itself, unless 'dpntk embed --unit {name}' protects them together"
            )


def _dtypes_in(file: AnyPath, csv: CsvFormat) -> dict[str, str | None]:
    """The types of a file's columns."""
    if not is_csv(file):
        with reading_parquet(file), opened(file) as parquet:
            return _named_dtypes(str(file), parquet.schema_arrow)
    header = read_header(file, csv)
    require_distinct(header, str(file))
    if len(header) == 1 and any(mark in header[0] for mark in ",;\t|"):
        raise SchemaError(
            f"{file}: the header is one column: say with {argument('separator')} what separates "
            "values",
            header[0],
        )
    return dict.fromkeys(header, None)


def _places(dtypes: Iterable[str]) -> dict[str, int]:
    """The position of each column, from 1."""
    return {name: place for place, name in enumerate(dtypes, 1)}


def _set_aside(
    dtypes: dict[str, str | None], chosen: set[str] | None, unit: str | None
) -> dict[str, None]:
    """Remove from `dtypes` columns that are not chosen, have no name, or are the privacy unit's."""
    others = [
        name for name in dtypes if name in ("", unit) or (chosen is not None and name not in chosen)
    ]
    for name in others:
        del dtypes[name]
    return dict.fromkeys(others)


def _blocks(
    file: AnyPath, dtypes: Mapping[str, str | None], csv: CsvFormat
) -> Generator[pa.RecordBatch, None, None]:
    """Some columns of a file, block by block."""
    if is_csv(file):
        return read_csv(file, read_header(file, csv), tuple(dtypes), csv)
    return (without_views(rows) for _, rows in read_rows(file, _readable(dtypes), ROWS_AT_ONCE))


def _named_dtypes(where: str, schema: pa.Schema) -> dict[str, str | None]:
    require_distinct(schema.names, where)
    return {entry.name: _dtype(entry.type) for entry in schema}


def _readable(dtypes: Mapping[str, str | None]) -> list[str]:
    return [name for name, dtype in dtypes.items() if dtype in (*DTYPES, *TIMED)]


def _observe(
    where: str,
    dtypes: Mapping[str, str | None],
    blocks: Iterable[pa.RecordBatch],
    csv: CsvFormat,
    seen: dict[str, SeenColumn],
) -> None:
    for name, dtype in dtypes.items():
        before = seen.setdefault(name, SeenColumn(name, dtype, csv))
        if "null" in (before.dtype, dtype):  # the type of columns whose values are all missing
            before.missing = True
            before.dtype = dtype if before.dtype == "null" else before.dtype
        elif before.dtype != dtype:
            raise DataError(f"{where}: column {name!r} is {dtype}, elsewhere {seen[name].dtype}")
    for rows in blocks:
        for name in rows.schema.names:
            seen[name].observe(rows.column(name))
        for name in (name for name, dtype in dtypes.items() if dtype == "null"):
            seen[name].lacking += len(rows)


def _dtype(kind: pa.DataType) -> str:
    """Our name of a type, or Arrow's if dpntk does not read the type."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_large_string(kind) or types.is_string(kind) or types.is_string_view(kind):
        return "string"
    if types.is_decimal(kind):
        return "float64"
    if types.is_float16(kind):  # a schema has no such type, and one of 32 bits holds its values
        return "float32"
    name = type_name(kind)
    return {"double": "float64", "float": "float32", "date32[day]": "date32"}.get(name, name)
