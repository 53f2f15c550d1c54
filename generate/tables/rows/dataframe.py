"""Generated rows as a pandas DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ....common.errors import GeneratorError
from ....common.schema.columns.column import Column
from ....common.schema.columns.kinds import Missing
from ....common.schema.table import TableSchema

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_NULLABLE: Final = {"bool": "boolean"} | {
    f"{sign.lower()}int{bits}": f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)
}
"""Pandas' nullable types, for types that cannot hold missing values."""


def to_dataframe(table: pa.Table, schema: TableSchema) -> pd.DataFrame:
    """Rows as a DataFrame whose columns have the declared types.

    Integers and booleans keep their type where values may be missing, as pandas' nullable types
    such as Int64. The schema determines a column's type, not the rows.

    Args:
        table: with the columns of the schema.
        schema: of the rows.

    Raises:
        GeneratorError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise GeneratorError(
            "pandas is not installed, and rows in memory are DataFrames: 'pip install pandas', or "
            "read table.parquet with whatever you have"
        ) from error
    return pd.DataFrame(
        {column.name: _series(table.column(column.name), column, pd) for column in schema.stored}
    )


def _series(values: pa.ChunkedArray, column: Column, pd: Any) -> Any:  # noqa: ANN401 - untyped
    nullable = None if column.missing is Missing.REFUSED else _NULLABLE.get(column.dtype)
    if nullable is None:
        return values.to_pandas()
    return values.to_pandas(types_mapper=lambda _: pd.api.types.pandas_dtype(nullable))
