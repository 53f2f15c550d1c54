"""Checking that Arrow's columns hold what their types say, which Arrow takes on trust."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


def require_valid(rows: pa.Table | pa.RecordBatch, where: str) -> None:
    """Check that texts are UTF-8, and that columns refer to nothing beyond their own values.

    Args:
        rows: rows of a table or file that another program has made.
        where: their place, for messages.

    Raises:
        DataError: a check failed. The message does not quote values.
    """
    import pyarrow

    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        try:
            column.validate(full=True)
        except pyarrow.ArrowInvalid:
            raise DataError(
                f"{where}: column {name!r} is damaged, or holds texts that are not in UTF-8: let "
                "the program that made it write it anew"
            ) from None
