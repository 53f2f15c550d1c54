"""The same table, encoded in another way."""

from __future__ import annotations

from dataclasses import replace

from ...schema import Schema
from ...schema.table import TableSchema
from ..base import Source
from .frames import FrameSource
from .privacy_units import BoundedSource
from .table import TableSource


def encoded_by(source: Source, schema: Schema) -> Source:
    """The source, whose rows become records by a schema that describes the same columns.

    Args:
        source: an open source.
        schema: its own, or another encoding of the same columns.

    Returns:
        The source as it is, if the schema is its own or dpntk does not encode its records.
    """
    if schema == source.schema or not isinstance(schema, TableSchema):
        return source
    if isinstance(source, BoundedSource):
        return replace(source, table=replace(source.table, schema=schema))
    if isinstance(source, TableSource | FrameSource):
        return replace(source, schema=schema)
    return source
