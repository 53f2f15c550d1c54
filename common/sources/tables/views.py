"""Converting texts that Arrow cannot compute with yet (`string_view`) to texts that it can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

_VIEW: Final = "string_view"


def without_views(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, with texts that Arrow computes with."""
    import pyarrow

    if not any(_has_views(kind) for kind in rows.schema.types):
        return rows
    columns = [without_view(column) for column in rows.columns]
    return pyarrow.record_batch(columns, names=rows.schema.names)


def without_view(column: Any) -> Any:  # noqa: ANN401 - an array or a chunked one, untyped
    """The same pyarrow column, with texts that Arrow computes with."""
    import pyarrow

    if not _has_views(column.type):
        return column
    text = pyarrow.string()
    if str(column.type) == _VIEW:
        return column.cast(text)
    kind = pyarrow.dictionary(column.type.index_type, text, ordered=column.type.ordered)
    if isinstance(column, pyarrow.ChunkedArray):
        return pyarrow.chunked_array([without_view(part) for part in column.chunks], kind)
    return pyarrow.DictionaryArray.from_arrays(
        column.indices, column.dictionary.cast(text), ordered=kind.ordered
    )


def _has_views(kind: pa.DataType) -> bool:
    from pyarrow import types

    return str(kind.value_type if types.is_dictionary(kind) else kind) == _VIEW
