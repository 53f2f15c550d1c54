"""Corrected columns have the shares that a release says; rows are changed as little as needed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dpntk.common.numerics.simplex import to_simplex
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind
from dpntk.common.schema.encoding import NumericEncoding, blocks_of
from dpntk.common.schema.table import TableSchema
from dpntk.generate.tables.marginals.matching import (
    james_stein,
    match_marginals,
    round_to_steps,
    spread,
)
from dpntk.generate.tables.marginals.released import ColumnMarginal
from tests.helpers.tables import PEOPLE, random_generator, random_marginals

BLOCKS = blocks_of(PEOPLE)


def test_what_the_noise_may_explain_is_left_alone() -> None:
    made = np.array([0.5, 0.3, 0.2])
    assert james_stein(np.array([0.51, 0.29, 0.2]), made, 0.02) == pytest.approx(made)
    # squared difference 0.02, of which the noise of three cells is 0.012
    found = james_stein(np.array([0.6, 0.2, 0.2]), made, 0.004**0.5)
    assert found == pytest.approx([0.54, 0.26, 0.2])
    assert james_stein(made, made, 0.0) == pytest.approx(made)


def test_a_class_of_which_nothing_is_known_has_what_the_surest_has() -> None:
    block = BLOCKS[3]
    shares = np.array([[0.5, 0.3, 0.1, 0.1], [5.0, -3.0, 0.0, -1.0]])
    found = ColumnMarginal(block, shares, np.array([0.001, 100.0])).posterior_mean
    assert found[0] == pytest.approx(shares[0], abs=2e-3)
    assert list(np.argsort(-found[1], kind="stable")[:2]) == [0, 1]


def test_a_number_is_left_out_only_where_every_class_would_leave_it_out() -> None:
    """Or whoever sees it would know the class."""
    pay, cells = BLOCKS[1], 65
    shares = np.zeros((2, cells))
    shares[:, 20:30] = 0.1
    shares[0, 45:48] = 0.02  # far above the noise on the first class, below that on the second
    shares[0, 20] -= 0.06
    shares[:, 60] = 0.001, -0.02
    found = ColumnMarginal(pay, shares, np.array([0.001, 0.03])).posterior_mean
    assert found[0, 45:48] == pytest.approx(0.02, abs=0.002)
    assert (found[1, 45:48] > 0).all()
    assert found[1, 45:48].sum() < 0.03
    assert (found[:, 60] == 0).all()
    assert (found[:, :15] == 0).all()


def test_a_class_of_noise_alone_says_nothing_of_which_numbers_are_left_out() -> None:
    """What it lacks is what others lack: a few such rows far out would be most of a deviation."""
    pay, cells = BLOCKS[1], 65
    shares = np.zeros((2, cells))
    shares[:, 20:30] = 0.1
    shares[1] += 3.0 * np.random.default_rng(0).standard_normal(cells)
    alone = ColumnMarginal(pay, shares[:1], np.array([0.001])).posterior_mean
    found = ColumnMarginal(pay, shares, np.array([0.001, 3.0])).posterior_mean
    assert (found[:, :15] == 0).all()
    assert (found[:, 35:64] == 0).all()
    assert found[0] == pytest.approx(alone[0])


def test_a_category_that_the_noise_hides_is_made_as_often_as_in_other_classes() -> None:
    town = BLOCKS[3]
    shares = np.array([[0.5, 0.2, 0.2, 0.1], [0.6, 0.4, -0.1, 0.1]])
    marginal = ColumnMarginal(town, shares, np.array([0.001, 0.1]))
    records = np.zeros((1000, PEOPLE.record_size), dtype=np.float32)
    records[:, town.shares.start] = 1  # the generator makes none of the third
    match_marginals(records, 1, (marginal,), np.random.default_rng(0))
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
    age = BLOCKS[0].place.start
    records[:, age] = random.random(800)
    before = records.copy()
    for label in (0, 1):
        mine = records[labels == label]
        match_marginals(mine, label, marginals, random)
        records[labels == label] = mine
    for marginal in marginals:
        for label in (0, 1):
            mine = records[labels == label]
            found = np.bincount(marginal.cells(mine), minlength=marginal.shares.shape[1]) / 400
            assert np.abs(found - marginal.shares[label]).max() < 0.006
    for block in BLOCKS:
        if isinstance(block.encoding, NumericEncoding):  # bins are those of the new values
            part = records[:, block.place]
            there = part[:, -1] < 0.5 if block.missing_place else np.ones(800, bool)
            wanted = block.encoding.encode(block.encoding.at(part[:, 0].astype(float)), ~there)
            assert np.abs(part - wanted / 255).max() < 0.02
    for label in (0, 1):
        order = np.argsort(before[labels == label, age], kind="stable")
        assert np.diff(records[labels == label, age][order]).min() >= 0


def test_outliers_do_not_blow_up_a_column() -> None:
    """Its rows go where the others are; without noise nothing is lost."""
    pay = BLOCKS[1]
    cells, random = 65, np.random.default_rng(0)
    true = np.zeros(cells)
    true[20:30], true[64] = 0.09, 0.1  # a tenth is missing
    for noise in (0.004, 0.0):
        shares = np.tile(true + noise * random.standard_normal(cells), (2, 1))
        marginal = ColumnMarginal(pay, shares, np.full(2, noise))
        spreads = []
        for posterior_mean in (False, True):
            records = np.zeros((4000, PEOPLE.record_size), dtype=np.float32)
            records[:, pay.place.start] = random.random(4000)
            match_marginals(records, 1, (marginal,), random, posterior_mean=posterior_mean)
            there = records[:, pay.place.stop - 1] < 0.5
            assert there.mean() == pytest.approx(0.9, abs=0.02)
            spreads.append(records[there, pay.place.start].std())
        exact = np.arange(10).std() / (cells - 2)
        assert spreads[1] == pytest.approx(exact, rel=0.15)
        assert spreads[0] > (1.5 * exact if noise else 0.9 * exact)


def test_numbers_that_are_alike_are_told_apart_within_their_cells() -> None:
    random = np.random.default_rng(0)
    once = random.random((500, PEOPLE.record_size), dtype=np.float32)
    pay = BLOCKS[1]
    once[:, pay.place.stop - 1] = random.random(500) < 0.1
    twice = np.concatenate([once, once])
    age, pays = (ColumnMarginal(block, np.ones((2, n)) / n, np.zeros(2))
                 for block, n in ((BLOCKS[0], 100), (pay, 65)))  # fmt: skip
    before = twice.copy()
    spread(twice, (age, pays), random)
    there = twice[:, pay.place.stop - 1] < 0.5
    for marginal, rows in ((age, slice(None)), (pays, there)):
        assert np.array_equal(marginal.cells(twice), marginal.cells(before))
        start = marginal.block.place.start
        order = np.lexsort((twice[rows, start], before[rows, start]))
        assert np.diff(twice[rows, start][order]).min() >= 0
    assert len(np.unique(twice[there, pay.place.start])) > 0.9 * there.sum()
    assert np.array_equal(twice[:, BLOCKS[3].place], before[:, BLOCKS[3].place])
    assert isinstance(pay.encoding, NumericEncoding)
    bins = pay.encoding.bins(twice[there, pay.place.start])
    assert np.array_equal(twice[there, pay.place.start + 1 : pay.place.stop - 1], bins)


def test_integers_are_whole_before_rows_are_arranged() -> None:
    """Their bins are then those of the number that is written."""
    random = np.random.default_rng(0)
    records = random.random((50, PEOPLE.record_size), dtype=np.float32)
    before = records.copy()
    round_to_steps(records, PEOPLE)
    for block in BLOCKS:
        now, old = records[:, block.place], before[:, block.place]
        if block.column.kind is not ColumnKind.INTEGER:
            assert np.array_equal(now, old)
            continue
        there = np.flatnonzero(old[:, -1] <= 0.5) if block.missing_place else np.arange(50)
        written = np.rint(block.encoding.at(old[there, 0].astype(float)))  # type: ignore[union-attr]
        wanted = block.encoding.encode(written, np.zeros(len(there), bool))  # type: ignore[call-arg]
        knots = block.encoding.knots + 1  # type: ignore[union-attr]
        assert np.abs(now[there, :knots] - wanted[:, :knots] / 255).max() < 0.006


def test_a_corrected_category_has_its_rank() -> None:
    sizes = Column("size", ColumnKind.ORDINAL, "string", categories=("S", "M", "L"))
    schema = TableSchema((sizes,), None)
    (block,) = blocks_of(schema)
    records = np.zeros((100, schema.record_size), np.float32)
    records[:, block.shares.start] = 1
    marginal = ColumnMarginal(block, np.array([[0.2, 0.3, 0.5]]), np.zeros(1))
    match_marginals(records, 0, (marginal,), np.random.default_rng(0))
    codes = records[:, block.shares].argmax(axis=1)
    assert list(np.bincount(codes)) == [20, 30, 50]
    assert np.array_equal(records[:, block.place.start], codes / np.float32(2))
