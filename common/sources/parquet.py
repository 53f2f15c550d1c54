"""Reading Parquet files page by page, whatever they contain."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Final

from ..errors import DataError
from .paths import AnyPath, for_arrow
from .shards import overlaps
from .valid_columns import require_valid

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_BUFFER_BYTES: Final = 1 << 20


@contextlib.contextmanager
def opened(path: AnyPath) -> Iterator[pq.ParquetFile]:
    """Open a file to be read page by page, without further threads.

    An object in storage is read in the same pieces, one request for each.
    """
    from pyarrow import parquet

    with (
        for_arrow(path, ahead=0) as at,
        parquet.ParquetFile(
            at, pre_buffer=False, buffer_size=_BUFFER_BYTES, page_checksum_verification=True
        ) as file,
    ):
        yield file


def read_rows(
    path: AnyPath, names: list[str], rows: int, begin: int = 0, end: int | None = None
) -> Generator[tuple[int, pa.RecordBatch], None, None]:
    """Yield (number of the first record, columns) of records begin..end-1, `rows` at a time.

    Raises:
        DataError: the file is damaged, or a text is not in UTF-8.
    """
    with reading_parquet(path), opened(path) as file:
        counts = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        if sum(counts) != file.metadata.num_rows:
            raise DataError(
                f"{path}: damaged: {sum(counts)} records in its row groups, but "
                f"{file.metadata.num_rows} in all"
            )
        end = sum(counts) if end is None else end
        groups = list(overlaps(counts, begin, end))
        if not groups:
            return
        number = begin - groups[0][1]  # counted from the first row group's beginning
        for batch in file.iter_batches(
            rows, row_groups=[index for index, _, _ in groups], columns=names, use_threads=False
        ):
            first, last = max(begin, number), min(end, number + len(batch))
            if first < last:
                require_valid(batch, str(path))
                yield first, batch.slice(first - number, last - first)
            number += len(batch)
        if number < end:
            raise DataError(f"{path}: cut short: it ends after {number} of {end} records")


@contextlib.contextmanager
def reading_parquet(path: AnyPath) -> Iterator[None]:
    """Turn the Parquet reader's errors into one clear line."""
    import pyarrow

    try:
        yield
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        # System errors describe themselves; the reader's own errors are OSErrors, too, and names
        # that are not UTF-8 give a ValueError.
        reason = " ".join((getattr(error, "strerror", None) or str(error)).split())
        raise DataError(f"{path}: not a whole Parquet file: {reason}") from error
