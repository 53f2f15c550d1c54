"""How one row is read depends on its own values alone, whatever another row holds.

Ordinary rows are read as they are, and with one more row that holds something nasty: in many ways
of holding and writing a table, in another order, in batches of another size, from the middle.
Either they become the same bytes of the same persons, or the table is refused. Where another
program has already stored an ordinary row in another way, there is nothing to compare.
(docs/privacy/proofs.md, statement 3.)
"""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import compute, parquet

from dpntk.common.errors import DpntkError
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.csv_format import CsvFormat
from dpntk.common.schema.privacy_unit import PrivacyUnit
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources import SourceOptions, open_source, with_bounded_units
from dpntk.common.sources.tables import csv as csv_files
from dpntk.common.sources.tables import privacy_units, table
from dpntk.common.sources.tables.categories import CategoryFinder
from dpntk.common.sources.tables.frames import FrameSource
from dpntk.common.sources.tables.rows import plain
from dpntk.common.sources.tables.table import TableSource
from tests.helpers.examples import examples
from tests.helpers.nasty import TEXTS, VALUES

pytestmark = pytest.mark.filterwarnings("ignore")  # of pandas, about mixed values


Row = dict[str, Any]
Data: TypeAlias = Any
"""A data frame, an Arrow table, or the path of files: pandas and Arrow are untyped."""
Read = list[tuple[bytes, int, int]]
"""The values, the class and the person of each row; persons are numbered as they come."""

DAY: Final = dt.date(2020, 2, 3)
TIME: Final = dt.datetime(2020, 2, 3, 4, 5, 6)
EVE: Final = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)
HOURS: Final = dt.timedelta(hours=3, seconds=9)
BIG: Final = 2**53 + 1


def amounts(**entries: Any) -> Column:  # noqa: ANN401
    return Column.continuous("x", -1e6, 1e6, missing=True, **entries)


def choices(*categories: str, **entries: Any) -> Column:  # noqa: ANN401
    return Column.categorical("x", [*categories, "0"], other="0", missing=True, **entries)


def times(unit: str | None = None) -> Column:
    return Column.datetime("x", "1950-01-01", "2029-12-31", unit=unit, missing=True)


def days(**entries: Any) -> Column:  # noqa: ANN401
    return Column.date("x", "1990-01-01", "2029-12-31", missing=True, **entries)


def stays(**entries: Any) -> Column:  # noqa: ANN401
    return Column.duration("x", "-PT5H", "P9D", missing=True, **entries)


KINDS: Final[tuple[tuple[Column, tuple[Any, ...]], ...]] = (
    (amounts(), (0, 1, 2.5, -9.9, 0.1, 12, 999_999)),
    (amounts(), tuple(map(Decimal, ("0.1", "2.3", "-7.77", "4")))),
    (amounts(), ("0.1", "1e5", " 7", "-9.9", "12")),
    (amounts(dtype="float32"), (0.1, 0.7, np.float32(0.1), 3)),
    (amounts(transform="signed-log", decimals=2), (0, 7, 12.25, 1e5)),
    (Column.integer("x", -100, 100, missing=True), (0, 1, 7, -9, 12)),
    (Column.integer("x", 0, 2**53), (0, BIG - 2, BIG - 1, BIG, 2**63 - 1)),
    (choices("1", "2", "7"), (1, 2, 7, 12)),
    (choices("01", "-9.9", "true"), ("01", "1", "-9.9", "True")),
    (choices("1", "01", "1.0"), ("1", "01", "1.0", "2")),
    (choices("1.0", "-9.9"), (1.0, -9.9, 0.0, 2.5)),
    (choices("0.1", "2", "12.25", dtype="float64"), (0.1, 2, 12.25)),
    (choices("0.1", "2", dtype="float32"), (0.1, np.float32(0.1), 2)),
    (choices(str(BIG), "7"), (BIG, 7, BIG - 1)),
    (choices(str(BIG), "7", dtype="int64"), (BIG, 7, BIG - 1)),
    (choices("a", "b", "a b", ordered=True), ("a", "b", "a\nb", "x")),
    (Column.boolean("x", missing=True), (True, False)),
    (Column.boolean("x", missing=True), ("true", "False", "1")),
    (Column.boolean("x", ("0", "1"), missing=True), (0, 1, 1.0)),
    (Column.boolean("x", ("no", "yes"), missing=True), ("no", "yes")),
    (days(), (DAY, dt.date(1999, 9, 9), TIME)),
    (days(), ("2020-02-03", "1999-09-09")),
    (days(format="%d.%m.%Y", dtype="string"), ("03.02.2020", "9.9.1999")),
    (times("minute"), (TIME, EVE, pd.Timestamp("2020-02-03 04:05:06.123456789"))),
    (times(), (np.datetime64(TIME, "ns"), np.datetime64(EVE, "ns"))),
    (times("day"), (DAY, TIME)),
    (stays(), (HOURS, dt.timedelta(seconds=-1), dt.timedelta(microseconds=-1))),
    (stays(unit="hour"), ("PT3H9S", "-PT1S", "P1D")),
    (stays(format="%H:%M:%S", dtype="string"), ("03:00:09", "-00:00:01")),
)
"""Columns, with ordinary values."""
STAND_INS: Final = (
    ("",), ("", "-9.9", "-9"), ("", "NA", "1999-09-09", "-PT1S"), ("", str(2**63 - 1)),
    ("?", "0.1", "unknown"), ("", str(DAY), "-PT1H"),
)  # fmt: skip
LABELS: Final[tuple[tuple[tuple[str, ...], tuple[Any, ...]], ...]] = (
    (("0", "1"), (0, 1)), (("no", "yes"), ("no", "yes")), (("0", "1"), (False, True)),
    (("1", "0"), ("0", "1")), (("0.5", "2", "1"), (0.5, 2.0, 1.0)),
)  # fmt: skip
PERSONS: Final[tuple[tuple[Any, ...], ...]] = (
    (1, 2, 7), ("1", "01", "a", "7"), ("a", "b", "a "), (BIG - 1, BIG, 2**63 - 1)
)  # fmt: skip


def objects(values: list[Any]) -> pd.Series[Any]:
    return pd.Series(values, dtype="object")


def as_pandas_has_it(values: list[Any]) -> pd.Series[Any]:
    return pd.Series(values)


def as_categories(values: list[Any]) -> pd.Series[Any]:
    return pd.Series(pd.Categorical(values))


def object_categories(values: list[Any]) -> pd.Series[Any]:
    return objects(values).astype("category")


def nullable(values: list[Any]) -> pd.Series[Any]:
    return objects(values).convert_dtypes()


def through_numpy(values: list[Any]) -> pd.Series[Any]:
    return pd.Series(np.array(values))


def sparse(values: list[Any]) -> pd.Series[Any]:
    return pd.Series(values).astype(pd.SparseDtype())


def arrow_backed(values: list[Any]) -> pd.Series[Any]:
    column = pa.array(values, from_pandas=True)
    return pd.Series(pd.array(column.to_pylist(), dtype=pd.ArrowDtype(column.type)))


def arrow(values: list[Any]) -> pa.Array:
    return pa.array(values, from_pandas=True)


def arrow_dictionary(values: list[Any]) -> pa.Array:
    return arrow(values).dictionary_encode()


def arrow_views(values: list[Any]) -> pa.Array:
    return pa.array(values, pa.string_view())


def arrow_runs(values: list[Any]) -> pa.Array:
    return compute.run_end_encode(arrow(values))


IN_PANDAS: Final[tuple[Callable[[list[Any]], pd.Series[Any]], ...]] = (
    objects, objects, objects, object_categories, as_pandas_has_it, as_categories, nullable,
    through_numpy, sparse, arrow_backed,
)  # fmt: skip
IN_ARROW: Final = (arrow, arrow_dictionary, arrow_views, arrow_runs)


def to_csv(frame: pd.DataFrame, folder: Path) -> Path:
    frame.to_csv(folder / "a.csv", index=False)
    return folder / "a.csv"


def csv_by_pandas(frame: pd.DataFrame, folder: Path) -> pd.DataFrame:
    return pd.read_csv(to_csv(frame, folder))


def csv_by_pandas_with_arrow(frame: pd.DataFrame, folder: Path) -> pd.DataFrame:
    return pd.read_csv(to_csv(frame, folder), engine="pyarrow", dtype_backend="pyarrow")


def to_parquet(held: pd.DataFrame | pa.Table, folder: Path) -> Path:
    held = held if isinstance(held, pa.Table) else pa.Table.from_pandas(held, preserve_index=False)
    parquet.write_table(held, folder / "a.parquet", row_group_size=2, data_page_size=8)
    return folder / "a.parquet"


def to_shards(frame: pd.DataFrame, folder: Path) -> Path:
    """Each file has types of its own."""
    for number, part in enumerate((frame[:2], frame[2:])):
        to_parquet(part, folder).rename(folder / f"{number}.parquet")
    return folder


def in_chunks(held: pa.Table, _: Path) -> pa.Table:
    return pa.concat_tables([held.slice(0, 1), held.slice(1, 2), held.slice(3)])


def as_it_is(held: Any, _: Path) -> Any:  # noqa: ANN401
    return held


HELD_BY_PANDAS: Final = (
    as_it_is, as_it_is, as_it_is, to_csv, csv_by_pandas, csv_by_pandas_with_arrow, to_parquet,
    to_shards,
)  # fmt: skip
HELD_BY_ARROW: Final = (as_it_is, in_chunks, to_parquet)
NOT_HELD: Final = (
    ValueError, TypeError, OverflowError, ArithmeticError, AttributeError, NotImplementedError,
    pa.ArrowException,
)  # fmt: skip
"""What programs raise that cannot hold some values."""


def _crashes_arrow(values: Sequence[Any]) -> bool:
    """Whether Arrow may crash on values, from which dpntk protects it."""
    times = [isinstance(value, np.datetime64 | np.timedelta64) for value in values]
    return any(times) and not all(times)


@dataclass(frozen=True)
class Way:
    """A way of holding or writing a table."""

    column: Callable[[list[Any]], Any]
    held: Callable[[Any, Path], Data]

    def data(self, records: Sequence[Row], folder: Path) -> Data:
        if not self.is_exact and any(
            map(_crashes_arrow, zip(*map(dict.values, records), strict=True))
        ):
            raise TypeError("NumPy's times among other objects")
        columns = {
            name: values if name == "row" else self.column(values)
            for name in records[0]
            for values in [[record[name] for record in records]]
        }
        frame = pd.DataFrame(columns) if self.column in IN_PANDAS else pa.table(columns)
        return self.held(frame, folder)

    @property
    def is_exact(self) -> bool:
        """Whether no other program has converted values."""
        return self.column in (objects, object_categories) and self.held is as_it_is


def stored(data: Data) -> list[tuple[Any, ...]]:
    """The values of each row, as Python objects."""
    if isinstance(data, Path):
        if data.suffix == ".csv":
            with data.open(newline="", encoding="utf-8") as file:
                return [*map(tuple, csv.reader(file))][1:]
        files = [data] if data.is_file() else sorted(data.iterdir())
        return [row for file in files for row in stored(parquet.read_table(file))]
    if isinstance(data, pa.Table):
        return [*zip(*(column.to_pylist() for column in data.columns), strict=True)]
    return [*zip(*(data[name].tolist() for name in data.columns), strict=True)]


def alike(one: Any, other: Any) -> bool:  # noqa: ANN401
    """Whether two stored values are the same one, or the same number."""
    if str(one) == str(other):
        return True
    if pd.api.types.is_scalar(one) and pd.api.types.is_scalar(other):
        if pd.isna(one) or pd.isna(other):
            return bool(pd.isna(one) and pd.isna(other))
        if one == other:
            return True
    try:
        return Decimal(str(one)) == Decimal(str(other))
    except InvalidOperation:
        return False


def same(one: Sequence[Any], other: Sequence[Any], names: list[str]) -> bool:
    """Whether two stored rows are the same one; 7 and 007 are two persons."""
    return all(
        str(a) == str(b) if name == "who" else alike(a, b)
        for name, a, b in zip(names, one, other, strict=True)
    )


def read(data: Data, schema: TableSchema, size: int, start: int = 0) -> Read | None:
    """What an embedding is made of, from row `start` on; None if it is refused."""
    try:
        source = open_source(data, SourceOptions(schema=schema))
        assert isinstance(source, TableSource | FrameSource)
        batches = [*with_bounded_units(source).batches(size, start)]
        unit = schema.privacy_unit
        persons = [0] * len(source)
        if unit is not None:
            persons = vars(privacy_units)["_persons"](source, unit).tolist()
    except DpntkError:
        return None
    values = [record.tobytes() for batch in batches for record in batch.records]
    classes = [label for batch in batches for label in batch.labels.tolist()]
    return [*zip(values, classes, persons[start:], strict=True)]


def with_persons_numbered(found: Read) -> Read:
    numbers: dict[int, int] = {}
    return [(values, y, numbers.setdefault(who, len(numbers))) for values, y, who in found]


@dataclass(frozen=True)
class Case:
    """Ordinary rows, and rows that are nasty, one of which comes at a place among them."""

    schema: TableSchema
    way: Way
    ordinary: list[Row]
    nasty: list[Row]
    place: int
    sizes: list[int]
    order: list[int]


@st.composite
def cases(
    draw: st.DrawFn,
    kinds: Sequence[Any] = KINDS,
    columns: Sequence[Any] = (*IN_PANDAS, *IN_ARROW),
    persons_of: Sequence[Any] = (None, None, *PERSONS),
    held: Sequence[Any] = (),
) -> Case:
    column, usual = draw(st.sampled_from(kinds))
    names, labels = draw(st.sampled_from(LABELS))
    persons = draw(st.sampled_from(persons_of))
    schema = TableSchema(
        (column, Column.integer("row", 0, 255), Column.categorical("y", names)),
        "y",
        csv=CsvFormat(missing=draw(st.sampled_from(STAND_INS))),
    )
    if persons is not None:
        unit = PrivacyUnit("who", 1000)
        schema = replace(schema, left_out=("who",), privacy_unit=unit)
    of_column = draw(st.sampled_from(columns))
    by = held or (HELD_BY_PANDAS if of_column in IN_PANDAS else HELD_BY_ARROW)
    others = draw(st.sampled_from(KINDS))[1]

    def row(number: int, odd: str = "") -> Row:
        values = {"x": usual, "row": (number,), "y": labels, "who": persons}
        if odd:
            values[odd] = draw(st.sampled_from((VALUES, others)))
        return {name: draw(st.sampled_from(each)) for name, each in values.items() if each}

    n = draw(st.integers(2, 5))
    odd = st.sampled_from(("x", "x", "x", "y", *["who"] * (persons is not None)))
    return Case(
        schema,
        Way(of_column, draw(st.sampled_from(by))),
        [row(number) for number in range(n)],
        [row(99, draw(odd)), row(99, draw(odd))],
        draw(st.integers(0, n)),
        [draw(st.sampled_from((1, 2, 3, 100))) for _ in range(3)],
        draw(st.permutations(range(n))),
    )


def compared(case: Case) -> int:
    """How often the ordinary rows were read again; a failed assertion if in another way."""
    reference: tuple[Read, list[tuple[Any, ...]]] | None = None
    number = 0
    for extra, size in zip(([], case.nasty[:1], case.nasty[1:]), case.sizes, strict=True):
        records = [*case.ordinary[: case.place], *extra, *case.ordinary[case.place :]]
        with tempfile.TemporaryDirectory() as folder:
            try:
                data = case.way.data(records, Path(folder))
                held = stored(data)
            except NOT_HELD:
                continue
            if len(held) != len(records) or (found := read(data, case.schema, size)) is None:
                continue
            rest = read(data, case.schema, size, start=1)
        assert rest == found[1:]
        if extra:
            del found[case.place], held[case.place]
        found = with_persons_numbered(found)
        if reference is None:
            reference = found, held
            continue
        pairs = zip(held, reference[1], strict=True)
        if case.way.is_exact or all(same(one, other, [*records[0]]) for one, other in pairs):
            assert found == reference[0]
            number += 1
    return number


def compared_in_another_order(case: Case) -> int:
    found = []
    for order in (range(len(case.order)), case.order):
        with tempfile.TemporaryDirectory() as folder:
            try:
                data = case.way.data([case.ordinary[place] for place in order], Path(folder))
            except NOT_HELD:
                return 0
            found.append(read(data, case.schema, case.sizes[0]))
    if None in found:
        return 0
    one, other = ([each[:2] for each in read or []] for read in found)
    assert [one[place] for place in case.order] == other
    return 1


@examples(100)
@given(cases())
def test_one_row_changes_how_no_other_is_read(case: Case) -> None:
    compared(case)


@examples(25)
@given(cases())
def test_the_order_of_rows_changes_how_none_is_read(case: Case) -> None:
    compared_in_another_order(case)


# Lines of CSV files

SIGNS: Final = (
    '"', '""', ",", ";", "\t", "\n", "\r", "\r\n", " ", "\0", "a", "7", "\ufeff", "\u2028", "\x85",
    "\x1a", "'", "\\", "#", "\u00e9", "x" * 30, "\U0001f600", '",', '"\n', "-", ".",
)  # fmt: skip
PIECES: Final = (b"\xff", b"\x81", b"\xe3\x81", b"\xc3", b"\xf0\x9f", b"\0")
"""Parts of characters."""
ENCODINGS: Final = {
    "utf-8": "utf-8", "utf-8-sig": "utf-8", "latin-1": "latin-1", "utf-16": "utf-16-le",
    "cp037": "cp037", "shift_jis": "shift_jis", "gb18030": "gb18030",
}  # fmt: skip
"""The encoding of a file, and that of what is not its beginning."""
WHOLE: Final = 1 << 22


@dataclass(frozen=True)
class Lines:
    """A CSV file of ordinary lines, and lines that are nasty, one of which comes at a place."""

    schema: TableSchema
    header: bytes
    ordinary: list[bytes]
    nasty: list[bytes]
    place: int
    block: int = field(default=WHOLE)
    packed: bool = False

    def read(self, extra: Sequence[bytes], block: int) -> Read | None:
        lines = [*self.ordinary[: self.place], *extra, *self.ordinary[self.place :]]
        content = b"".join([self.header, *lines])
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setattr(csv_files, "_BLOCK_BYTES", block)
            file = Path(folder) / ("a.csv.gz" if self.packed else "a.csv")
            file.write_bytes(gzip.compress(content, 0) if self.packed else content)
            return read(file, self.schema, 3)


@st.composite
def files(draw: st.DrawFn) -> Lines:
    separator = draw(st.sampled_from((",", ",", ";", "\t", "|", " ")))
    decimal = "." if separator == "," else draw(st.sampled_from((".", ",")))
    encoding = draw(st.sampled_from(("utf-8", "utf-8", *ENCODINGS)))
    form = CsvFormat(separator, encoding, draw(st.sampled_from(STAND_INS)), decimal)
    end = draw(st.sampled_from(("\n", "\n", "\r\n", "\r")))
    # A quote without its fellow among others that have one: see the sharp edges.
    quotes = draw(st.booleans())
    column, usual = draw(
        st.sampled_from(
            (
                (choices("a", "7", "x", "a\nb"), ("a", "7", "x", "b c")),
                (amounts(), ("7", "12", f"0{decimal}5")),
            )
        )
    )
    if quotes and column.categories:
        usual = (*usual, "a\nb", 'a"b', "a,b", "a;b")
    names = draw(st.sampled_from((["x"], ["x", "n", "note", "who"], ["who", "note", "n", "x"])))
    schema = TableSchema((column,), csv=form)
    if len(names) > 1:
        counter = Column.integer("n", 0, 99, missing=True)
        schema = TableSchema((column, counter), csv=form, left_out=("note", "who"))
        if draw(st.booleans()):
            schema = replace(schema, privacy_unit=PrivacyUnit("who", 1000))

    def line(**texts: str) -> bytes:
        cells = [texts[name] for name in names]
        quoted = [
            '"' + cell.replace('"', '""') + '"' if set(cell) & {separator, *'"\r\n'} else cell
            for cell in cells
        ]
        return (separator.join(quoted) + end).encode(ENCODINGS[encoding], errors="ignore")

    signs = st.lists(st.sampled_from(SIGNS), max_size=6).map("".join)
    cell = signs | st.sampled_from(TEXTS)

    def nasty() -> bytes:
        how = "cells" if quotes else draw(st.sampled_from(("raw", "cells", "cells", "pieces")))
        if how == "raw":
            return (draw(signs) + end).encode(ENCODINGS[encoding], errors="ignore")
        made = line(x=draw(cell), n="5", note=draw(cell), who=draw(cell))
        if how == "pieces" and encoding != "utf-16":  # where one byte shifts all that follow
            last = len(made) - len(end.encode(ENCODINGS[encoding]))  # what follows is another line
            at = draw(st.integers(0, last))
            made = made[:at] + draw(st.sampled_from(PIECES)) + made[at:]
        return made

    ordinary = [
        line(
            x=draw(st.sampled_from(usual)),
            n=str(number),
            note=draw(st.sampled_from(("", "long " * 5, "n"))),
            who=draw(st.sampled_from("pqr")),
        )
        for number in range(draw(st.integers(2, 6)))
    ]
    return Lines(
        schema,
        (separator.join(names) + end).encode(encoding),
        ordinary,
        [nasty(), nasty()],
        draw(st.integers(0, len(ordinary))),
        draw(st.sampled_from((64, 96, 128, 200))),
        draw(st.booleans()),
    )


def compared_lines(file: Lines) -> int:
    """How often the ordinary lines were read again; a failed assertion if in another way."""
    reference = file.read([], WHOLE)
    assert reference is not None
    assert len(reference) == len(file.ordinary)
    number = 0
    for extra in file.nasty:
        for block in (WHOLE, file.block):
            if (found := file.read([extra], block)) is None:
                continue
            after = len(found) - (len(file.ordinary) - file.place)
            assert after >= file.place  # the line may be several rows, but swallows none
            ordinary = with_persons_numbered([*found[: file.place], *found[after:]])
            assert ordinary == with_persons_numbered(reference)
            number += 1
    return number


@examples(150)
@given(files())
def test_one_line_changes_how_no_other_is_read(file: Lines) -> None:
    compared_lines(file)


# That the tests have eyes: mistakes, planted


def categories_as_texts(self: CategoryFinder, values: pa.Array, _: str) -> Any:  # noqa: ANN401
    listed = pa.array(self._column.categories)
    codes = compute.index_in(values.cast(pa.string()), value_set=listed).fill_null(-1)
    return np.array(codes, np.int64)


def as_numbers_if_all_can_be(values: pa.Array) -> pa.Array:
    """The type of a column is inferred from all of its rows."""
    try:
        return plain(values).cast(pa.int64())
    except pa.ArrowInvalid:
        return plain(values)


@dataclass(frozen=True)
class Mistake:
    """A mistake, planted, and rows that show it."""

    owner: object
    attribute: str
    mutant: object
    column: Column
    way: Way
    ordinary: Sequence[Any]
    nasty: Any
    persons: Sequence[str] = ("1", "2", "3")

    @property
    def case(self) -> Case:
        schema = TableSchema(
            (self.column, Column.categorical("y", ["0", "1"])),
            "y",
            left_out=("who",),
            privacy_unit=PrivacyUnit("who", 1000),
        )
        cells = [*zip(self.ordinary, self.persons, strict=True), (self.nasty, "a")]
        *ordinary, nasty = [{"x": x, "y": 0, "who": who} for x, who in cells]
        return Case(schema, self.way, ordinary, [nasty, nasty], 1, [100] * 3, [])


MISTAKES: Final = {
    "persons by an inferred type": Mistake(
        privacy_units, "plain", as_numbers_if_all_can_be,
        amounts(), Way(objects, as_it_is), (0, 1, 2), 3, persons=("1", "01", "7"),
    ),
    "categories by their type": Mistake(
        CategoryFinder, "codes", categories_as_texts,
        choices("1.0", "-9.9"), Way(objects, csv_by_pandas), (1.0, -9.9, 0.0), "b",
    ),
    "numbers of several categories": Mistake(
        CategoryFinder, "_of_stored", CategoryFinder._of_number,
        choices("1", "01", "1.0"), Way(objects, csv_by_pandas), ("1.0", "2", "2"), "b",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake = MISTAKES[name]
    compared(mistake.case)
    monkeypatch.setattr(mistake.owner, mistake.attribute, mistake.mutant)
    with pytest.raises(AssertionError):
        compared(mistake.case)


@pytest.mark.parametrize("column", [days(), times("day")])
def test_a_day_that_is_missing_is_so_at_any_time_of_day(column: Column) -> None:
    """A program that stores days cuts off times, so how a value is read may not depend on them."""
    schema = TableSchema((column,), csv=CsvFormat(missing=("", str(DAY))))
    cells = [TIME, dt.datetime(1999, 9, 9, 23, 59), dt.datetime.combine(DAY, dt.time())]
    stored_as = [pa.array(cells), pa.array([cell.date() for cell in cells])]
    timed, daily = (
        FrameSource.open(pa.table({"x": each}), schema).values()["x"] for each in stored_as
    )
    assert np.array_equal(timed, daily, equal_nan=True)
    assert np.isnan(timed).tolist() == [True, False, True]


def test_a_duration_is_missing_by_its_steps_towards_zero() -> None:
    schema = TableSchema((stays(unit="hour"),), csv=CsvFormat(missing=("", "-PT1H")))
    cells = [dt.timedelta(hours=-1, minutes=-30), dt.timedelta(minutes=-30), dt.timedelta(hours=1)]
    found = FrameSource.open(pa.table({"x": pa.array(cells)}), schema).values()["x"]
    assert np.array_equal(found, [np.nan, 0, 1], equal_nan=True)


@pytest.mark.parametrize("of", [objects, object_categories])
@pytest.mark.parametrize("column", [days(), times("day")])
def test_a_day_among_times_is_refused(of: Callable[[list[Any]], Any], column: Column) -> None:
    """Arrow would cut all of them to days, depending on which comes first."""
    schema = TableSchema((column,))
    for cells in ([DAY, EVE], [EVE, DAY]):
        with pytest.raises(DpntkError, match="holds values of several kinds"):
            FrameSource.open(pd.DataFrame({"x": of(cells)}), schema)
    for cells in ([DAY, None, pd.NaT], [EVE, TIME, pd.NaT]):
        FrameSource.open(pd.DataFrame({"x": of(cells)}), schema)


def test_a_line_that_is_read_by_where_a_block_ends_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "require_no_returns", lambda *_: None)
    schema = TableSchema((choices("a\r\nb", "a\rb"),), csv=CsvFormat(), left_out=("note",))
    ordinary = [b'"a\r\nb",\n', b'"a\r\nb",\n']
    longer = [b"0," + b"n" * length + b"\n" for length in range(56)]
    file = Lines(schema, b"x,note\n", ordinary, longer, 0, block=64)
    with pytest.raises(AssertionError):
        compared_lines(file)
