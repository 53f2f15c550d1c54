"""A limit on what a stranger's file may unpack to."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ..common.errors import DataError
from ..common.sources.tables.rows import ROWS_AT_ONCE
from ..common.storage import sandbox, untrusted_files
from ..common.storage.sandbox import LIMITS, Limits, Refused

_ALWAYS: Final = 1 << 28
"""Bytes that are always allowed: 65,536 grey images of the largest size."""
_TO_ONE: Final = 256
"""Largest compression ratio; that of synthetic records is hardly a tenth of it."""
_LARGEST: Final = 1 << 33
"""Bytes of the largest Parquet file of synthetic records."""
_TIMES: Final = 4
"""Bytes of memory for each byte of a Parquet file, beside those of its columns."""
_OF_A_COLUMN: Final = 1 << 20
"""Bytes of memory for a column, which is read through buffers of its own."""
_MOST_COLUMNS: Final = 2048
"""Columns that have such memory: the folder itself says how many there are."""
_CELLS_A_SECOND: Final = 1_000_000
"""Slowest reading of cells of a Parquet file; a laptop reads 15 million."""


def require_plausible(path: Path, size: int) -> None:
    """Refuse an implausibly large file before memory is allocated for it.

    Args:
        path: a file of synthetic records.
        size: the size that it claims to unpack to, in bytes.

    Raises:
        DataError: a small file claims to hold a great deal.
    """
    packed = path.stat().st_size
    if size > max(_ALWAYS, _TO_ONE * packed):
        raise DataError(
            f"{path}: {packed:,} bytes that unpack to {size:,}: no file of synthetic records does"
        )


def require_readable(path: Path, rows: int, columns: int) -> None:
    """Refuse a Parquet file that takes much more memory to read than its bytes and cells explain.

    One long value may stand for all rows. So a sandboxed process reads the file first, in the same
    parts as this one will.

    Args:
        path: a table of synthetic records.
        rows: the number of its rows, which is plausible.
        columns: the number of its columns.

    Raises:
        DataError: it cannot be read there.
    """
    from ..common.storage.parquet_in_sandbox import read_through  # pyarrow takes a while to import

    content = untrusted_files.read(path, _LARGEST, refusal=DataError)
    limits = Limits(
        LIMITS.memory + _TIMES * len(content) + _OF_A_COLUMN * min(columns, _MOST_COLUMNS),
        LIMITS.seconds + rows * columns // _CELLS_A_SECOND,
    )
    try:
        sandbox.parse_in_child(read_through, content, ROWS_AT_ONCE, limits)
    except Refused as error:
        raise DataError(f"{path}: {error}") from error
