"""Tables in memory: pandas and Polars data frames, Arrow tables, and anything like them."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Number
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

import numpy as np

from ...display.representations import RedactedRepr
from ...errors import DataError
from ...schema.table import TableSchema
from ...storage.canonical_json import digest
from ..base import records_fingerprint, regrouped, require_records
from ..valid_columns import require_valid
from .rows import ROWS_AT_ONCE, RowReader, Rows, RowsInPlace
from .table import require_column, require_columns, require_distinct
from .views import without_view

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import TypeIs

_DATES: Final = (datetime.date, np.datetime64)
"""The types of dates and times."""
_DURATIONS: Final = (datetime.timedelta, np.timedelta64)
_TIMES: Final = (*_DATES, *_DURATIONS, datetime.time)
_TRUTHS: Final = frozenset({bool, np.bool_})


@runtime_checkable
class Frame(Protocol):
    """A table that exports its columns by Arrow's protocol, as pandas, Polars and pyarrow do."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """An Arrow stream, in a capsule."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class FrameSource(RedactedRepr, Rows):
    """A table in memory, whose rows become records like those of a file. SENSITIVE.

    Messages number rows from 1; a pandas index is not used.

    Attributes:
        schema: what is publicly known of it.
        table: its columns, including the privacy unit's.
        where: its name in messages.
    """

    schema: TableSchema
    table: pa.Table
    where: str

    @classmethod
    def open(cls, frame: Frame, schema: TableSchema) -> FrameSource:
        """Take over the columns that the schema describes.

        Args:
            frame: the table; it is not changed.
            schema: its schema.

        Raises:
            DataError: there are no rows, or a column's values are of several kinds.
            SchemaError: the columns are not those of the schema.
        """
        where, held = type(frame).__name__, _held(frame)
        names, wanted = _names(held, where), [column.name for column in schema.stored]
        require_columns(names, schema, where)
        if schema.privacy_unit is not None and schema.privacy_unit.column in names:
            wanted.append(schema.privacy_unit.column)
        table = _columns(held, names, wanted, where)
        require_records(table.num_rows, where)
        return cls(schema, table, where)

    def __len__(self) -> int:
        """Number of rows."""
        count: int = self.table.num_rows
        return count

    def fingerprint(self) -> str:
        """Digest of all records: see `Source`."""
        reader = RowReader(self.schema)
        parts = (reader.encode(rows, first, where) for where, first, rows in self.rows())
        return records_fingerprint(regrouped(parts, ROWS_AT_ONCE), digest(self.schema.to_json()))

    def only(self, name: str) -> RowsInPlace:
        """Yield one column of all rows, either the privacy unit's or one of the schema.

        Raises:
            SchemaError: there is no such column.
        """
        require_column(name, self.table.column_names, self.where)
        for where, first, rows in self.rows():
            yield where, first, rows.select([name])

    def rows(self, start: int = 0, stop: int | None = None) -> RowsInPlace:
        """See `Rows`; the privacy unit's column is among the columns, too."""
        wanted = self.table.slice(start, (len(self) if stop is None else stop) - start)
        for rows in wanted.to_batches(max_chunksize=ROWS_AT_ONCE):
            yield self.where, start, rows
            start += len(rows)


def is_frame(data: object) -> TypeIs[Frame]:
    """Whether an object is a table in memory."""
    return isinstance(data, Frame) or _of_pandas(data)


def to_arrow(frame: Frame) -> pa.Table:
    """All columns of a frame, in types that Arrow computes with.

    Raises:
        DataError: the values of a column are of several kinds.
        SchemaError: two columns have the same name.
    """
    where, held = type(frame).__name__, _held(frame)
    names = _names(held, where)
    require_distinct(names, where)
    return _columns(held, names, names, where)


def _of_pandas(data: object) -> bool:
    """Whether it is a pandas data frame; older ones do not support Arrow's protocol."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def _held(frame: Frame) -> Any:  # noqa: ANN401 - neither pandas nor pyarrow has types
    """A pandas frame unchanged, any other as an Arrow table: some can be read only once."""
    import pyarrow

    if _of_pandas(frame):
        return frame
    try:
        return pyarrow.table(frame)
    except (pyarrow.ArrowException, TypeError, ValueError):
        raise DataError(
            f"{type(frame).__name__}: not a table: give one with columns, such as a DataFrame; "
            "what can be read only once must not have been read before"
        ) from None


def _names(held: Any, where: str) -> tuple[str, ...]:  # noqa: ANN401
    """The names of a table's columns; errors do not quote names that are not texts."""
    names = tuple(map(str, held.columns if _of_pandas(held) else held.column_names))
    for place, name in enumerate(names, 1):
        try:
            name.encode()
        except UnicodeEncodeError:
            raise DataError(f"{where}: the name of column {place} is no text: rename it") from None
    return names


def _columns(
    held: Any, names: tuple[str, ...], wanted: Sequence[str], where: str  # noqa: ANN401
) -> pa.Table:  # fmt: skip
    """Some columns, in types that Arrow computes with; the first of several without a name."""
    import pyarrow

    places, columns = {name: names.index(name) for name in wanted}, {}
    if not _of_pandas(held):
        require_valid(held.select(list(places.values())), where)
        return pyarrow.table(
            {name: without_view(held.column(place)) for name, place in places.items()}
        )
    for name, place in places.items():
        try:
            column = held.iloc[:, place]
            _require_one_kind(column)
            columns[name] = without_view(pyarrow.array(column, from_pandas=True))
        except (pyarrow.ArrowException, TypeError, UnicodeError, ArithmeticError) as error:
            raise DataError(
                f"{where}: column {name!r} holds values of several kinds, or of one that no table "
                "has: make them numbers or texts, or leave the column out of the data",
                str(error),
            ) from None  # Arrow's error quotes the value
    return pyarrow.table(columns)


def _require_one_kind(column: Any) -> None:  # noqa: ANN401
    """Check that Arrow does not convert a column's values depending on other values.

    A column of arbitrary Python objects gets one type from all of them. An integer would turn short
    floats into integers; a float would turn truth values into numbers, and integers from 2^63 on
    into negative ones; a time would turn everything that can be an integer into days or
    microseconds; a day would cut the time of day off all times; a first time decides whether a
    later one with a time zone becomes the time on its own clock or that in Greenwich; and a long
    duration makes objects of all, which lose what is below a microsecond, downwards.

    Guarantee:
        How a value is read does not depend on others. (docs/privacy/proofs.md, statement 3.)

    Raises:
        TypeError: the conversion would.
    """
    if column.dtype == "category":
        column = column.cat.categories.to_series()
    if column.dtype != object:
        return
    values = column.dropna()
    kinds = set(map(type, values))
    # Arrow crashes on such missing times if NumPy numbers follow.
    lacking = column[column.isna()]
    kinds |= {type(one) for one in lacking if isinstance(one, np.datetime64 | np.timedelta64)}
    times = {kind for kind in kinds if issubclass(kind, _TIMES)}
    numbers = {kind for kind in kinds - times if issubclass(kind, Number | np.bool_)}
    if any(issubclass(kind, np.float16 | np.longdouble) for kind in numbers):
        raise TypeError("floats of 16 or 80 bits among Python objects")
    if len(numbers) > 1 and any(map(_is_uint64, numbers)):
        raise TypeError("64 bits without a sign among other numbers")
    if kinds & _TRUTHS and numbers - _TRUTHS:
        raise TypeError("truth values among numbers")
    if times and kinds != times:
        raise TypeError("something else beside dates, times or durations")
    if len({issubclass(kind, _DURATIONS) for kind in times}) > 1:
        raise TypeError("durations beside dates or times")
    if times:  # most object columns hold texts, and no value needs a check
        if any(getattr(value, "nanoseconds", 0) for value in values):
            raise TypeError("durations with a part below a microsecond among Python objects")
        dated = [value for value in values if isinstance(value, _DATES)]
        if len(set(map(_is_day, dated))) > 1:
            raise TypeError("days beside times")
        if len({getattr(value, "tzinfo", None) is not None for value in dated}) > 1:
            raise TypeError("times with a time zone beside times without one")


def _is_day(value: datetime.date | np.datetime64) -> bool:
    """Whether Arrow takes a date or time for a day; it refuses NumPy's beside others itself."""
    return not isinstance(value, datetime.datetime | np.datetime64)


def _is_uint64(kind: type) -> bool:
    """Whether a type holds unsigned 64-bit integers."""
    return issubclass(kind, np.unsignedinteger) and np.dtype(kind).itemsize == 8
