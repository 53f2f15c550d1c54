"""Marginals, alone and beside a network's features: right, exact, and no longer than 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import SchemaError
from dpntk.common.features.base import sensitivity, weights_digest
from dpntk.common.features.joint import JointFeatures
from dpntk.common.features.marginals.map import MarginalFeatures
from dpntk.common.features.ntk.architectures import fc_1l
from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.features.ntk.scattering import Pixels
from dpntk.common.features.registry import feature_map_from_spec
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.encoding import blocks_of
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import FourierOptions, TangentOptions
from dpntk.embed.exact.grid import DEFAULT_CAPACITY, Grid
from dpntk.embed.exact.registry import exact_map
from dpntk.embed.feature_options.columns import read_pairs
from dpntk.embed.sums.accumulate import ClassSums
from tests.helpers.sums import require_the_same_sums_in_any_order
from tests.helpers.tables import PEOPLE, people

GRID = Grid.for_capacity(255, DEFAULT_CAPACITY)
TANGENT = TangentFeatures.draw(Pixels(PEOPLE.record_size), fc_1l(9), outputs=2, levels=255, seed=0)
MARGINALS = MarginalFeatures.of(PEOPLE)
JOINT = JointFeatures(TANGENT, MARGINALS, 0.6)
PAIRS = (("pay", "town"), ("grade", "age"))
PAIRED = MarginalFeatures.of(PEOPLE, groups=PAIRS)
TRIPLE = ("town", "age", "grade")
FOURIER = FourierOptions(frequencies=4000).draw(PEOPLE)
assert isinstance(FOURIER, JointFeatures)


@pytest.fixture
def rows(tmp_path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    (tmp_path / "a.csv").write_text(people(300))
    (batch,) = open_source(tmp_path / "a.csv", SourceOptions(schema=PEOPLE)).batches(300)
    return batch.records, batch.labels


def test_marginals_are_histograms_of_the_columns(
    tmp_path: Path, rows: tuple[NDArray[np.uint8], NDArray[np.int64]]
) -> None:
    records, labels = rows
    sums = ClassSums(MARGINALS, 2, GRID)
    sums.add(records, labels)
    entry = int(GRID.units_per_one * MARGINALS.entry)
    histogram = np.rint(sums.sums / entry).astype(int)
    lines = [line.split(",") for line in people(300).split()[1:]]
    age, pay, _, town = (histogram[place] for place in MARGINALS.places)
    for label, ill in enumerate(("no", "yes")):
        mine = [line for line in lines if line[5] == ill]
        ages = np.bincount([int(line[1]) for line in mine], minlength=100)
        assert age[:, label].tolist() == ages.tolist()
        assert town[:, label].tolist() == [sum(line[4] == t for line in mine) for t in (
            "Ulm", "Bonn", "other", "")]  # fmt: skip
        assert pay[-1, label] == sum(not line[2] for line in mine)
        assert pay[:, label].sum() == len(mine)


def test_pairs_are_contingency_tables(
    rows: tuple[NDArray[np.uint8], NDArray[np.int64]],
) -> None:
    """Counted from the text of the rows; numbers by the nearest of the 20 points of their bins."""
    sums = ClassSums(PAIRED, 2, GRID)
    sums.add(*rows)
    histogram = np.rint(sums.sums / int(GRID.units_per_one * PAIRED.entry)).astype(int)
    age_grade, pay_town = (histogram[place] for place in PAIRED.places[4:])
    lines = [line.split(",") for line in people(300).split()[1:]]
    grades, towns = ("low", "mid", "high"), ("Ulm", "Bonn", "other", "")
    for label, ill in enumerate(("no", "yes")):
        wanted, wanted_pay = np.zeros((20, 3), dtype=int), np.zeros((21, 4), dtype=int)
        for _, age, pay, grade, town, is_ill in lines:
            if is_ill == ill:
                wanted[round(int(age) / 99 * 19), grades.index(grade)] += 1
                place = np.log1p(float(pay)) / np.log1p(1000) * 19 if pay else 20
                wanted_pay[round(place), towns.index(town)] += 1
        assert age_grade[:, label].reshape(20, 3).tolist() == wanted.tolist()
        assert pay_town[:, label].reshape(21, 4).tolist() == wanted_pay.tolist()


def test_a_triple_is_a_contingency_table_of_three_columns(
    rows: tuple[NDArray[np.uint8], NDArray[np.int64]],
) -> None:
    """Counted from the text of the rows, and the columns in the order of the schema."""
    marginals = MarginalFeatures.of(PEOPLE, groups=[TRIPLE])
    sums = ClassSums(marginals, 2, GRID)
    sums.add(*rows)
    histogram = np.rint(sums.sums / int(GRID.units_per_one * marginals.entry)).astype(int)
    wanted = np.zeros((20, 3, 4, 2), dtype=int)
    for line in people(300).split()[1:]:
        _, age, _, grade, town, ill = line.split(",")
        cell = round(int(age) / 99 * 19), ("low", "mid", "high").index(grade)
        wanted[*cell, ("Ulm", "Bonn", "other", "").index(town), ("no", "yes").index(ill)] += 1
    assert histogram[marginals.places[4]].tolist() == wanted.reshape(240, 2).tolist()
    assert MarginalFeatures.from_spec(marginals.spec(), {}) == marginals
    assert JointFeatures(TANGENT, marginals, 0.6).beside.endswith(
        "(1 triple of columns among them)"
    )


@pytest.mark.parametrize(
    "pairs", [(), PAIRS[:1], (*PAIRS, TRIPLE), read_pairs(["all"], PEOPLE)], ids=len
)
def test_a_record_more_changes_marginals_by_no_more_than_their_weight(
    pairs: Sequence[tuple[str, ...]],
) -> None:
    """In whole numbers: the squares of what any bytes add to the sums are at most weight^2."""
    random = np.random.default_rng(0)
    records = random.integers(0, 256, (50, PEOPLE.record_size)).astype(np.uint8)
    records[0], records[1] = 0, 255
    marginals = MarginalFeatures.of(PEOPLE, groups=pairs)
    feature_map = JointFeatures(TANGENT, marginals, 0.6)
    most = Fraction(0.6) ** 2 * Fraction(GRID.units_per_one) ** 2
    for record in records:
        sums = ClassSums(feature_map, 2, GRID)
        sums.add(record[None], np.zeros(1, dtype=np.int64))
        added = [int(value) for value in sums.sums[TANGENT.dimension :, 0]]
        assert sum(bool(value) for value in added) == 4 + len(pairs)
        assert min(added) == 0
        square = sum(value**2 for value in added)
        assert most * (1 - Fraction(1, 2**16)) < square <= most


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("age", "two or three different columns with commas between them, all, triples or none"),
        ("age,age", "two or three different columns"),
        ("age,pay,age", "two or three different columns"),
        ("age,pay,grade,town", "two or three different columns"),
        ("age,sex", "there are age, pay, grade, town"),
        ("ill,age", "ill is the label"),
        ("id,age", "two or three different columns"),
    ],
)
def test_pairs_of_other_columns_are_refused(said: str, message: str) -> None:
    with pytest.raises(SchemaError, match=f"pairs='{said}': .*{message}"):
        TangentOptions(pairs=[said]).draw(PEOPLE)


def test_pairs_without_marginals_or_twice_are_refused() -> None:
    for options in (
        TangentOptions(pairs=["age,pay"], marginals=0.0),
        TangentOptions(pairs=["age,pay", "pay,age"]),
        TangentOptions(pairs=["age,pay,town", "town,pay,age"]),
    ):
        with pytest.raises(SchemaError, match=r"pairs='|there twice"):
            options.draw(PEOPLE)


def test_all_pairs_and_triples_of_columns_with_two_values_have_names() -> None:
    columns = [Column.boolean(name) for name in "abcd"] + [Column.integer("n", 0, 9)]
    schema = TableSchema(tuple(columns), "d")
    assert read_pairs(["triples", "a,c,b", "n,a"], schema) == [("a", "b", "c"), ("n", "a")]
    assert len(read_pairs(["a,b", "all", "a,b,n"], schema)) == 6 + 1
    with pytest.raises(SchemaError, match="no three columns of two values"):
        read_pairs(["triples"], PEOPLE)


def test_a_name_with_a_comma_may_be_in_a_pair() -> None:
    first = replace(PEOPLE.columns[0], name="age, in years")
    schema = replace(PEOPLE, columns=(first, *PEOPLE.columns[1:]))
    assert read_pairs(["pay,age, in years"], schema) == [("pay", "age, in years")]
    assert read_pairs(["age, in years,pay,town"], schema) == [("age, in years", "pay", "town")]


def test_the_joint_map_is_the_two_maps_side_by_side(
    rows: tuple[NDArray[np.uint8], NDArray[np.int64]],
) -> None:
    records, labels = rows
    both, first, second = (ClassSums(m, 2, GRID) for m in (JOINT, TANGENT, MARGINALS))
    for sums in (both, first, second):
        sums.add(records, labels)
    wanted = np.concatenate([0.8 * first.sums, 0.6 * second.sums])
    # each record's coordinate is cut to a whole number, and shortened by 2^-40
    assert np.abs(both.sums - wanted).max() <= 300 * (255 + 2.0**-39 * GRID.units_per_one)


def test_no_record_whatever_has_a_feature_longer_than_1() -> None:
    """Also one that no row of a table is encoded to."""
    random = np.random.default_rng(0)
    records = random.integers(0, 256, (500, PEOPLE.record_size)).astype(np.float64)
    records[0], records[1] = 0, 255
    for feature_map in (JOINT, MARGINALS, PAIRED, JointFeatures(TANGENT, PAIRED, 0.6), FOURIER):
        exact = exact_map(feature_map, GRID, torch.device("cpu"))
        norms = exact.features(torch.from_numpy(records)).norms()
        assert norms.max() <= GRID.units_per_one
        assert norms.min() > GRID.units_per_one * (1 - 2.0**-17)


def test_rff_of_a_table_is_the_heterogeneous_sum_kernel(
    rows: tuple[NDArray[np.uint8], NDArray[np.int64]],
) -> None:
    """Half a Gaussian kernel of the numbers, and half the share of equal categories."""
    records = rows[0][:40]
    exact = exact_map(FOURIER, GRID, torch.device("cpu"))
    features = exact.features(torch.from_numpy(records).double())
    written = np.zeros((FOURIER.dimension, 40), dtype=np.int64)
    for index in range(40):
        features.add_to(torch.from_numpy(written[:, index]), slice(index, index + 1))
    gram = (written.T / GRID.units_per_one) @ (written / GRID.units_per_one)
    age, pay, grade, town = blocks_of(PEOPLE)
    numbers = records[:, [age.place.start, pay.place.start, pay.place.stop - 1]] / 255
    squared = ((numbers[:, None] - numbers) ** 2).sum(axis=2)
    one_hot = [records[:, block.shares] / 255 for block in (grade, town)]
    equal = sum(part @ part.T for part in one_hot) / 2
    wanted = 0.5 * np.exp(-squared / (2 * 3 / 7.5)) + 0.5 * equal
    assert np.abs(gram - wanted).max() < 0.06  # of 4,000 random frequencies


def test_sums_do_not_depend_on_order_or_chunks(
    rows: tuple[NDArray[np.uint8], NDArray[np.int64]],
) -> None:
    require_the_same_sums_in_any_order(JOINT, GRID, *rows)


def test_the_map_travels_as_json_and_weights() -> None:
    for feature_map in (JOINT, MARGINALS, PAIRED):
        again = feature_map_from_spec(feature_map.spec(), feature_map.weights())
        assert again.spec() == feature_map.spec()
        assert weights_digest(again) == weights_digest(feature_map)
        assert feature_map.nonnegative
    again = feature_map_from_spec(FOURIER.spec(), FOURIER.weights())
    assert again.spec() == FOURIER.spec()
    assert not FOURIER.nonnegative
    assert sensitivity(FOURIER, Adjacency.REPLACE_ONE, count_weight=0) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"weight": 0.0},
        {"weight": 1.0},
        {"weight": float("nan")},
        {"weight": "much"},
        {"tangent": {}},
        {"marginals": {}},
        {"marginals": {**MARGINALS.spec(), "columns": [[0, 1, 1, -1]]}},
        {"marginals": {**MARGINALS.spec(), "columns": [[0, 1, 129, -1]]}},
        {"marginals": {**MARGINALS.spec(), "columns": [[0, 10**6, 0, -1]]}},
        {"marginals": {**MARGINALS.spec(), "columns": [[-1, 1, 5, -1]]}},
        {"marginals": {**MARGINALS.spec(), "columns": [[0, 1, 5, 10**6]]}},
        {"marginals": {**MARGINALS.spec(), "columns": [[0, 1, 5, True]]}},
        {"marginals": {**MARGINALS.spec(), "inputs": 3}},
        {"marginals": {**MARGINALS.spec(), "pairs": []}},
        {"marginals": {**MARGINALS.spec(), "pairs": 3}},
        {"marginals": {**MARGINALS.spec(), "pairs": [[0, 1, 1]]}},
        {"marginals": {**MARGINALS.spec(), "pairs": [[0, 1]]}},
        {"marginals": {**MARGINALS.spec(), "pairs": [[0, 1, 1, 1, 0, 1]]}},
        {"marginals": {**MARGINALS.spec(), "pairs": [[0, 1, 1, 1, 2, 1, 3, 1]]}},
        {"marginals": {**MARGINALS.spec(), "pairs": [[0, 1, 1, 10**6]]}},
        {"marginals": {**MARGINALS.spec(), "pairs": [[0, 1, 1, 0]]}},
        {"marginals": {**MARGINALS.spec(), "pairs": [[-1, 2, 1, 1]]}},
        {"marginals": {**MARGINALS.spec(), "pairs": 2 * PAIRED.spec()["pairs"]}},
        {"marginals": {**MARGINALS.spec(), "columns": []}},
        {"surprise": 1},
    ],
)
def test_other_documents_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(SchemaError):
        feature_map_from_spec({**JOINT.spec(), **change}, JOINT.weights())
