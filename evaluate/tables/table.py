"""Tables in memory, synthetic or real."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...common.arguments import argument
from ...common.display.representations import RedactedRepr
from ...common.errors import DataError, SchemaError
from ...common.schema.drafts.toml import read_schema
from ...common.schema.encoding import blocks_of
from ...common.schema.table import TableSchema
from ...common.sources.tables.csv import is_csv
from ...common.sources.tables.frames import Frame, FrameSource
from ...common.sources.tables.table import TableSource
from ...common.storage.synthetic_folder import CSV, PARQUET, PROVENANCE
from ..given import Records, are_arrays
from ..provenance import read_provenance
from ..unpacked import require_plausible, require_readable

_TABLES: Final = (PARQUET, CSV)
_SCHEMA: Final = "schema.toml"
_CELL_BYTES: Final = 8


@dataclass(frozen=True, eq=False, repr=False)
class Table(RedactedRepr):
    """Rows under a schema.

    Attributes:
        schema: of the rows.
        columns: values by column name. For a numeric column float64 (n,), NaN where missing; for
            another int64 (n,), indices into its categories, `MISSING` where missing, and `UNLISTED`
            where real rows hold another category.
        provenance: origin of synthetic rows; empty for real ones.
    """

    schema: TableSchema
    columns: Mapping[str, NDArray[Any]]
    provenance: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.columns[self.schema.columns[0].name])

    @property
    def class_names(self) -> tuple[str, ...]:
        """The name of every class."""
        return self.schema.classes

    @property
    def labels(self) -> NDArray[np.int64]:
        """Class of every row, int64 (n,); all 0 in a table without a label.

        With more than two classes, real rows may have an `UNLISTED` one.
        """
        if self.schema.label is None:
            return np.zeros(len(self), dtype=np.int64)
        labels: NDArray[np.int64] = self.columns[self.schema.label]
        return labels

    def records(self) -> NDArray[np.uint8]:
        """Rows encoded as for a release, uint8 (n, record size): `dpntk.common.schema.encoding`."""
        found = np.empty((len(self), self.schema.record_size), dtype=np.uint8)
        for block in blocks_of(self.schema):
            found[:, block.place] = block.encode(self.columns[block.column.name])
        return found


def is_table(records: Records) -> bool:
    """Whether records are a table: in memory, in a folder of `dpntk generate`, or a CSV file."""
    if not isinstance(records, Path):
        return not are_arrays(records)
    return is_csv(records) or any((records / name).is_file() for name in _TABLES)


def read_synthetic_table(path: Path | Frame, schema: Path | TableSchema | None = None) -> Table:
    """Read the table in a folder that `dpntk generate` wrote, or any CSV or Parquet file.

    Args:
        path: the folder or file; or a table in memory, which has no provenance.
        schema: of the table, or a `schema.toml`; if None, the one beside the table, or in its
            provenance.

    Raises:
        DataError: there is no such table.
        SchemaError: there is no schema, or the table does not fit it.
    """
    if not isinstance(path, Path):
        if schema is None:
            raise SchemaError(
                f"{type(path).__name__}: rows in memory do not say what their columns are: give "
                "TableOptions(schema=...)"
            )
        known = _schema(Path(), {}, schema)
        return Table(known, FrameSource.open(path, known).values(), {})
    if not path.exists():
        raise DataError(f"{path}: there is no such folder; 'dpntk generate' makes one")
    table = path
    provenance: dict[str, Any] = {}
    if path.is_dir():
        table = next((path / name for name in _TABLES if (path / name).is_file()), path)
        if table == path:
            raise DataError(f"{path}: there is no {_TABLES[0]} in it; 'dpntk generate' writes one")
        provenance = read_provenance(path)
    known = _schema(table.parent, provenance, schema)
    source = TableSource.open(table, known)
    require_plausible(table, len(source) * len(known.columns) * _CELL_BYTES)
    if not is_csv(table):
        require_readable(table, len(source), len(known.columns))
    return Table(known, source.values(), provenance)


def read_real_table(path: Path | Frame, split: str, schema: TableSchema) -> Table:
    """Read real rows, in files or in memory, under the schema of synthetic ones.

    Categories that the schema does not list count as one further category, which no synthetic row
    has.

    Raises:
        DataError: they cannot be read.
        SchemaError: they do not fit the schema.
    """
    if not isinstance(path, Path):
        return Table(schema, FrameSource.open(path, schema).values(keep_unlisted=True), {})
    return Table(schema, TableSource.open(path, schema, split).values(keep_unlisted=True), {})


def _schema(
    folder: Path, provenance: dict[str, Any], path: Path | TableSchema | None
) -> TableSchema:
    if isinstance(path, TableSchema):
        return path
    # Schema entries looked up in the data are fine here: an evaluation promises no privacy.
    if path is None and os.path.lexists(folder / _SCHEMA):
        path = folder / _SCHEMA
    if path is not None:
        return read_schema(path, accept_from_data=True)
    document = provenance.get("schema")
    if not isinstance(document, dict):
        raise SchemaError(
            f"{folder}: nothing there says what the columns are: give the schema with "
            f"{argument('schema')}"
        )
    try:
        return TableSchema.from_json(document)
    except SchemaError as error:
        raise SchemaError(f"{folder / PROVENANCE}: its schema: {error}") from error
