"""What messages call the types of Arrow's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def type_name(kind: pa.DataType) -> str:
    """The name of a type, as messages may say it.

    Guarantee:
        It names no field of a nested type: these are keys of dictionaries where a program made the
        column of such, and so values of its records.

    Returns:
        Such as "int64", "timestamp[us]", or "struct".
    """
    return str(kind).partition("<")[0]
