"""Reading CSV files as texts, block by block; the schema says what the texts mean."""

from __future__ import annotations

import contextlib
import csv
import io
import re
import threading
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from ...errors import DataError
from ...schema.csv_format import CsvFormat
from ..base import reading
from ..paths import AnyPath, for_arrow

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES: Final = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_BLOCK_BYTES: Final = 1 << 22
_LONGEST_HEADER: Final = 1 << 24
_REPLACEMENT: Final = "\ufffd"
"""What stands for undecodable bytes."""
_LONGEST_VALUE: Final = 1 << 40
_LONGEST_WAIT: Final = 10.0
"""The most seconds to wait for a thread to let go of a file that nobody reads any more."""
_BOM: Final = "\ufeff"
_LINE_BREAKS: Final = b"\r\n"
_UNDECODED: Final = re.compile("[\udc80-\udcff]")
"""The characters that `surrogateescape` makes from undecodable bytes."""


def is_csv(path: AnyPath) -> bool:
    """Whether a file is CSV by its name."""
    return path.name.lower().endswith(SUFFIXES)


def read_header(path: AnyPath, form: CsvFormat) -> tuple[str, ...]:
    """The names of the columns.

    Raises:
        DataError: the file is empty, cannot be read, or is not in the encoding.
    """
    with _reading(path, form), _opened(path) as stream:
        start = stream.read(_LONGEST_HEADER)
    if not start:
        raise DataError(f"{path}: the file is empty")
    with _reading(path, form):
        # Other columns may be in another encoding. In small files all is decoded with the header.
        text = start.decode(form.encoding, "replace" if len(start) > 1 << 20 else "strict")
    rows = csv.reader(io.StringIO(text.removeprefix(_BOM), newline=""), delimiter=form.separator)
    try:
        header = next((row for row in rows if row), None)
    except csv.Error as error:
        raise DataError(f"{path}: its header cannot be read: {error}") from error
    if header is not None and any(_REPLACEMENT in name for name in header):
        with _reading(path, form):
            start.decode(form.encoding)  # raises, unless the header itself has this character
    if header is None:
        raise DataError(f"{path}: the file is empty")
    if len(header) == 1 and text.removeprefix(_BOM)[0] in "\r\n":
        raise DataError(f"{path}: it begins with an empty line: remove it, a header comes first")
    return tuple(header)


def read_csv(
    path: AnyPath, header: tuple[str, ...], names: tuple[str, ...], form: CsvFormat
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the rows of a file, block by block, with each value as a text.

    Args:
        path: the file, gzipped if its name ends so.
        header: the names of all its columns.
        names: the columns to read.
        form: the file's format.

    Raises:
        DataError: a row has more or fewer values than the header or leaves a quote open, or the
            file is damaged.
    """
    import pyarrow

    ragged: list[tuple[int | None, int]] = []
    several_lines = False
    let_go = threading.Event()
    with _reading(path, form), _opened(path) as stream:
        try:
            for rows in _reader(stream, header, names, form, ragged, let_go):
                # In any column: those not in `names` may have swallowed rows, too.
                several_lines = several_lines or any(
                    _has(values, sign) for values in rows.columns for sign in _LINE_BREAKS
                )
                yield rows.select(names)
        except pyarrow.ArrowInvalid:
            if not ragged:
                raise
            number, found = ragged[0]
            # Arrow counts the header as row 1.
            row = "a row" if number is None else f"row {number - 1}"
            raise DataError(
                f"{path}: {row} has {found} values, but the header has {len(header)}: correct it, "
                f"or put what holds a {form.separator!r} into quotes"
            ) from None  # Arrow's error quotes the row
        finally:
            # A thread of Arrow's that reads ahead may be the last to have the reader. If it let go
            # of Python's objects while the interpreter ends, the process would be aborted.
            let_go.wait(_LONGEST_WAIT)

    if several_lines:  # a quote may be unclosed or misplaced
        _require_closed_quotes(path, form)
    if len(header) == 1:  # nothing else distinguishes part of a value from a row
        _require_one_row_end(path, form)


def _reader(
    stream: pa.NativeFile,
    header: tuple[str, ...],
    names: tuple[str, ...],
    form: CsvFormat,
    ragged: list[tuple[int | None, int]],
    let_go: threading.Event,
) -> pa.csv.CSVStreamingReader:
    """Arrow's reader, for texts in the columns of `names`.

    Args:
        stream: the file.
        header: the names of all its columns.
        names: the columns to read.
        form: the file's format.
        ragged: gets the number and length of a row that has more or fewer values than the header.
        let_go: set when Arrow has let go of all Python objects of the reader.
    """
    import pyarrow
    import pyarrow.csv

    # Other columns are read as bytes, which need not be in the encoding.
    column_types = dict.fromkeys(header, pyarrow.binary())
    column_types |= dict.fromkeys((*names, header[-1]), pyarrow.string())
    return pyarrow.csv.open_csv(
        stream,
        read_options=pyarrow.csv.ReadOptions(
            use_threads=False, block_size=_BLOCK_BYTES, encoding=form.encoding
        ),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=form.separator,
            newlines_in_values=True,
            # In a single column, an empty line is a row with a missing value.
            ignore_empty_lines=len(header) > 1,
            invalid_row_handler=_noting(ragged, let_go),  # nothing else may hold it
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=column_types, strings_can_be_null=False
        ),
    )


def _noting(
    ragged: list[tuple[int | None, int]], let_go: threading.Event
) -> Callable[[pa.csv.InvalidRow], str]:
    """A handler of ragged rows, with which `let_go` is set when it is gone."""

    def note(row: pa.csv.InvalidRow) -> str:
        ragged.append((row.number, row.actual_columns))
        return "error"

    weakref.finalize(note, let_go.set)
    return note


def require_no_returns(rows: pa.RecordBatch, number: int, where: str) -> None:
    """Refuse carriage returns within values.

    Arrow reads a file in pieces. If a piece ends between the two characters of a line break in a
    value, the second is lost. Where pieces end depends on all earlier rows, so these would decide
    how a value is read, such as a category or the person that a row belongs to.

    Args:
        rows: texts, as Arrow has read them.
        number: number of the first row, from 0.
        where: the file, for messages.

    Raises:
        DataError: there is one.
    """
    from pyarrow import compute

    for name, values in zip(rows.schema.names, rows.columns, strict=True):
        if _has(values, ord("\r")):
            found = compute.index(compute.match_substring(values, "\r"), True).as_py()
            if found >= 0:
                raise DataError(
                    f"{where}: row {number + found + 1}, column {name!r}: there is a carriage "
                    "return within the value: write line breaks in values as line feeds alone"
                )


def _has(values: pa.Array, sign: int) -> bool:
    """Whether a byte occurs in some texts or bytes, or in others in the same buffer."""
    text = values.buffers()[-1]
    return text is not None and bool((np.frombuffer(text, np.uint8) == sign).any())


def _require_closed_quotes(path: AnyPath, form: CsvFormat) -> None:
    """Check that no quote is left open: Arrow reads everything up to the next one as a value.

    Raises:
        DataError: one is.
    """
    with _lines(path, form) as lines:
        rows = csv.reader(lines, delimiter=form.separator, strict=True)
        header, number = next(filter(None, rows)), 0
        try:
            for row in rows:
                number += bool(row) or len(header) == 1
        except csv.Error as error:
            raise DataError(
                f"{path}: row {number + 1} opens a quote and does not close it at a value's "
                "end, so what follows is taken for a part of the value: close it, or, if it is "
                'meant as itself, double it and put the value into quotes, as in "5"" pipe"'
            ) from error


def _require_one_row_end(path: AnyPath, form: CsvFormat) -> None:
    """Check that all rows have the same line ending; the last one may have none.

    Before Python 3.13, its `csv` module, and so pandas, wrote a carriage return unquoted if lines
    end in another way. A value that contains one would count as two rows.

    Raises:
        DataError: they do not.
    """
    latest = ""

    def noted(lines: Iterable[str]) -> Iterator[str]:
        nonlocal latest
        for line in lines:
            latest = line
            yield line

    with _lines(path, form) as lines:
        rows = csv.reader(noted(lines), delimiter=form.separator)
        ends = {latest[len(latest.rstrip("\r\n")) :] for _ in rows}
    if len(ends - {""}) > 1:
        raise DataError(
            f"{path}: rows end with unlike line breaks, as where a value holds one without quotes, "
            "which makes two rows of it: put such values into quotes, and end all rows alike"
        )


@contextlib.contextmanager
def _lines(path: AnyPath, form: CsvFormat) -> Iterator[io.TextIOWrapper]:
    """The lines of a file with their own endings, for Python's `csv`, however long they are."""
    size = csv.field_size_limit(_LONGEST_VALUE)
    try:
        with _reading(path, form), _opened(path) as stream:
            yield io.TextIOWrapper(stream, form.encoding, newline="")
    finally:
        csv.field_size_limit(size)


@contextlib.contextmanager
def _opened(path: AnyPath) -> Iterator[pa.NativeFile]:
    import pyarrow

    compression = "gzip" if path.suffix.lower() == ".gz" else None
    with (
        for_arrow(path) as at,
        pyarrow.input_stream(at, compression=compression) as stream,
    ):
        yield stream


@contextlib.contextmanager
def _reading(path: AnyPath, form: CsvFormat) -> Iterator[None]:
    """Turn errors of Arrow and the codec, which may quote records, into one clear line."""
    import pyarrow

    with reading(path):
        try:
            yield
        except UnicodeError:
            raise _not_in_the_encoding(path, form) from None
        except pyarrow.ArrowInvalid as error:
            reason = " ".join(str(error).split())
            if "UTF8" in reason or "UTF-8" in reason:
                raise _not_in_the_encoding(path, form) from None
            raise DataError(f"{path}: not a whole CSV file", reason) from None
        except OSError as error:
            if error.strerror:
                raise
            reason = " ".join(str(error).split())
            raise DataError(f"{path}: not a whole file: {reason[:300]}") from error


def _not_in_the_encoding(path: AnyPath, form: CsvFormat) -> DataError:
    return DataError(
        f"{path}: {_first_undecodable(path, form)}not in {form.encoding}: say in the schema in "
        "which encoding it is, as encoding = \"latin-1\" under [csv]; 'dpntk schema --encoding' "
        "writes that"
    )


def _first_undecodable(path: AnyPath, form: CsvFormat) -> str:
    """The place of the first value that is not in the encoding, in words; empty if unknown."""
    with contextlib.suppress(UnicodeError, csv.Error, OSError), _opened(path) as stream:
        text = io.TextIOWrapper(stream, form.encoding, "surrogateescape", newline="")
        rows = csv.reader(text, delimiter=form.separator)
        header = next(filter(None, rows), [])
        if any(map(_UNDECODED.search, header)):
            return "the header is "
        for number, row in enumerate((row for row in rows if row or len(header) == 1), 1):
            for column, value in enumerate(row, 1):
                if _UNDECODED.search(value):
                    return f"row {number}, column {column} is "
    return ""
