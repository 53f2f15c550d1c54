"""The names of Arrow's column types in messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def type_name(kind: pa.DataType) -> str:
    """The name of a type for messages.

    Guarantee:
        The name contains no field of a nested type: if a program made the column from dictionaries,
        fields are their keys, and so values of records.

    Returns:
        Such as "int64", "timestamp[us]", or "struct".
    """
    return str(kind).partition("<")[0]
