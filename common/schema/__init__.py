"""Schemas: what is publicly known of a data set's records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import SchemaError
from .image import ImageSchema
from .table import TableSchema

Schema = ImageSchema | TableSchema


def schema_from_json(document: Mapping[str, Any]) -> Schema:
    """Read what a schema's `to_json` wrote.

    Raises:
        SchemaError: it is not a schema that this version knows.
    """
    if not isinstance(document, dict):
        raise SchemaError("not a schema that this dpntk reads")
    if document.get("kind") == "table":
        return TableSchema.from_json(document)
    return ImageSchema.from_json(document)
