"""Draw rows from a trained generator, and turn them into a table as the source was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from numpy.typing import NDArray

from ...common.console import progress
from ...common.schema.column import Column, ColumnKind
from ...common.schema.encoding import CategoryEncoding, NumericEncoding, blocks_of
from ...common.schema.table import TableSchema
from ..fit.allocation import places_by_class
from ..fit.descent import finite
from .generator import TableGenerator
from .marginal_matching import independent_rows, match_marginals, spread
from .marginals import ColumnMarginal
from .refinement import Refinement
from .reweighting import Reweighting, Rows

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH: Final = 4000
_ARRANGED: Final = 200_000
"""At the most so many rows are arranged together: what that takes is held in memory."""


def sample_rows(
    generator: TableGenerator,
    count: int,
    class_weights: NDArray[np.float64],
    seed: int,
    marginals: tuple[ColumnMarginal, ...] = (),
    reweighting: Reweighting | None = None,
    refinement: Refinement | None = None,
) -> pa.Table:
    """Draw rows, in random order.

    Args:
        generator: in evaluation mode, on the CPU; of no use where columns are known and arranged.
        count: how many rows.
        class_weights: released share of each class, float64 (c,); the labels follow them as
            closely as whole numbers can.
        seed: of labels, latent codes and draws.
        marginals: released ones, to which the generator's rows are corrected.
        reweighting: how to choose among these; all are taken if None.
        refinement: how to put them together anew; they stay as they are if None.

    Returns:
        A table with the columns of the schema; every value is valid under it.
    """
    random = torch.Generator().manual_seed(seed)
    rows = corrected_rows(generator, marginals, random)
    chances = np.random.default_rng(seed)
    schema = generator.schema
    records = np.empty((count, schema.record_size), dtype=np.float32)
    labels = np.empty(count, dtype=np.int64)

    def chosen(label: int, wanted: int) -> NDArray[np.float32]:
        if reweighting is None:
            return rows(label, wanted)
        made = reweighting.draw(label, wanted, rows, chances)
        if not reweighting.pooled[label]:
            match_marginals(made, label, marginals, chances, posterior_mean=True)
        return made

    def independent(label: int, wanted: int) -> NDArray[np.float32]:
        return independent_rows(wanted, label, marginals, schema, chances)

    with progress("sampling", count, "rows") as advance:
        for label, places in places_by_class(count, class_weights, _ARRANGED, random):
            labels[places] = label
            if refinement is not None:
                source = chosen if refinement.swaps(label) else rows
                if marginals and all(marginal.known for marginal in marginals):
                    source = independent
                made = refinement.draw(label, len(places), source, chances, advance)
                spread(made, marginals, chances)
                records[places] = made
                continue
            for batch in np.split(places, range(_BATCH, len(places), _BATCH)):
                records[batch] = chosen(label, len(batch))
                advance(len(batch), "")
    return to_table(schema, records, labels)


def corrected_rows(
    generator: TableGenerator, marginals: tuple[ColumnMarginal, ...], random: torch.Generator
) -> Rows:
    """Rows as they come from a generator, corrected.

    Args:
        generator: in evaluation mode, on the CPU.
        marginals: released ones, to which the rows are corrected.
        random: of latent codes and draws, and the seed of the correction.
    """
    chances = np.random.default_rng(random.initial_seed())

    @torch.inference_mode()
    def rows(label: int, count: int) -> NDArray[np.float32]:
        code = torch.randn(1, count, generator.spec.code, generator=random)
        made = finite(generator(code, torch.tensor([label]), random)[0])
        records: NDArray[np.float32] = made.numpy()
        match_marginals(records, label, marginals, chances)
        return records

    return rows


def to_table(
    schema: TableSchema, records: NDArray[np.float32], labels: NDArray[np.int64]
) -> pa.Table:
    """Turn encoded rows into a table: names, order and types of the columns as in the source.

    Args:
        schema: of the table.
        records: float32 (n, record size), values 0..1.
        labels: int64 (n,).
    """
    import pyarrow

    columns: dict[str, pa.Array] = {}
    for block in blocks_of(schema):
        column, part = block.column, records[:, block.place]
        match block.encoding:
            case NumericEncoding():
                missing = part[:, -1] > 0.5 if block.missing_place else np.zeros(len(part), bool)
                share = part[:, 0].astype(np.float64).clip(0, 1)
                columns[column.name] = _numbers(block.encoding, share, missing)
            case CategoryEncoding():
                ranked = column.kind is ColumnKind.ORDINAL
                columns[column.name] = _categories(column, part[:, int(ranked) :].argmax(axis=1))
    if schema.label_column is not None:
        columns[schema.label_column.name] = _categories(schema.label_column, labels)
    for made in schema.made:
        kind = pyarrow.type_for_alias(made.dtype)
        columns[made.name] = pyarrow.array(made.values(len(records)), kind)
    return pyarrow.table({column.name: columns[column.name] for column in schema.written})


def _numbers(
    encoding: NumericEncoding, share: NDArray[np.float64], missing: NDArray[np.bool_]
) -> pa.Array:
    import pyarrow

    column = encoding.column
    values = column.rounded(encoding.at(share))
    if column.kind.temporal:
        return _dates(column, values, missing)
    kind = pyarrow.type_for_alias(column.dtype)
    if pyarrow.types.is_integer(kind):
        return pyarrow.array(values.astype(np.int64), mask=missing).cast(kind)
    stored = pyarrow.array(values, mask=missing).cast(kind)
    if column.dtype != "float32":
        return stored
    # Rounding to 32 bits may lead out of the bounds.
    lower, upper = encoding.bounds
    narrow = values.astype(np.float32)
    wide = narrow.astype(np.float64)
    narrow = np.where(wide > upper, np.nextafter(narrow, np.float32(-np.inf)), narrow)
    narrow = np.where(wide < lower, np.nextafter(narrow, np.float32(np.inf)), narrow)
    return pyarrow.array(narrow, mask=missing)


def _dates(column: Column, steps: NDArray[np.float64], missing: NDArray[np.bool_]) -> pa.Array:
    import pyarrow

    seconds = steps.astype(np.int64) * column.seconds
    if column.dtype == "string":
        texts = np.array(column.date_format.write(seconds), dtype=object)
        return pyarrow.array(texts, pyarrow.string(), mask=missing)
    kind = pyarrow.type_for_alias(column.dtype)
    return pyarrow.array(seconds.astype("M8[s]"), mask=missing).cast(kind)


def _categories(column: Column, codes: NDArray[np.int64]) -> pa.Array:
    import pyarrow
    from pyarrow import compute

    missing = codes >= len(column.categories)
    texts = pyarrow.array(column.categories, pyarrow.string())
    taken = texts.take(pyarrow.array(np.where(missing, 0, codes), mask=missing))
    if column.dtype == "bool":
        return compute.equal(taken, "true")
    return taken.cast(pyarrow.type_for_alias(column.dtype))
