"""Generated tables: valid under their schema, typed as the source, and corrected by marginals."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from dpntk.common.errors import GeneratorError
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind
from dpntk.common.schema.encoding import NumericEncoding, blocks_of
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.generate import load_generator
from dpntk.generate.tables.export import SavedTableGenerator, write_table
from dpntk.generate.tables.rows.values import values_of
from dpntk.generate.tables.sampling import RowModel, draw_rows
from tests.helpers.tables import PEOPLE, random_generator, random_marginals, require_valid, schemas


@given(schemas(), st.booleans(), st.integers(0, 99))
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_every_table_is_valid_and_can_be_read_as_its_source_was(
    tmp_path_factory: pytest.TempPathFactory, schema: TableSchema, with_marginals: bool, seed: int
) -> None:
    generator = random_generator(schema, seed)
    shares = np.full(len(schema.classes), 1 / len(schema.classes))
    marginals = random_marginals(schema, seed) if with_marginals else ()
    saved = SavedTableGenerator(RowModel(schema, generator, marginals), shares, {})
    table = saved.draw(23, seed).table
    require_valid(table, schema)

    folder = tmp_path_factory.mktemp("tables") / "synthetic"
    write_table(folder, saved, table, {})
    assert parquet.read_table(folder / "table.parquet").equals(table)
    # Both files are read back as any table of this schema is, and give the same records.
    records = []
    for name in ("table.csv", "table.parquet"):
        (batch,) = open_source(folder / name, SourceOptions(schema=schema)).batches(100)
        records.append(batch.records)
    if not any(_ambiguous(column.categories, schema) for column in schema.columns):
        assert np.array_equal(records[0], records[1])
    again = load_generator(folder / "generator.safetensors")
    assert isinstance(again, SavedTableGenerator)
    assert again.draw(23, seed).table.equals(table)


def _ambiguous(categories: tuple[str, ...], schema: TableSchema) -> bool:
    """Whether a category is written as a missing value is."""
    return not set(categories).isdisjoint(schema.csv.missing)


def test_a_record_in_training_is_encoded_as_a_row_is() -> None:
    generator = random_generator(PEOPLE)
    code = torch.randn(2, 500, 4)
    with torch.inference_mode():
        records = generator(code, torch.arange(2)).numpy()
    for block in blocks_of(PEOPLE):
        assert records[..., block.shares].sum(axis=-1) == pytest.approx(1, abs=1e-5)
        if isinstance(block.encoding, NumericEncoding):
            part = records[..., block.place].reshape(1000, -1)
            there = part[:, -1] < 0.5 if block.missing_place else np.ones(1000, bool)
            values = block.encoding.at(part[:, 0].astype(float))
            wanted = block.encoding.encode(values, ~there) / 255
            assert np.abs(part - wanted).max() < 0.02
        else:
            assert set(np.unique(records[..., block.shares].round(5))) <= {0.0, 1.0}


def test_gradients_reach_all_outputs() -> None:
    generator = random_generator(PEOPLE)
    records = generator(torch.randn(2, 50, 4), torch.arange(2))
    (records * torch.linspace(0, 1, PEOPLE.record_size)).sum().backward()
    gradient = generator.by_class.grad
    assert gradient is not None
    # knots that are never chosen have none
    assert (gradient != 0).any(dim=0).float().mean() > 0.6


def test_a_file_that_is_no_generator_is_refused(tmp_path: Path) -> None:
    (tmp_path / "g").write_text("text")
    with pytest.raises(GeneratorError, match=r"not a generator that dpntk wrote"):
        load_generator(tmp_path / "g")


def test_no_more_encoded_rows_are_held_than_are_made_at_a_time() -> None:
    """All of them would be several times as large as the table."""
    model, count = RowModel(PEOPLE, random_generator(PEOPLE)), 60_000
    tracemalloc.start()
    table = draw_rows(model, count, np.array([0.5, 0.5]), 0).table
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(table) == count
    assert peak < count * PEOPLE.record_size * np.dtype(np.float32).itemsize


def test_csv_reads_back_with_the_types_of_the_source(tmp_path: Path) -> None:
    model = RowModel(PEOPLE, random_generator(PEOPLE))
    saved = SavedTableGenerator(model, np.array([0.5, 0.5]), {})
    write_table(tmp_path / "s", saved, saved.draw(50, 0).table, {})
    found = arrow_csv.read_csv(tmp_path / "s" / "table.csv").schema
    assert found.names == ["age", "pay", "grade", "town", "ill"]
    assert found.field("age").type == pa.int64()
    assert found.field("pay").type == pa.float64()


def test_numbers_have_no_digits_that_a_record_cannot_tell_apart() -> None:
    """Of 32 bits: 12 of 3 to 20 lies a ten-millionth beside it; bounds are what they are."""
    number = Column("x", ColumnKind.CONTINUOUS, "float64", 0.0253251, 18.3)
    label = Column("y", ColumnKind.CATEGORICAL, "string", categories=("a", "b"))
    schema = TableSchema((number, label), "y")
    (block,) = blocks_of(schema)
    wanted = np.array([0.0253251, 12.0, 3.25, 1 / 3, 18.3])
    records = np.zeros((len(wanted), schema.record_size), np.float32)
    assert isinstance(block.encoding, NumericEncoding)
    records[:, 0] = block.encoding.share(wanted)
    found = values_of(schema, records, np.zeros(len(wanted), int))["x"].tolist()
    assert found == [0.0253251, 12.0, 3.25, 0.33333, 18.3]
