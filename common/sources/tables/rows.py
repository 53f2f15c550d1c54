"""Converting Arrow's columns to numbers, codes and records, as the schema describes them."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ...display.console import notice
from ...display.text import so_many
from ...errors import DataError, SchemaError
from ...schema.columns.codes import MISSING, UNLISTED
from ...schema.columns.column import Column
from ...schema.columns.dates import DAY, DateFormat
from ...schema.columns.dtypes import PER_SECOND
from ...schema.columns.durations import DurationFormat
from ...schema.columns.kinds import ColumnKind, Missing
from ...schema.csv_format import CsvFormat
from ...schema.encoding import blocks_of
from ...schema.spans import span_of
from ...schema.table import TableSchema
from ..arrow_types import type_name
from ..base import Batch, regrouped
from ..prefetch import read_ahead
from .categories import CategoryFinder, StandIns
from .decimals import with_points

if TYPE_CHECKING:
    import pyarrow as pa

_EXAMPLE: Final = np.array([31 * DAY - DAY // 2])
"""An example of a time: noon on the last day of January, 1970."""
_LONG_EXAMPLE: Final = np.array([3 * DAY + 4 * 3600 + 300])
"""An example of a duration: three days, four hours and five minutes."""


RowsInPlace = Generator[tuple[str, int, "pa.RecordBatch"], None, None]
"""Blocks of a table's rows, each with its source and the number of its first row."""
ROWS_AT_ONCE: Final = 1 << 14
"""Rows that are read at a time."""
_ONE_BY_ONE: Final = 3
"""So many columns whose values were clipped get a line each; more share one."""


class Rows(ABC):
    """A table, in files or in memory, that is read as its schema describes it."""

    schema: TableSchema

    @abstractmethod
    def rows(self, start: int = 0, stop: int | None = None) -> RowsInPlace:
        """Yield the columns of the schema, of rows start..stop-1."""

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """See `Source`. A CSV file is read from its beginning, whatever `start` is.

        Values beyond their bounds are clipped, and their number is shown to the user at the end.
        """
        reader = RowReader(self.schema)
        with contextlib.closing(read_ahead(self.rows(start, stop))) as found:
            encoded = (reader.encode(part, first, where) for where, first, part in found)
            yield from regrouped(encoded, size)
        reader.tell()

    def parts(self, *, keep_unlisted: bool = False) -> Iterator[dict[str, NDArray[Any]]]:
        """The whole table, part by part: see `values`."""
        reader = RowReader(self.schema, keep_unlisted=keep_unlisted)
        with contextlib.closing(read_ahead(self.rows())) as read:
            for where, first, found in read:
                yield reader.values(found, first, where)
        reader.tell()

    def values(self, *, keep_unlisted: bool = False) -> dict[str, NDArray[Any]]:
        """The whole table, column by column.

        Args:
            keep_unlisted: whether categories that the schema does not list become `UNLISTED`
                instead of errors: rows that are only compared with others may have such. For a
                label with two classes they stay errors, because such a row is neither positive nor
                negative.

        Returns:
            A mapping from each column's name to its values: for a numeric column, float64 (n,)
            between the bounds, NaN where missing; for others, indices of categories, int64 (n,),
            `MISSING` where missing.

        Raises:
            DataError: a value cannot be read.
            SchemaError: a column does not fit the schema.
        """
        parts = list(self.parts(keep_unlisted=keep_unlisted))
        return {
            column.name: np.concatenate([part[column.name] for part in parts])
            for column in self.schema.columns
        }


class RowReader:
    """Converts columns of values into records, and counts the values that it changed."""

    def __init__(self, schema: TableSchema, *, keep_unlisted: bool = False) -> None:
        self._schema = schema
        self._keep_unlisted = keep_unlisted
        self._blocks = blocks_of(schema)
        self._categories = {
            column.name: CategoryFinder(column, schema.csv)
            for column in schema.columns
            if column.categories
        }
        self.clipped: Counter[str] = Counter()
        self.unlisted: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()

    def encode(self, rows: pa.RecordBatch, first: int, where: str) -> Batch:
        """Encode some rows.

        Args:
            rows: the columns, by name.
            first: number of the first row in its file, from 0.
            where: the file, for messages.
        """
        values = self.values(rows, first, where)
        records = np.empty((len(rows), self._schema.record_size), dtype=np.uint8)
        for block in self._blocks:
            records[:, block.place] = block.encode(values[block.column.name])
        label = self._schema.label
        return Batch(records, np.zeros(len(rows), np.int64) if label is None else values[label])

    def values(self, rows: pa.RecordBatch, first: int, where: str) -> dict[str, NDArray[Any]]:
        """Some rows as numbers and codes, column by column; for the arguments, see `encode`."""
        found: dict[str, NDArray[Any]] = {}
        for column in self._schema.stored:
            at, values = _Place(where, first, column), plain(rows.column(column.name))
            read = self._numbers if column.kind.numeric else self._codes
            found[column.name] = read(values, at)
        for column in self._schema.columns:
            if column.between:
                at = _Place(where, first, column)
                found[column.name] = self._bounded(span_of(column, found), at)
        for text, rule in zip(self._schema.rule_texts, self._schema.rules, strict=True):
            self.broken[text] += int(rule.truth(found).fails.sum())
        return found

    def tell(self) -> None:
        """Show the user how many values were changed, and how many rows break a constraint."""
        if len(self.clipped) > _ONE_BY_ONE:
            found = (f"{name} in {so_many(count, 'row')}" for name, count in self.clipped.items())
            notice(f"beyond their bounds, counted as the bounds: {', '.join(found)}")
        else:
            for name, count in self.clipped.items():
                beyond = so_many(count, "row")
                notice(f"{name}: beyond its bounds in {beyond}, counted as the bound")
        for name, count in self.unlisted.items():
            notice(f"{name}: in no category in {so_many(count, 'row')}, counted as its other")
        if self.kept:
            found = (f"{name} in {so_many(count, 'row')}" for name, count in self.kept.items())
            notice(f"in no category, counted as one more: {', '.join(found)}")
        for text, count in (+self.broken).items():
            notice(f"constraint {text!r}: broken by {so_many(count, 'row')}, taken as they are")

    def _numbers(self, values: pa.Array, at: _Place) -> NDArray[np.float64]:
        """Values, clipped to the bounds and rounded to steps, NaN where missing."""
        column = at.column
        if column.kind.timed:
            found = (self._dates if column.kind.temporal else self._durations)(values, at)
        else:
            found = self._amounts(values, at)
        at.require(~np.isinf(found), values, "is infinite")
        if column.kind is ColumnKind.INTEGER:
            whole = np.isnan(found) | (found == np.rint(found))
            at.require(whole, values, "is not a whole number")
        return self._bounded(found, at)

    def _bounded(self, found: NDArray[np.float64], at: _Place) -> NDArray[np.float64]:
        """Clip numbers to the bounds and round them to steps; NaN only where one may be missing."""
        column = at.column
        self._require_there(np.isnan(found), at)
        lower, upper = column.bounds
        near = found if column.granule is None else column.granule.rounded(found)
        beyond = (near < lower) | (near > upper)
        if beyond.any():
            self.clipped[column.name] += int(beyond.sum())
        return column.rounded(np.clip(found, lower, upper))

    def _amounts(self, values: pa.Array, at: _Place) -> NDArray[np.float64]:
        """Numbers, NaN where missing."""
        import pyarrow
        from pyarrow import compute, types

        absent = missing_in(values, self._schema.csv)
        kind = values.type
        if types.is_string(kind):
            texts = with_points(values, self._schema.csv)
            texts = compute.if_else(pyarrow.array(absent), None, texts)
            try:
                numbers = compute.cast(texts, pyarrow.float64())
            except pyarrow.ArrowInvalid:
                # Arrow's error quotes the value.
                raise at.wrong(_first_no_number(texts), values, "is not a number") from None
        elif types.is_integer(kind) or types.is_floating(kind):
            numbers = values.cast(pyarrow.float64(), safe=False)
        elif types.is_decimal(kind):
            # Texts are rounded correctly. How Arrow rounds decimals depends on the column's number
            # of digits, and so on other rows.
            numbers = values.cast(pyarrow.string()).cast(pyarrow.float64())
        else:
            raise SchemaError(
                f"{at.where}: column {at.column.name!r} is {type_name(kind)}, not numbers"
            )
        found: NDArray[np.float64] = numbers.fill_null(float("nan")).to_numpy(zero_copy_only=False)
        found = np.where(absent, np.nan, found)
        if at.column.dtype == "float32":  # their texts have fewer digits
            with np.errstate(over="ignore"):
                found = found.astype(np.float32).astype(np.float64)
        return found

    def _dates(self, values: pa.Array, at: _Place) -> NDArray[np.float64]:
        """Steps since the beginning of 1970, NaN where a date or time is missing."""
        import pyarrow
        from pyarrow import types

        column, kind, absent = at.column, values.type, missing_in(values, self._schema.csv)
        if types.is_string(kind):
            seconds = column.date_format.parse(values)
            wrong = f"is not a {column.kind.value} like {column.date_format.write(_EXAMPLE)[0]}"
            at.require(absent | ~np.isnan(seconds), values, wrong)
        elif types.is_date32(kind) or (types.is_timestamp(kind) and kind.tz is None):
            days = types.is_date32(kind)
            # Arrow converts times to dates, too, if the first value is a date.
            if days and column.seconds < DAY:
                raise SchemaError(
                    f"{at.where}: column {column.name!r} is {kind}, without times of day: store it "
                    "as timestamps"
                )
            whole = values.cast(pyarrow.int32() if days else pyarrow.int64()).fill_null(0)
            steps = whole.to_numpy(zero_copy_only=False).astype(np.int64)
            per_second = 1 if days else PER_SECOND[kind.unit]
            seconds = (steps * (DAY if days else 1) // per_second).astype(np.float64)
        else:
            what = f"is {type_name(kind)}, no dates"
            if types.is_timestamp(kind):
                what = "has a time zone: store the times without one"
            raise SchemaError(f"{at.where}: column {column.name!r} {what}")
        stand_ins = np.concatenate([self._stand_ins(column.date_format), self._iso_stand_ins()])
        steps, missing = (np.floor_divide(each, column.seconds) for each in (seconds, stand_ins))
        return np.where(absent | np.isin(steps, missing), np.nan, steps)

    def _durations(self, values: pa.Array, at: _Place) -> NDArray[np.float64]:
        """Steps, truncated towards 0, NaN where a duration is missing."""
        import pyarrow
        from pyarrow import types

        column, kind, absent = at.column, values.type, missing_in(values, self._schema.csv)
        if types.is_string(kind):
            seconds = column.duration_format.parse(values)
            wrong = f"is not a duration like {column.duration_format.write(_LONG_EXAMPLE)[0]}"
            at.require(absent | ~np.isnan(seconds), values, wrong)
        elif types.is_duration(kind):
            parts = values.cast(pyarrow.int64()).fill_null(0).to_numpy(zero_copy_only=False)
            whole = np.floor_divide(np.abs(parts), PER_SECOND[kind.unit])
            seconds = np.copysign(whole.astype(np.float64), parts)
        else:
            raise SchemaError(
                f"{at.where}: column {column.name!r} is {type_name(kind)}, no durations"
            )
        steps, missing = (
            np.copysign(np.floor_divide(np.abs(each), column.seconds), each) + 0.0
            for each in (seconds, self._stand_ins(column.duration_format))
        )
        return np.where(absent | np.isin(steps, missing), np.nan, steps)

    def _stand_ins(self, form: DateFormat | DurationFormat) -> NDArray[np.float64]:
        """Times or durations that stand for missing ones, in seconds; NaN, which equals nothing.

        Programs convert a column's texts to dates if all of them can be, and otherwise leave texts.
        They also cut times to days if some values are days. So they are compared in steps of the
        column, in which both are the same.
        """
        import pyarrow

        return form.parse(pyarrow.array(self._schema.csv.missing, pyarrow.string()))

    def _iso_stand_ins(self) -> NDArray[np.float64]:
        """The same for texts that are dates or times to programs which know no column's format."""
        return np.array([_iso_seconds(text) for text in self._schema.csv.missing])

    def _codes(self, values: pa.Array, at: _Place) -> NDArray[np.int64]:
        """The indices of categories, `MISSING` or `UNLISTED`."""
        column = at.column
        codes = self._categories[column.name].codes(values, at.where)
        absent = (codes == MISSING) & missing_in(values, self._schema.csv)
        self._require_there(absent, at)
        unlisted = (codes == MISSING) & ~absent
        if not unlisted.any():
            return codes
        if column.other is not None:
            self.unlisted[column.name] += int(unlisted.sum())
            codes[unlisted] = column.categories.index(column.other)
        elif self._keep_unlisted and (
            column.name != self._schema.label or len(column.categories) > 2
        ):
            self.kept[column.name] += int(unlisted.sum())
            codes[unlisted] = UNLISTED
        else:
            at.require(
                ~unlisted, values, "is none of its categories: correct it, add it to the schema, "
                "or name an other there",
            )  # fmt: skip
        return codes

    def _require_there(self, missing: NDArray[np.bool_], at: _Place) -> None:
        if at.column.missing is not Missing.REFUSED or not missing.any():
            return
        row = at.first + int(np.flatnonzero(missing)[0]) + 1
        if at.column.name == self._schema.label:
            advice = "a record needs a label: correct or remove the row"
        else:
            policy = "indicator" if at.column.kind.numeric else "category"
            advice = f'correct it, or say missing = "{policy}" in the schema'
        raise DataError(
            f"{at.where}: row {row}, column {at.column.name!r}: there is no value: {advice}"
        )


@dataclass(frozen=True)
class _Place:
    """The place of some values, for messages.

    Attributes:
        where: the file.
        first: number of the first row, from 0.
        column: their column.
    """

    where: str
    first: int
    column: Column

    def wrong(self, index: int, values: pa.Array, what: str) -> DataError:
        return DataError(
            f"{self.where}: row {self.first + index + 1}, column {self.column.name!r}: the value "
            f"{what}",
            str(values[index].as_py()),
        )

    def require(self, fine: NDArray[np.bool_], values: pa.Array, what: str) -> None:
        if not fine.all():
            raise self.wrong(int(np.flatnonzero(~fine)[0]), values, what)


def missing_in(values: pa.Array, form: CsvFormat) -> NDArray[np.bool_]:
    """Which values are missing, including those that the CSV format declares as missing.

    If a declared one is a number, such as -9, every value that is the same float counts, however it
    is stored or written: a program that converts integers to floats writes -9.0. If it is a truth
    value, every value counts that is the same.
    """
    import pyarrow
    from pyarrow import compute, types

    found = values.is_null(nan_is_null=True)
    if types.is_string(values.type):
        stand_ins = pyarrow.array(form.missing, pyarrow.string())
        found = compute.or_(found, compute.is_in(values, value_set=stand_ins))
    missing: NDArray[np.bool_] = np.array(found)
    return missing | StandIns(form).are(values)


def plain(values: pa.Array) -> pa.Array:
    """Decode dictionary-encoded values; texts, and all-missing values, become `string`."""
    import pyarrow
    from pyarrow import types

    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if types.is_large_string(values.type) or types.is_null(values.type):
        values = values.cast(pyarrow.string())
    return values


def _iso_seconds(text: str) -> float:
    """Seconds of a date or time as Arrow reads it without being told a format; NaN if it cannot."""
    import pyarrow

    for unit in ("us", "ns"):  # the latter for more digits, the former for more years
        with contextlib.suppress(pyarrow.ArrowInvalid):
            steps = pyarrow.scalar(text.strip()).cast(pyarrow.timestamp(unit)).value
            return float(steps // PER_SECOND[unit])
    return float("nan")


def _first_no_number(texts: Any) -> int:  # noqa: ANN401 - pyarrow is untyped
    """The index of the first text that is not a number."""
    import pyarrow
    from pyarrow import compute

    low, high = 0, len(texts)  # there is one in low..high-1
    while high - low > 1:
        middle = (low + high) // 2
        try:
            compute.cast(texts.slice(low, middle - low), pyarrow.float64())
        except pyarrow.ArrowInvalid:
            high = middle
        else:
            low = middle
    return low
