"""Generated tables: valid under their schema, typed as the source, and corrected by marginals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from dpntk.common.encoding import NumericEncoding, blocks_of
from dpntk.common.errors import GeneratorError
from dpntk.common.sources import open_source
from dpntk.common.table_schema import TableSchema
from dpntk.generate.table_correction import (
    believable,
    correct,
    to_simplex,
)
from dpntk.generate.table_export import SavedTableGenerator, load_table_generator, write_table
from dpntk.generate.table_generator import TableGenerator, TableGeneratorSpec
from dpntk.generate.table_marginals import ColumnMarginal
from dpntk.generate.table_sampling import sample_rows
from tests.tables import PEOPLE, require_valid, schemas


def random_generator(schema: TableSchema, seed: int = 0) -> TableGenerator:
    """Untrained, with outputs large enough to reach all bounds and categories."""
    torch.manual_seed(seed)
    generator = TableGenerator(TableGeneratorSpec(4, 8), schema)
    with torch.no_grad():
        generator.by_class.normal_(0, 5)
        last = generator.network[-1]
        assert isinstance(last, torch.nn.Linear)
        last.weight.mul_(10)
    return generator.eval()


def random_marginals(schema: TableSchema, seed: int) -> tuple[ColumnMarginal, ...]:
    random, classes = np.random.default_rng(seed), len(schema.classes)
    found = []
    for block in blocks_of(schema):
        cells = block.column.choices
        if isinstance(block.encoding, NumericEncoding):
            cells = 9 + block.missing_place
        shares = random.normal(1 / cells, 0.3, (classes, cells))
        found.append(ColumnMarginal(block, shares, np.full(classes, 0.01)))
    return tuple(found)


@given(schemas(), st.booleans(), st.integers(0, 99))
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_every_table_is_valid_and_can_be_read_as_its_source_was(
    tmp_path_factory: pytest.TempPathFactory, schema: TableSchema, with_marginals: bool, seed: int
) -> None:
    generator = random_generator(schema, seed)
    shares = np.full(len(schema.classes), 1 / len(schema.classes))
    marginals = random_marginals(schema, seed) if with_marginals else ()
    table = sample_rows(generator, 23, shares, seed, marginals)
    require_valid(table, schema)

    folder = tmp_path_factory.mktemp("tables") / "synthetic"
    saved = SavedTableGenerator(generator, shares, marginals, {})
    write_table(folder, saved, table, {})
    assert parquet.read_table(folder / "table.parquet").equals(table)
    # Both files are read back as any table of this schema is, and give the same records.
    records = []
    for name in ("table.csv", "table.parquet"):
        (batch,) = open_source(folder / name, table=schema).batches(100)
        records.append(batch.records)
    if not any(_ambiguous(column.categories, schema) for column in schema.columns):
        assert np.array_equal(records[0], records[1])
    again = load_table_generator(folder / "generator.safetensors")
    assert sample_rows(
        again.generator, 23, again.class_weights, seed, again.marginals
    ).equals(table)  # fmt: skip


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


def test_projection_is_the_nearest_point_of_the_simplex() -> None:
    assert to_simplex(np.array([0.5, 0.3, 0.2])) == pytest.approx([0.5, 0.3, 0.2])
    assert to_simplex(np.array([1.2, 0.0, -0.5])) == pytest.approx([1.0, 0.0, 0.0])
    assert to_simplex(np.array([0.7, 0.5, -0.9])) == pytest.approx([0.6, 0.4, 0.0])


def test_what_the_noise_may_explain_is_left_alone() -> None:
    made = np.array([0.5, 0.3, 0.2])
    assert believable(np.array([0.51, 0.29, 0.2]), made, 0.02) == pytest.approx(made)
    # squared difference 0.02, of which the noise of three cells is 0.012
    found = believable(np.array([0.6, 0.2, 0.2]), made, 0.004**0.5)
    assert found == pytest.approx([0.54, 0.26, 0.2])
    assert believable(made, made, 0.0) == pytest.approx(made)


def test_a_class_of_which_nothing_is_known_has_what_the_surest_has() -> None:
    block = blocks_of(PEOPLE)[3]
    shares = np.array([[0.5, 0.3, 0.1, 0.1], [5.0, -3.0, 0.0, -1.0]])
    found = ColumnMarginal(block, shares, np.array([0.001, 100.0])).likely
    assert found[0] == pytest.approx(shares[0], abs=2e-3)
    assert list(np.argsort(-found[1], kind="stable")[:2]) == [0, 1]


def test_a_number_is_left_out_only_where_every_class_would_leave_it_out() -> None:
    """Or whoever sees it would know the class."""
    pay, cells = blocks_of(PEOPLE)[1], 65
    shares = np.zeros((2, cells))
    shares[:, 20:30] = 0.1
    shares[0, 45:48] = 0.02  # far above the noise on the first class, below that on the second
    shares[0, 20] -= 0.06
    shares[:, 60] = 0.001, -0.02
    found = ColumnMarginal(pay, shares, np.array([0.001, 0.03])).likely
    assert found[0, 45:48] == pytest.approx(0.02, abs=0.002)
    assert (found[1, 45:48] > 0).all()
    assert found[1, 45:48].sum() < 0.03
    assert (found[:, 60] == 0).all()
    assert (found[:, :15] == 0).all()


def test_a_category_that_the_noise_hides_is_made_as_often_as_in_other_classes() -> None:
    town = blocks_of(PEOPLE)[3]
    shares = np.array([[0.5, 0.2, 0.2, 0.1], [0.6, 0.4, -0.1, 0.1]])
    marginal = ColumnMarginal(town, shares, np.array([0.001, 0.1]))
    records = np.zeros((1000, PEOPLE.record_size), dtype=np.float32)
    records[:, town.shares.start] = 1  # the generator makes none of the third
    correct(records, 1, (marginal,), np.random.default_rng(0))
    # All classes have 0.2; given -0.1, with this noise, about 0.03.
    assert 10 <= records[:, town.shares][:, 2].sum() <= 60


def test_rows_are_corrected_to_the_marginals_and_keep_their_order() -> None:
    random = np.random.default_rng(0)
    generator = random_generator(PEOPLE)
    with torch.inference_mode():
        records = generator(torch.randn(2, 400, 4), torch.arange(2)).numpy().reshape(800, -1)
    labels = np.repeat([0, 1], 400)
    marginals = tuple(
        ColumnMarginal(m.block, np.stack([to_simplex(s) for s in m.shares]), m.noise * 0)
        for m in random_marginals(PEOPLE, 3)
    )
    age = blocks_of(PEOPLE)[0].place.start
    records[:, age] = random.random(800)
    before = records.copy()
    for label in (0, 1):
        mine = records[labels == label]
        correct(mine, label, marginals, random)
        records[labels == label] = mine
    for marginal in marginals:
        for label in (0, 1):
            mine = records[labels == label]
            found = np.bincount(marginal.cells(mine), minlength=marginal.shares.shape[1]) / 400
            assert np.abs(found - marginal.shares[label]).max() < 0.006
    for block in blocks_of(PEOPLE):
        if isinstance(block.encoding, NumericEncoding):  # bins are those of the new values
            part = records[:, block.place]
            there = part[:, -1] < 0.5 if block.missing_place else np.ones(800, bool)
            wanted = block.encoding.encode(block.encoding.at(part[:, 0].astype(float)), ~there)
            assert np.abs(part - wanted / 255).max() < 0.02
    for label in (0, 1):
        order = np.argsort(before[labels == label, age], kind="stable")
        assert np.diff(records[labels == label, age][order]).min() >= 0


def test_a_file_that_is_no_generator_is_refused(tmp_path: Path) -> None:
    (tmp_path / "g").write_text("text")
    with pytest.raises(GeneratorError, match=r"not a generator that dpntk wrote"):
        load_table_generator(tmp_path / "g")


def test_csv_reads_back_with_the_types_of_the_source(tmp_path: Path) -> None:
    generator = random_generator(PEOPLE)
    table = sample_rows(generator, 50, np.array([0.5, 0.5]), 0)
    write_table(
        tmp_path / "s", SavedTableGenerator(generator, np.array([0.5, 0.5]), (), {}), table, {}
    )
    found = arrow_csv.read_csv(tmp_path / "s" / "table.csv").schema
    assert found.names == ["age", "pay", "grade", "town", "ill"]
    assert found.field("age").type == pa.int64()
    assert found.field("pay").type == pa.float64()


def test_noise_far_out_does_not_blow_up_a_column() -> None:
    """Its rows go where the others are; without noise nothing is lost."""
    pay = blocks_of(PEOPLE)[1]
    cells, random = 65, np.random.default_rng(0)
    true = np.zeros(cells)
    true[20:30], true[64] = 0.09, 0.1  # a tenth is missing
    for noise in (0.004, 0.0):
        shares = np.tile(true + noise * random.standard_normal(cells), (2, 1))
        marginal = ColumnMarginal(pay, shares, np.full(2, noise))
        spreads = []
        for likely in (False, True):
            records = np.zeros((4000, PEOPLE.record_size), dtype=np.float32)
            records[:, pay.place.start] = random.random(4000)
            correct(records, 1, (marginal,), random, likely=likely)
            there = records[:, pay.place.stop - 1] < 0.5
            assert there.mean() == pytest.approx(0.9, abs=0.02)
            spreads.append(records[there, pay.place.start].std())
        exact = np.arange(10).std() / (cells - 2)
        assert spreads[1] == pytest.approx(exact, rel=0.15)
        assert spreads[0] > (1.5 * exact if noise else 0.9 * exact)
