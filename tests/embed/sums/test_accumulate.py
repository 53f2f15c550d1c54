"""The class sums are right, exact, and a function of the set of records alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from dpntk.common.errors import DataError, SchemaError
from dpntk.common.features.ntk.architectures import fc_1l
from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.features.ntk.scattering import Pixels
from dpntk.embed.exact.grid import Grid
from dpntk.embed.exact.reference import features, features_one_by_one
from dpntk.embed.exact.tangent import (
    DenseFeatures,
    ExactTangentFeatures,
    IntegerFeatures,
    Products,
)
from dpntk.embed.sums.accumulate import ClassSums
from dpntk.embed.sums.totals import Totals
from tests.conftest import CLASSES, draw_records
from tests.helpers.sums import sums_of

CPU = torch.device("cpu")


def test_both_references_agree(feature_map: TangentFeatures) -> None:
    records = torch.from_numpy(draw_records(10)[0]).double() / 255
    one_by_one = torch.stack(list(features_one_by_one(feature_map, records)))
    assert torch.allclose(features(feature_map, records), one_by_one, rtol=0, atol=1e-14)
    assert torch.allclose(one_by_one.norm(dim=1), torch.ones(10, dtype=torch.float64))


@pytest.mark.parametrize("width", [1, 2, 13, 64])
def test_class_sums_equal_the_per_record_gradients(width: int, grid: Grid) -> None:
    feature_map = TangentFeatures.draw(Pixels(64), fc_1l(width), outputs=3, levels=255, seed=5)
    records, labels = draw_records(50)
    phi = features(feature_map, torch.from_numpy(records).double() / 255).numpy()
    expected = phi.T @ np.eye(CLASSES)[labels]

    exact = sums_of(feature_map, grid, records, labels, chunk=50)

    assert np.abs(exact * grid.unit - expected).max() / len(records) < 1e-10


def test_number_of_threads_does_not_change_a_bit(grid: Grid) -> None:
    feature_map = TangentFeatures.draw(Pixels(784), fc_1l(300), outputs=3, levels=255, seed=0)
    random = np.random.default_rng(0)
    records = random.integers(0, 256, (500, 784), dtype=np.uint8)
    labels = random.integers(0, CLASSES, 500)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(sums_of(feature_map, grid, records, labels, chunk=333))
    finally:
        torch.set_num_threads(before)

    assert np.array_equal(results[0], results[1])


def test_a_record_has_the_same_feature_in_every_company(
    feature_map: TangentFeatures, grid: Grid
) -> None:
    """Removing one record changes the sums by that record's own feature and nothing else.

    Activations are put exactly on the ReLU's kink, where arithmetic that depends on a record's
    place in a chunk would switch units on and off.
    """
    ((weight, bias),) = feature_map.parameters
    weight = weight.copy()
    weight[:, 1::2] = -weight[:, ::2]
    on_the_kink = replace(feature_map, parameters=((weight, np.zeros_like(bias)),))
    records, labels = draw_records(129)
    records[:, 1::2] = records[:, ::2]  # so that every activation is 0

    alone = sums_of(on_the_kink, grid, records[5:6], labels[5:6], chunk=1)
    with_it = sums_of(on_the_kink, grid, records, labels, chunk=129)
    without = np.delete(records, 5, axis=0), np.delete(labels, 5)

    assert np.array_equal(with_it - sums_of(on_the_kink, grid, *without, chunk=128), alone)


@pytest.mark.parametrize("seed", range(5))
def test_no_integer_feature_is_longer_than_one(seed: int, grid: Grid) -> None:
    """In whole numbers, without rounding: the sum of squares is at most (1/g)^2."""
    feature_map = TangentFeatures.draw(Pixels(64), fc_1l(11), outputs=3, levels=255, seed=seed)
    records, labels = draw_records(40, seed)
    for record, label in zip(records, labels, strict=True):
        feature = sums_of(feature_map, grid, record[None], label[None], chunk=1)
        squared = sum(value * value for value in feature.ravel().tolist())
        assert squared <= grid.units_per_one**2
        # and not much shorter either, or the noise would be larger than it has to be
        assert squared >= 0.9999 * grid.units_per_one**2


def test_integer_features_of_any_two_records_do_not_oppose(
    feature_map: TangentFeatures, grid: Grid
) -> None:
    """What lets replace-one have a sensitivity of sqrt(2) instead of 2."""
    records, _ = draw_records(60)
    columns = np.concatenate(
        [
            sums_of(feature_map, grid, r[None], np.zeros(1, dtype=np.int64), 1)[:, :1]
            for r in records
        ],
        axis=1,
    ).astype(object)
    assert (columns.T @ columns >= 0).all()


def test_a_full_chunk_of_the_same_record_is_that_many_times_its_feature(grid: Grid) -> None:
    """Double precision holds the largest sums that a chunk can make."""
    feature_map = TangentFeatures.draw(Pixels(64), fc_1l(2), outputs=1, levels=255, seed=1)
    size = ExactTangentFeatures(feature_map, grid, CPU).chunk_size
    records = np.zeros((64, 64), dtype=np.uint8)
    np.fill_diagonal(records, 255)  # one bright pixel makes the largest coordinates
    for record in records:
        label = np.zeros(1, dtype=np.int64)
        once = sums_of(feature_map, grid, record[None], label, chunk=1)
        many = sums_of(feature_map, grid, np.tile(record, (size, 1)), label.repeat(size), size)
        assert np.array_equal(many, once * size)
        assert int(np.abs(once[feature_map.blocks["weight_1"]]).max()) * size < 2**53


def test_records_in_memory_that_nobody_may_write_to(
    feature_map: TangentFeatures, grid: Grid
) -> None:
    """A file that is mapped into memory, for instance; torch would warn."""
    records, labels = draw_records(50)
    expected = sums_of(feature_map, grid, records, labels, chunk=50)
    records.flags.writeable = False
    assert np.array_equal(sums_of(feature_map, grid, records, labels, chunk=50), expected)


def test_no_more_are_summed_at_a_time_than_double_precision_holds(
    feature_map: TangentFeatures, grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A card's chunks are larger."""
    records, _ = draw_records(50)
    made = ExactTangentFeatures(feature_map, grid, CPU).features(torch.from_numpy(records).double())
    at_once, in_parts = torch.zeros((2, feature_map.dimension), dtype=torch.int64)
    made.add_to(at_once, slice(5, 40))
    summed, add_up = [], Products.add_up

    def watched(column: torch.Tensor, some: Sequence[tuple[Products, slice]]) -> None:
        summed.append(sum(rows.stop - rows.start for _, rows in some))
        add_up(column, some)

    monkeypatch.setattr(Products, "add_up", staticmethod(watched))
    replace(made, summable=8).add_to(in_parts, slice(5, 40))
    assert torch.equal(in_parts, at_once)
    assert summed == [8, 8, 8, 8, 3]


def test_more_records_than_the_grid_holds_are_refused(feature_map: TangentFeatures) -> None:
    sums = ClassSums(feature_map, CLASSES, Grid.for_capacity(255, 100))
    sums.add(*draw_records(100))
    with pytest.raises(SchemaError, match="a larger capacity"):
        sums.add(*draw_records(1 + 2))


@pytest.mark.parametrize("beyond", [1, -1])
def test_sums_that_so_many_records_cannot_have_are_not_continued(
    feature_map: TangentFeatures, grid: Grid, beyond: int
) -> None:
    counts = np.arange(CLASSES)
    most = np.tile(beyond * counts * grid.units_per_one, (feature_map.dimension, 1))
    ClassSums(feature_map, CLASSES, grid).resume(Totals(most.copy(), counts))
    most[-1, 0] = beyond  # of a class without records
    with pytest.raises(SchemaError, match="so many records cannot have"):
        ClassSums(feature_map, CLASSES, grid).resume(Totals(most, counts))


def test_records_that_were_added_are_not_lost_in_earlier_ones(
    feature_map: TangentFeatures, grid: Grid
) -> None:
    sums = ClassSums(feature_map, CLASSES, grid)
    sums.add(*draw_records(5))
    with pytest.raises(ValueError, match="they would be lost"):
        sums.resume(sums.totals)


def test_grid_leaves_room_for_its_capacity() -> None:
    for capacity in (1, 2**20, 2**20 + 1, 10**8, 10**11):
        grid = Grid.for_capacity(255, capacity)
        assert capacity * grid.units_per_one < 2**62
    with pytest.raises(SchemaError, match="64 bits"):
        Grid.for_capacity(255, 10**15)


@pytest.mark.parametrize("factor", [math.nan, math.inf, 1.0 + 1e-9])
def test_a_feature_longer_than_its_bound_is_refused(
    feature_map: TangentFeatures, grid: Grid, monkeypatch: pytest.MonkeyPatch, factor: float
) -> None:
    """It cannot happen, says the proof; should the proof be wrong, nothing leaves."""
    right = ExactTangentFeatures.features

    def wrong(self: ExactTangentFeatures, records: torch.Tensor) -> IntegerFeatures:
        made = right(self, records)
        for part in made.pieces[-1]:
            (part.values if isinstance(part, DenseFeatures) else part.pairs[0][0])[-1] *= factor
        return made

    monkeypatch.setattr(ExactTangentFeatures, "features", wrong)
    sums = ClassSums(feature_map, CLASSES, grid)
    with pytest.raises(DataError, match="not finite or longer than its bound"):
        sums.add(*draw_records(20))
    with pytest.raises(DataError, match="not finite or longer than its bound"):
        _ = sums.sums
