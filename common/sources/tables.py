"""Tables in CSV and Parquet files, row by row as the schema says."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ..column import Column, ColumnKind, Missing
from ..console import notice
from ..encoding import MISSING, Block, CategoryEncoding, NumericEncoding, blocks_of
from ..errors import DataError, SchemaError
from ..schema import digest
from ..table_schema import TableSchema
from ..words import counted
from .base import Batch, files_fingerprint, reading, regrouped, require_records
from .csv_files import SUFFIXES, is_csv, read_csv, read_header
from .parquet_files import opened, read_rows, reading_parquet
from .prefetch import read_ahead
from .shards import find_shards, holds_shards

if TYPE_CHECKING:
    import pyarrow as pa

_PARQUET: Final = ".parquet"
_ROWS: Final = 1 << 14
_EXACT: Final = 2**53


def find_tables(path: Path, split: str) -> tuple[Path, ...]:
    """The files of a table: one file, or all CSV or Parquet files of a folder (of one split).

    Raises:
        DataError: there is no table at the path.
    """
    with reading(path):
        if not path.exists():
            raise DataError(f"{path}: there is no such file or folder")
        if not path.is_dir():
            if not is_csv(path) and path.suffix.lower() != _PARQUET:
                raise DataError(
                    f"{path}: not a kind of table that dpntk reads: give a file whose name ends in "
                    f"{', '.join(SUFFIXES)} or {_PARQUET}, or a folder of such files"
                )
            return (path,)
        kinds = [suffix for suffix in (*SUFFIXES, _PARQUET) if holds_shards(path, suffix)]
        if len(kinds) != 1:
            held = " and ".join(kinds) if kinds else "no CSV or Parquet files"
            raise DataError(f"{path}: holds {held}: a table is in files of one kind")
        return find_shards(path, kinds[0], split)


@dataclass(frozen=True, eq=False)
class TableSource:
    """A table whose rows become records (`dpntk.common.encoding`).

    Rows are numbered from 1 in messages, file by file; the header of a CSV file does not count.

    Attributes:
        schema: what is publicly known of it.
        files: that it is in, in order.
        counts: number of rows in each.
    """

    schema: TableSchema
    files: tuple[Path, ...]
    counts: tuple[int, ...]

    @classmethod
    def open(cls, path: Path, schema: TableSchema, split: str = "train") -> TableSource:
        """Open a table: its columns are compared with the schema, and its rows counted.

        Args:
            path: a CSV or Parquet file, or a folder of such.
            schema: of the table.
            split: "train" or "test", where a folder has both.

        Raises:
            DataError: the files cannot be read.
            SchemaError: the columns are not those of the schema.
        """
        files = find_tables(path, split)
        counts = tuple(_rows_of(file, schema) for file in files)
        require_records(sum(counts), str(path))
        return cls(schema, files, counts)

    def __len__(self) -> int:
        """Number of rows."""
        return sum(self.counts)

    def fingerprint(self) -> str:
        """See `Source`."""
        folder = self.files[0].parent
        names = [file.name for file in self.files]
        return files_fingerprint(folder, names, self.counts, digest(self.schema.to_json()))

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """See `Source`. A CSV file is read from its beginning whatever `start` is.

        Values beyond their bounds are clipped, and how many is shown to the user at the end.
        """
        reader = _Reader(self.schema)
        with contextlib.closing(read_ahead(self._rows(start, stop))) as rows:
            encoded = (reader.encode(found, first, str(file)) for file, first, found in rows)
            yield from regrouped(encoded, size)
        reader.tell()

    def values(self) -> dict[str, NDArray[Any]]:
        """Read the whole table, column by column, as the schema understands it.

        Returns:
            Name to float64 (n,) between the bounds, NaN where missing, of a numeric column; to
            int64 (n,) indices of categories, `MISSING` where missing, of another.

        Raises:
            DataError: a value cannot be read.
            SchemaError: a column does not fit the schema.
        """
        reader = _Reader(self.schema)
        with contextlib.closing(read_ahead(self._rows(0, None))) as rows:
            parts = [reader.values(found, first, str(file)) for file, first, found in rows]
        reader.tell()
        return {
            column.name: np.concatenate([part[column.name] for part in parts])
            for column in self.schema.columns
        }

    def _rows(
        self, start: int, stop: int | None
    ) -> Generator[tuple[Path, int, pa.RecordBatch], None, None]:
        """Yield the used columns of some rows, and the file and the number of the first of them."""
        names = tuple(column.name for column in self.schema.columns)
        stop = len(self) if stop is None else min(stop, len(self))
        begins = [0, *itertools.accumulate(self.counts)]
        for file, begin, count in zip(self.files, begins, self.counts, strict=False):
            first, last = max(start - begin, 0), min(stop - begin, count)
            if first >= last:
                continue
            if not is_csv(file):
                for number, rows in read_rows(file, list(names), _ROWS, first, last):
                    yield file, number, rows.select(list(names))
                continue
            number = 0
            header = read_header(file, self.schema.csv)
            with contextlib.closing(read_csv(file, header, names, self.schema.csv)) as blocks:
                for rows in blocks:
                    low, high = max(first, number), min(last, number + len(rows))
                    for place in range(low, high, _ROWS):
                        part = rows.slice(place - number, min(_ROWS, high - place))
                        yield file, place, part
                    number += len(rows)
                    if number >= last:
                        break
            if number < last:
                raise DataError(f"{file}: cut short: it ends after {number} of {count} rows")


def _rows_of(file: Path, schema: TableSchema) -> int:
    """How many rows a file has, once its columns are those of the schema."""
    if not is_csv(file):
        with reading_parquet(file), opened(file) as parquet:
            require_columns(tuple(parquet.schema_arrow.names), schema, str(file))
            count: int = parquet.metadata.num_rows
            return count
    header = read_header(file, schema.csv)
    require_columns(header, schema, str(file))
    return sum(len(rows) for rows in read_csv(file, header, header[:1], schema.csv))


def require_columns(found: tuple[str, ...], schema: TableSchema, where: str) -> None:
    """Check that a file has the columns of the schema, in whatever order, and no others.

    Raises:
        SchemaError: it has not.
    """
    repeated = [name for name, times in Counter(found).items() if times > 1]
    if repeated:
        raise SchemaError(f"{where}: there are two columns {repeated[0]!r}: rename one of them")
    wanted = [*(column.name for column in schema.columns), *schema.left_out]
    lacking = [name for name in wanted if name not in found and name not in schema.left_out]
    strange = [name for name in found if name not in wanted]
    if lacking and len(found) == 1 and is_csv(Path(where)):
        raise SchemaError(
            f"{where}: the header is one column {found[0][:100]!r}: are values separated by "
            f"something else than {schema.csv.separator!r}? The schema says by what"
        )
    if lacking:
        raise SchemaError(f"{where}: there is no column {lacking[0]!r}, which the schema describes")
    if strange:
        raise SchemaError(
            f"{where}: the schema lacks the column {strange[0]!r}: describe it there, or name it "
            "in left_out"
        )


class _Reader:
    """Turns columns of values into records, and counts what had to be changed for that."""

    def __init__(self, schema: TableSchema) -> None:
        self._schema = schema
        self._blocks = blocks_of(schema)
        self.clipped: Counter[str] = Counter()
        self.unlisted: Counter[str] = Counter()

    def encode(self, rows: pa.RecordBatch, first: int, where: str) -> Batch:
        """Encode some rows.

        Args:
            rows: the columns, by name.
            first: number of the first row in its file, from 0.
            where: the file, for messages.
        """
        records = np.empty((len(rows), self._schema.inputs), dtype=np.uint8)
        labels = np.zeros(len(rows), dtype=np.int64)
        for block in self._blocks:
            at = _Place(where, first, block.column)
            records[:, block.place] = self._encoded(rows.column(block.column.name), block, at)
        if (label := self._schema.label_column) is not None:
            labels = self._codes(rows.column(label.name), _Place(where, first, label))
        return Batch(records, labels)

    def values(self, rows: pa.RecordBatch, first: int, where: str) -> dict[str, NDArray[Any]]:
        """Some rows as numbers and codes, column by column; arguments as of `encode`."""
        found: dict[str, NDArray[Any]] = {}
        for column in self._schema.columns:
            at, values = _Place(where, first, column), rows.column(column.name)
            if column.lower is None or column.upper is None:
                found[column.name] = self._codes(values, at)
            else:
                numbers, _ = self._numbers(values, at, (column.lower, column.upper))
                found[column.name] = np.clip(numbers, column.lower, column.upper)
        return found

    def tell(self) -> None:
        """Show the user how many values were changed."""
        for name, count in self.clipped.items():
            notice(f"{name}: beyond its bounds in {counted(count, 'row')}, counted as the bound")
        for name, count in self.unlisted.items():
            notice(f"{name}: in no category in {counted(count, 'row')}, counted as its other")

    def _encoded(self, values: pa.Array, block: Block, at: _Place) -> NDArray[np.uint8]:
        match block.encoding:
            case NumericEncoding():
                return block.encoding.encode(*self._numbers(values, at, block.encoding.bounds))
            case CategoryEncoding():
                return block.encoding.encode(self._codes(values, at))

    def _numbers(
        self, values: pa.Array, at: _Place, bounds: tuple[float, float]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Values and whether they are missing."""
        import pyarrow
        from pyarrow import compute, types

        column = at.column
        values = _plain(values)
        absent = self._absent(values)
        if types.is_string(values.type) or types.is_large_string(values.type):
            texts = compute.utf8_trim_whitespace(values)
            texts = compute.if_else(pyarrow.array(absent), None, texts)
            try:
                numbers = compute.cast(texts, pyarrow.float64())
            except pyarrow.ArrowInvalid as error:
                raise at.wrong(_first_no_number(texts), values, "is not a number") from error
        elif types.is_integer(values.type) or types.is_floating(values.type):
            numbers = values.cast(pyarrow.float64(), safe=False)
        elif types.is_decimal(values.type):
            numbers = values.cast(pyarrow.float64())
        else:
            raise SchemaError(f"{at.where}: column {column.name!r} is {values.type}, not numbers")
        found: NDArray[np.float64] = numbers.fill_null(float("nan")).to_numpy(zero_copy_only=False)
        missing = np.isnan(found)
        self._require_there(missing, at)
        at.require(~np.isinf(found), values, "is infinite")
        if column.kind is ColumnKind.INTEGER:
            at.require(missing | (found == np.rint(found)), values, "is not a whole number")
        beyond = (found < bounds[0]) | (found > bounds[1])
        if beyond.any():
            self.clipped[column.name] += int(beyond.sum())
        return found, missing

    def _codes(self, values: pa.Array, at: _Place) -> NDArray[np.int64]:
        """Indices of categories, and `MISSING`."""
        import pyarrow
        from pyarrow import compute

        column = at.column
        texts = _as_texts(_plain(values), at)
        listed = compute.index_in(
            texts, value_set=pyarrow.array(column.categories, pyarrow.string())
        )
        codes: NDArray[np.int64] = (
            listed.fill_null(MISSING).to_numpy(zero_copy_only=False).astype(np.int64)
        )
        absent = (codes == MISSING) & self._absent(texts)
        self._require_there(absent, at)
        unlisted = (codes == MISSING) & ~absent
        if unlisted.any():
            if column.other is None:
                at.require(
                    ~unlisted, texts, "is none of its categories: correct it, add it to the "
                    "schema, or name an other there",
                )  # fmt: skip
            self.unlisted[column.name] += int(unlisted.sum())
            codes[unlisted] = column.categories.index(str(column.other))
        return codes

    def _absent(self, values: pa.Array) -> NDArray[np.bool_]:
        """Which values are not there; texts count as such if the schema's CSV format says so."""
        import pyarrow
        from pyarrow import compute, types

        absent = values.is_null()
        if types.is_string(values.type):
            stand_ins = pyarrow.array(self._schema.csv.missing, pyarrow.string())
            absent = compute.or_(absent, compute.is_in(values, value_set=stand_ins))
        found: NDArray[np.bool_] = absent.to_numpy(zero_copy_only=False)
        return found

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
    """Where some values stand, for messages.

    Attributes:
        where: the file.
        first: number of the first row, from 0.
        column: that they are in.
    """

    where: str
    first: int
    column: Column

    def wrong(self, index: int, values: pa.Array, what: str) -> DataError:
        shown = str(values[index].as_py())[:60]
        return DataError(
            f"{self.where}: row {self.first + index + 1}, column {self.column.name!r}: "
            f"{shown!r} {what}"
        )

    def require(self, fine: NDArray[np.bool_], values: pa.Array, what: str) -> None:
        if not fine.all():
            raise self.wrong(int(np.flatnonzero(~fine)[0]), values, what)


def _plain(values: pa.Array) -> pa.Array:
    """The values of a dictionary, written out; texts as `string`."""
    import pyarrow
    from pyarrow import types

    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if types.is_large_string(values.type):
        values = values.cast(pyarrow.string())
    return values


def _as_texts(values: pa.Array, at: _Place) -> pa.Array:
    """Values as their categories are written.

    Numbers are written as those of the schema's dtype are, not of the file's: programs store whole
    numbers as floats where one of them is missing, and that a record lacks one must not change how
    others are read.
    """
    import pyarrow
    from pyarrow import compute, types

    kind = values.type
    if not (types.is_string(kind) or types.is_integer(kind) or types.is_floating(kind)
            or types.is_boolean(kind)):  # fmt: skip
        raise SchemaError(f"{at.where}: column {at.column.name!r} is {kind}, not categories")
    texts = values.cast(pyarrow.string())
    if types.is_floating(kind) and "int" in at.column.dtype:
        whole = values.cast(pyarrow.int64(), safe=False)
        same = compute.equal(whole.cast(kind, safe=False), values)
        return compute.if_else(same, whole.cast(pyarrow.string()), texts)
    if types.is_integer(kind) and "float" in at.column.dtype:
        return values.cast(pyarrow.float64(), safe=False).cast(pyarrow.string())
    return texts


def _first_no_number(texts: Any) -> int:  # noqa: ANN401 - pyarrow is untyped
    """Index of the first text that does not say a number."""
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
