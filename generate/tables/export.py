"""Write a generated table and its generator, and read the generator back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ...common.arguments import argument, seed_from, whole_number
from ...common.display.representations import RedactedRepr
from ...common.errors import GeneratorError
from ...common.schema.table import TableSchema
from ...common.storage.synthetic_folder import CSV, PARQUET
from ..output import generator_file
from ..output.folder import results
from ..output.generator_file import GENERATOR
from .generators.registry import described, generator_from
from .marginals.released import are_known, marginals_from_arrays, marginals_to_arrays
from .refinement import Refinement
from .reweighting import Reweighting
from .rows.dataframe import to_dataframe
from .rows.spreadsheets import SIGNS, shown_as_text
from .rows.texts import texts_of
from .sampling import Drawn, RowModel, draw_rows

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

KIND: Final = "table"
"""The `kind` in the description of a row generator; image generators have none."""
_MARGINALS: Final = "marginals"
_REWEIGHTING: Final = "tilting"
_REFINEMENT: Final = "arrangement"
"""Prefixes of the names of each part's arrays in the file, followed by a dot."""
_WRITTEN_AT_ONCE: Final = 50_000
"""Rows written at once: their texts take many times the memory of their values."""


@dataclass(frozen=True, eq=False, repr=False)
class SavedTableGenerator(RedactedRepr):
    """A generator of rows, the class shares, and its origin.

    Attributes:
        model: what rows are drawn from.
        class_weights: released share of each class, float64 (c,).
        origin: the release's id, digest, epsilon and the rest, and how the generator was trained.
    """

    model: RowModel
    class_weights: NDArray[np.float64]
    origin: dict[str, Any]

    def sample(self, count: int, seed: int | None = None, where: str = "") -> pd.DataFrame:
        """Draw rows, in random order.

        Args:
            count: how many.
            seed: the same seed gives the same rows; if None, each call gives new ones.
            where: a condition that all rows fulfil; empty for none.

        Returns:
            A DataFrame with the columns of the schema and their types, valid under it.

        Raises:
            GeneratorError: a number is out of range, too few rows fulfil the condition, or pandas
                is not installed.
        """
        count = whole_number("count", count, least=1, refusal=GeneratorError)
        rows = self.draw(count, seed_from(seed, GeneratorError), where).table
        return to_dataframe(rows, self.model.schema)

    def draw(self, count: int, seed: int, where: str = "") -> Drawn:
        """Draw rows as `sample` does, with a given seed, as an Arrow table.

        Args:
            count: how many.
            seed: of the draw.
            where: a condition that all rows fulfil; empty for none.

        Returns:
            The rows, and the share of them that was repaired.
        """
        return draw_rows(self.model, count, self.class_weights, seed, where)


def write_table(
    folder: Path,
    saved: SavedTableGenerator,
    table: pa.Table,
    sampling: dict[str, Any],
    *,
    safe_csv: bool = False,
) -> None:
    """Write the folder of results, which appears whole or not at all.

    Args:
        folder: where; an earlier such folder is replaced.
        saved: the generator that made the rows.
        table: the rows.
        sampling: how they were drawn, for the provenance.
        safe_csv: see `safe` of `write_csv`.

    Raises:
        OutputError: the folder cannot be written.
    """
    schema = saved.model.schema
    provenance = {**saved.origin, "schema": schema.to_json(), "sampling": sampling}
    with results(folder, provenance) as temporary:
        write_rows(temporary, table, schema, safe_csv=safe_csv)
        (temporary / GENERATOR).write_bytes(_serialise(saved))


def write_rows(
    folder: Path, table: pa.Table, schema: TableSchema, *, safe_csv: bool = False
) -> None:
    """Write `table.parquet` and `table.csv` into an existing folder; see `write_csv`."""
    from pyarrow import parquet

    with (folder / PARQUET).open("wb") as file:  # Arrow opens no file whose name is not in UTF-8
        parquet.write_table(table, file)
    write_csv(table, schema, folder / CSV, safe=safe_csv)


def write_csv(table: pa.Table, schema: TableSchema, path: Path, *, safe: bool = False) -> None:
    """Write a CSV file in the source's format: separator, encoding, missing values, decimals.

    Args:
        table: the rows.
        schema: of the rows.
        path: of the file.
        safe: whether cells and column names that a spreadsheet would take for formulas are changed
            so that it shows them as texts.

    Raises:
        GeneratorError: no cell can be safe, because the separator begins a formula.
    """
    names, columns = table.column_names, {column.name: column for column in schema.written}
    separator, encoding = schema.csv.separator, schema.csv.encoding
    if safe and separator in SIGNS:
        safely = argument("safe_csv")
        raise GeneratorError(f"{safely}: the schema's separator {separator} begins a formula")
    # The last one, at the beginning of a file, would be taken for its byte order mark.
    needs_quotes = set(f'{separator}"\r\n\ufeff')

    def values(part: pa.Table, name: str) -> list[str]:
        return texts_of(part.column(name), columns[name], schema.csv)

    def written(text: str) -> str:
        if safe:
            text = shown_as_text(text, schema.csv.decimal)
        if not needs_quotes.isdisjoint(text) or (not text and len(names) == 1):
            escaped = text.replace('"', '""')
            return f'"{escaped}"'
        return text

    with path.open("w", encoding=encoding, newline="") as file:
        file.write(separator.join(map(written, names)) + "\n")
        for start in range(0, table.num_rows, _WRITTEN_AT_ONCE):
            part = table.slice(start, _WRITTEN_AT_ONCE)
            for row in zip(*(values(part, name) for name in names), strict=True):
                file.write(separator.join(map(written, row)) + "\n")


def understand_table_generator(
    description: generator_file.Description, weights: generator_file.Weights
) -> SavedTableGenerator:
    """Rebuild the generator from a file that `write_table` wrote, for `generator_file.read`."""
    schema = TableSchema.from_json(description["schema"])
    class_weights = generator_file.class_shares(description["class_weights"], len(schema.classes))
    marginals = marginals_from_arrays(generator_file.taken(_MARGINALS, weights), schema)
    generator = feature_map = reweighting = refinement = None
    if (spec := description.get(_REWEIGHTING)) is not None:
        arrays = generator_file.taken(_REWEIGHTING, weights)
        reweighting = Reweighting.from_arrays(arrays, spec, schema)
        feature_map = reweighting.feature_map
    if arrays := generator_file.taken(_REFINEMENT, weights):
        if (spec := description.get(_REFINEMENT)) is not None:  # earlier files share one map
            feature_map = generator_file.map_from(spec, arrays)
        refinement = Refinement.from_arrays(arrays, feature_map, schema)
    if (network := generator_from(description, schema)) is not None:
        generator = generator_file.restored(network, weights)
    elif weights:
        raise GeneratorError("its weights do not fit its description")
    if refinement is not None and are_known(marginals, schema):
        generator = reweighting = None  # earlier files hold them, unused
    model = RowModel(schema, generator, marginals, reweighting, refinement)
    return SavedTableGenerator(model, class_weights, dict(description["origin"]))


def _serialise(saved: SavedTableGenerator) -> bytes:
    model = saved.model
    description = {
        "kind": KIND,
        **described(model.generator),
        "schema": model.schema.to_json(),
        "class_weights": saved.class_weights.tolist(),
        "origin": saved.origin,
    }
    weights = {} if model.generator is None else dict(model.generator.state_dict())
    weights |= generator_file.named(_MARGINALS, marginals_to_arrays(model.marginals, model.schema))
    for name, part in ((_REWEIGHTING, model.reweighting), (_REFINEMENT, model.refinement)):
        if part is not None:
            description[name] = part.feature_map.spec()
            weights |= generator_file.named(name, part.to_arrays())
    return generator_file.serialise(description, weights)
