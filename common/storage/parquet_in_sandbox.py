"""Reading a stranger's Parquet file in a sandboxed process, to see what it takes.

All of pyarrow that is needed is imported at once: nothing can be imported in the sandbox.
"""

from __future__ import annotations

import io

from pyarrow import ArrowException, compute, parquet, types

from .sandbox import Refused


def read_through(content: bytes, rows: int) -> None:
    """Read all columns, `rows` rows at a time, and decode them as readers of tables do.

    Raises:
        Refused: it takes more memory than there is, or the file is damaged.
    """
    try:
        with parquet.ParquetFile(io.BytesIO(content), pre_buffer=False) as file:
            for batch in file.iter_batches(rows, use_threads=False):
                for column in batch.columns:
                    if types.is_dictionary(column.type):
                        compute.dictionary_decode(column)
    except MemoryError as error:
        raise Refused(
            "reading it takes far more memory than it has bytes: no file of synthetic records does"
        ) from error
    except (OSError, ValueError, ArrowException) as error:
        raise Refused(f"not a whole Parquet file: {' '.join(str(error).split())}") from error
