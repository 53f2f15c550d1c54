"""Tables in CSV and Parquet files."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Generator, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ...errors import DataError, SchemaError
from ...schema.table import TableSchema
from ...storage.canonical_json import digest
from ..base import files_fingerprint, reading, require_records, require_regular
from ..parquet import opened, read_rows, reading_parquet
from ..paths import AnyPath, require_unchanged
from ..shards import find_shards, holds_shards, overlaps
from .csv import SUFFIXES, is_csv, read_csv, read_header, require_no_returns
from .rows import ROWS_AT_ONCE, Rows, RowsInPlace
from .views import without_views

if TYPE_CHECKING:
    import pyarrow as pa

_PARQUET: Final = ".parquet"


def find_tables(path: AnyPath, split: str) -> tuple[AnyPath, ...]:
    """The files of a table: one file, or all CSV or Parquet files of a folder (of one split).

    Raises:
        DataError: there is no table at the path.
    """
    with reading(path):
        if not path.exists():
            raise DataError(f"{path}: there is no such file or folder")
        if not path.is_dir():
            require_regular(path)
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
class TableSource(Rows):
    """A table whose rows become records (`dpntk.common.schema.encoding`).

    Messages number rows from 1, file by file; the header of a CSV file does not count.

    Attributes:
        schema: what is publicly known of it.
        files: its files, in order.
        counts: the number of rows in each file.
    """

    schema: TableSchema
    files: tuple[AnyPath, ...]
    counts: tuple[int, ...]

    @classmethod
    def open(cls, path: AnyPath, schema: TableSchema, split: str = "train") -> TableSource:
        """Open a table: compare its columns with the schema, and count its rows.

        Args:
            path: a CSV or Parquet file, or a folder of such.
            schema: the table's schema.
            split: "train" or "test", if a folder has both.

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
        as_read = replace(self.schema, by_rank=())  # which says how values are encoded
        return files_fingerprint(self.files, self.counts, digest(as_read.to_json()))

    def rows(self, start: int = 0, stop: int | None = None) -> RowsInPlace:
        """See `Rows`."""
        return self._columns([column.name for column in self.schema.stored], start, stop)

    def only(self, name: str) -> RowsInPlace:
        """Yield one column of all rows, which need not be in the schema.

        Raises:
            DataError: a row cannot be read.
            SchemaError: a file has no such column.
        """
        for file in self.files:
            require_column(name, _names_in(file, self.schema), str(file))
        yield from self._columns([name])

    def _columns(self, names: list[str], start: int = 0, stop: int | None = None) -> RowsInPlace:
        """Yield columns of rows start..stop-1, with the file and the number of the first row."""
        for index, first, last in overlaps(self.counts, start, stop):
            file = self.files[index]
            parts = (
                self._csv_rows(index, tuple(names), first, last)
                if is_csv(file)
                else read_rows(file, names, ROWS_AT_ONCE, first, last)
            )
            with contextlib.closing(parts):
                for number, rows in parts:
                    yield str(file), number, without_views(rows.select(names))

    def _csv_rows(
        self, index: int, names: tuple[str, ...], first: int, last: int
    ) -> Generator[tuple[int, pa.RecordBatch], None, None]:
        """Yield (number of the first row, columns) of rows first..last-1 of a CSV file."""
        file, form = self.files[index], self.schema.csv
        number = 0
        with contextlib.closing(read_csv(file, read_header(file, form), names, form)) as blocks:
            for rows in blocks:
                require_no_returns(rows, number, str(file))
                low, high = max(first, number), min(last, number + len(rows))
                for place in range(low, high, ROWS_AT_ONCE):
                    yield place, rows.slice(place - number, min(ROWS_AT_ONCE, high - place))
                number += len(rows)
                if number >= last:
                    require_unchanged(file)
                    return
        raise DataError(f"{file}: cut short: it ends after {number} of {self.counts[index]} rows")


def _rows_of(file: AnyPath, schema: TableSchema) -> int:
    """The number of rows in a file, after checking its columns against the schema."""
    header = _names_in(file, schema)
    require_columns(header, schema, str(file))
    if is_csv(file):
        one = schema.stored[0].name
        return sum(len(rows) for rows in read_csv(file, header, (one,), schema.csv))
    with reading_parquet(file), opened(file) as parquet:
        count: int = parquet.metadata.num_rows
        return count


def _names_in(file: AnyPath, schema: TableSchema) -> tuple[str, ...]:
    """The names of a file's columns."""
    if is_csv(file):
        return read_header(file, schema.csv)
    with reading_parquet(file), opened(file) as parquet:
        return tuple(parquet.schema_arrow.names)


def require_column(name: str, found: Iterable[str], where: str) -> None:
    """Check that the privacy unit's column exists.

    Raises:
        SchemaError: it does not.
    """
    if name not in found:
        raise SchemaError(f"{where}: there is no column {name!r}, which tells whose a row is")


def require_distinct(names: Iterable[str], where: str) -> None:
    """Check that no two columns of a file have the same name; several may have none.

    Raises:
        SchemaError: two have.
    """
    repeated = [name for name, times in Counter(names).items() if name and times > 1]
    if repeated:
        raise SchemaError(
            f"{where}: two columns have the same name: rename one of them", repeated[0]
        )


def require_columns(found: tuple[str, ...], schema: TableSchema, where: str) -> None:
    """Check that a file has the columns of the schema, in any order, and no others.

    Errors do not quote unknown names: in a file without a header they are a record.

    Raises:
        SchemaError: it does not.
    """
    require_distinct(found, where)
    needed = [column.name for column in schema.stored]
    wanted = [*needed, *schema.left_out, *(column.name for column in schema.made)]
    lacking = [name for name in needed if name not in found]
    strange = [name for name in found if name not in wanted]
    is_text = where.lower().endswith(SUFFIXES)
    if lacking and len(found) == 1 and strange and is_text:
        raise SchemaError(
            f"{where}: the header is one column: are values separated by something else than "
            f"{schema.csv.separator!r}? The schema says by what",
            found[0],
        )
    if lacking:
        raise SchemaError(f"{where}: there is no column {lacking[0]!r}, which the schema describes")
    if strange:
        number = found.index(strange[0]) + 1
        if strange[0] in schema.by_name:
            raise SchemaError(
                f"{where}: the schema computes column {number} from others: take it out of the "
                "data, or 'between' out of the schema"
            )
        if not strange[0]:
            raise SchemaError(
                f'{where}: column {number} has no name: write "" into left_out, or give it one and '
                "describe it"
            )
        raise SchemaError(
            f"{where}: the schema lacks column {number}: describe it there, or name it in left_out",
            strange[0],
        )
