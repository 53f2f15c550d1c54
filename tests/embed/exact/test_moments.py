"""Products of columns: exact, no longer than their share of 1, never at odds with one another."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.errors import SchemaError
from dpntk.common.features.columns_of_schema import require_columns_of
from dpntk.common.features.joint import JointFeatures, parts_of
from dpntk.common.features.moments import INDICATOR, MOST_FACTORS, MOST_TIMES, MomentFeatures
from dpntk.common.features.registry import feature_map_from_spec
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources import SourceOptions, open_source
from dpntk.embed import TangentOptions, embed
from dpntk.embed.exact.base import SAFETY
from dpntk.embed.exact.grid import Grid
from dpntk.embed.exact.joint import ExactJoint, ExactMoments
from dpntk.embed.feature_options import columns
from tests.helpers.tables import PEOPLE, RANKED, people

CPU = torch.device("cpu")
GRID = Grid.for_capacity(255, 1 << 20)
WEIGHT = 0.3


def moments() -> MomentFeatures:
    found = MomentFeatures.of(PEOPLE)
    assert found is not None
    return found


def records_of(path: Path) -> NDArray[np.uint8]:
    path.write_text(people(300))
    (batch,) = open_source(path, SourceOptions(schema=PEOPLE)).batches(300)
    return batch.records


def aimed(times: int = 3) -> MomentFeatures:
    """With pay, which may be missing, as the target."""
    return replace(moments(), target=(moments().numbers[1][0], times))


def exact(
    records: NDArray[np.uint8],
    rows: slice = slice(None),
    features: MomentFeatures | None = None,
    grid: Grid = GRID,
    weight: float = WEIGHT,
) -> NDArray[np.int64]:
    """The sum over rows, (k, k)."""
    features = features or moments()
    made = ExactMoments(features, grid, CPU, weight).features(torch.from_numpy(records).double())
    column = torch.zeros(features.dimension, dtype=torch.int64)
    made.add_to(column, rows)
    return column.numpy().reshape(features.factors, -1)


def test_sums_are_those_of_products_of_columns(tmp_path: Path) -> None:
    records = records_of(tmp_path / "a.csv")
    z = moments().steps(torch.from_numpy(records)).numpy().astype(float)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    found = exact(records)
    assert np.allclose(found, WEIGHT * z.T @ z * GRID.units_per_one, rtol=1e-6)
    assert np.array_equal(found, found.T)
    parts = [exact(records, slice(start, start + 7)) for start in range(0, 300, 7)]
    assert np.array_equal(np.sum(parts, axis=0), found)


@pytest.mark.parametrize("features", [moments(), aimed()], ids=repr)
def test_what_no_record_can_have_is_projected_away(
    tmp_path: Path, features: MomentFeatures
) -> None:
    """And nothing else is: what is left has as many directions as z has degrees of freedom."""
    z = features.steps(torch.from_numpy(records_of(tmp_path / "a.csv"))).double()
    possible = features.possible
    assert torch.allclose(z @ possible, z)
    assert torch.allclose(possible @ possible, possible)
    assert torch.allclose(possible, possible.T)
    free = features.factors - len(features.categories)
    assert float(possible.trace()) == pytest.approx(free)
    numbers = replace(features, categories=(), target=None)
    assert torch.equal(numbers.possible, torch.eye(numbers.factors, dtype=torch.float64))


@pytest.mark.parametrize("features", [moments(), aimed(), aimed(MOST_TIMES)], ids=repr)
def test_no_record_is_longer_than_its_share_and_none_contradicts_another(
    features: MomentFeatures,
) -> None:
    """Whole numbers throughout: the corners of all records, and some between.

    So two records of one class are no farther apart than sqrt(2) times their share.
    """
    random = np.random.default_rng(0)
    size = PEOPLE.record_size
    corners = random.choice(np.array([0, 255], dtype=np.uint8), (200, size))
    between = random.integers(0, 256, (200, size), dtype=np.uint8)
    records = np.concatenate([corners, between, np.zeros((1, size), np.uint8)])
    single = [
        exact(records, slice(row, row + 1), features).flatten().tolist()
        for row in range(len(records))
    ]
    longest = int(WEIGHT * GRID.units_per_one) ** 2
    for one in single:
        assert longest * 0.999 < sum(value * value for value in one) <= longest
    for one, other in itertools.pairwise(single):
        assert sum(a * b for a, b in zip(one, other, strict=True)) >= 0
        apart = sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
        assert apart <= 2 * longest


def test_missing_numbers_take_no_part(tmp_path: Path) -> None:
    records = records_of(tmp_path / "a.csv")
    absent = [(n, place) for n, (_, place) in enumerate(moments().numbers) if place >= 0]
    assert absent
    for number, place in absent:
        gone = records[records[:, place] > 0]
        assert len(gone)
        assert not exact(gone)[1 + number].any()


def test_a_record_has_one_category_of_each_column(tmp_path: Path) -> None:
    """Its own; and one even if it is no record of the table."""
    path = tmp_path / "a.csv"
    records = records_of(path)
    assert moments().categories
    z = moments().steps(torch.from_numpy(records)).numpy()[:, 1 + len(moments().numbers) :]
    after = 0
    for first, count in moments().categories:
        having = z[:, after : after + count]
        assert np.array_equal(having == INDICATOR, records[:, first : first + count] == 255)
        after += count
    noise = np.random.default_rng(0).integers(0, 256, records.shape, dtype=np.uint8)
    for strange in (noise, np.zeros_like(records), np.full_like(records, 255)):
        z = moments().steps(torch.from_numpy(strange)).numpy()[:, 1 + len(moments().numbers) :]
        assert np.array_equal(z.sum(axis=1) / INDICATOR, np.full(300, len(moments().categories)))


def test_sums_are_exact_to_the_last_unit(tmp_path: Path) -> None:
    """Python's whole numbers, of any size, say the same; on the finest grid that there is."""
    records = np.repeat(records_of(tmp_path / "a.csv"), 40, axis=0)
    grid = Grid.for_capacity(255, 1)
    made = ExactMoments(moments(), grid, CPU, 1.0).features(torch.from_numpy(records).double())
    column = torch.zeros(moments().dimension, dtype=torch.int64)
    made.add_to(column, slice(None))
    z = moments().steps(torch.from_numpy(records)).tolist()
    factors = [int(SAFETY * grid.units_per_one) // sum(n * n for n in row) for row in z]
    for first, other in ((0, 0), (0, 1), (1, 2), (2, moments().factors - 1)):
        expected = sum(f * row[first] * row[other] for f, row in zip(factors, z, strict=True))
        assert int(column[first * moments().factors + other]) == expected


@pytest.mark.parametrize("times", range(2, MOST_TIMES + 1))
def test_a_target_is_larger_to_the_last_unit(tmp_path: Path, times: int) -> None:
    """Every product, beside Python's whole numbers on the finest grid.

    There are as many records as are summed at a time. Pay is multiplied, all else is as it was, and
    all of it is divided anew.
    """
    records = np.repeat(records_of(tmp_path / "a.csv"), 55, axis=0)[: 1 << 14]
    records[: 1 << 13] = records[0]
    records[: 1 << 13, moments().numbers[1][0]] = 0  # as far out as can be
    records[: 1 << 13, moments().numbers[1][1]] = 0
    grid = Grid.for_capacity(255, 1)
    found = exact(records, features=aimed(times), grid=grid, weight=1.0)
    units = int(SAFETY * grid.units_per_one)
    expected = [[0] * moments().factors for _ in range(moments().factors)]
    plain, often = np.unique(
        moments().steps(torch.from_numpy(records)).numpy(), axis=0, return_counts=True
    )
    for row, count in zip(plain.tolist(), often.tolist(), strict=True):
        row[2] *= times
        factor = units // sum(n * n for n in row) * count
        for i, j in itertools.product(range(len(row)), repeat=2):
            expected[i][j] += factor * row[i] * row[j]
    assert found.tolist() == expected


def test_a_target_is_named_in_words_and_everything_else_stays() -> None:
    """Without one, a map is to the byte what it was before there were targets."""
    plain, aimed_at = (TangentOptions(width=3, target=t).draw(PEOPLE) for t in (None, "pay"))
    assert set(moments().spec()) == {"features", "inputs", "levels", "numbers", "categories"}
    assert isinstance(aimed_at, JointFeatures)
    assert aimed_at.moments == aimed()
    assert "3 times as large (the target is pay)" in aimed_at.describe(PEOPLE)
    assert "target" not in plain.describe(PEOPLE)
    assert replace(aimed_at, moments=moments()).spec() == plain.spec()
    spec, weights = aimed_at.spec(), aimed_at.weights()
    assert spec["moments"]["target"] == [moments().numbers[1][0], 3]
    assert feature_map_from_spec(spec, weights).spec() == spec


def test_pairs_with_a_target_are_kept_where_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns, "_MOST_PAIRS", 3)
    assert set(columns.pairs_to_choose_among(PEOPLE, aimed(), ())) == {
        ("age", "pay"), ("pay", "grade"), ("pay", "town"),
    }  # fmt: skip
    # Without a target: those of two numbers, and then the smallest.
    found = columns.pairs_to_choose_among(PEOPLE, moments(), ())
    assert found[:2] == [("age", "pay"), ("grade", "town")]
    # Named ones are there in any case, and of the others those of two numbers.
    named = [("grade", "town"), ("age", "grade", "town")]
    assert columns.pairs_to_choose_among(PEOPLE, moments(), named) == [*named, ("age", "pay")]


def test_they_have_a_part_of_the_feature_by_default(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(people(200))
    made = embed(tmp_path / "a.csv", TangentOptions(width=3), SourceOptions(schema=PEOPLE))
    parts = parts_of(made.feature_map)
    assert parts.moments == MomentFeatures.of(RANKED)
    assert parts.main_weight**2 + parts.weight**2 + parts.moment_weight**2 == pytest.approx(1)
    assert made.feature_map.dimension == parts.moment_place.stop
    without = TangentOptions(width=3, moments=0.0).draw(PEOPLE)
    assert parts_of(without).moments is None


def test_all_parts_together_are_no_longer_than_one(tmp_path: Path) -> None:
    feature_map = TangentOptions(width=5).draw(PEOPLE)
    assert isinstance(feature_map, JointFeatures)
    records = torch.from_numpy(records_of(tmp_path / "a.csv")).double()
    norms = ExactJoint(feature_map, GRID, CPU).features(records).norms()
    assert float(norms.max()) <= GRID.units_per_one


def test_too_coarse_a_grid_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"smaller capacity, or moments=0$"):
        ExactMoments(moments(), Grid.for_capacity(255, 1 << 37), CPU, 1e-6)


def test_a_spec_makes_the_map_again_and_a_false_one_none() -> None:
    feature_map = TangentOptions(width=3).draw(PEOPLE)
    assert isinstance(feature_map, JointFeatures)
    spec, weights = feature_map.spec(), feature_map.weights()
    assert feature_map_from_spec(spec, weights).spec() == spec
    good = moments().spec()
    places = good["numbers"]
    for wrong in (
        {**good, "numbers": places[:1], "categories": []},
        {**good, "numbers": [*places, places[0]]},
        {**good, "numbers": [[10**6, -1], *places[1:]]},
        {**good, "numbers": [[True, -1], *places[1:]]},
        {**good, "numbers": "all"},
        {**good, "levels": 7},
        {**good, "categories": [[0, 1]]},
        {**good, "categories": [[PEOPLE.record_size - 1, 2]]},
        {**good, "categories": None},
        {**good, "more": 1},
        {**good, "target": None},
        {**good, "target": places[0][0]},
        {**good, "target": [places[0][0]]},
        {**good, "target": [places[0][0], 1]},
        {**good, "target": [places[0][0], MOST_TIMES + 1]},
        {**good, "target": [places[0][0], -3]},
        {**good, "target": [places[0][0], 3.0]},
        {**good, "target": [False, 3]},
        {**good, "target": [places[0][0] + 1, 3]},
        {**good, "target": [good["categories"][0][0], 3]},
        {**good, "target": [10**30, 3]},
    ):
        with pytest.raises(SchemaError, match="products"):
            MomentFeatures.from_spec(wrong)
    for change in (
        {"moment_weight": 0.0},
        {"moment_weight": 0.95},
        {"moment_weight": 1},
        {"moment_weight": float("nan")},
        {"moments": None},
    ):
        with pytest.raises(SchemaError):
            feature_map_from_spec({**spec, **change}, weights)
    with pytest.raises(SchemaError, match="records of different sizes"):
        replace(feature_map, moments=replace(moments(), record_size=PEOPLE.record_size + 1))


def test_tables_of_very_many_columns_go_without_categories_or_at_all() -> None:
    numbers = tuple(
        Column(f"x{n}", ColumnKind.CONTINUOUS, "float64", 0.0, 1.0) for n in range(MOST_FACTORS)
    )
    category = Column("c", ColumnKind.CATEGORICAL, "string", categories=("a", "b", "c"))
    some = MomentFeatures.of(TableSchema((*numbers[:-3], category), None))
    assert some is not None
    assert not some.categories
    fewer = MomentFeatures.of(TableSchema((*numbers[:-4], category), None))
    assert fewer is not None
    assert fewer.factors == MOST_FACTORS
    assert MomentFeatures.of(TableSchema(numbers, None)) is None


def test_columns_of_many_categories_are_included_while_there_is_room() -> None:
    """Those with the fewest first; files of older versions are without them."""

    def column(name: str, count: int) -> Column:
        return Column.categorical(name, [f"{name}{n}" for n in range(count)])

    schema = TableSchema(
        (
            Column.integer("n", 0, 99),
            column("a", 300),
            column("b", 150),
            column("c", 5),
            column("d", 60),
            column("e", 40),
            column("f", 33),
        )
    )
    found, older = MomentFeatures.of(schema), MomentFeatures.of(schema, with_many=False)
    assert found is not None
    assert older is not None
    assert [count for _, count in older.categories] == [5]
    assert [count for _, count in found.categories] == [5, 60, 40, 33]
    assert found.factors == 1 + 1 + 138
    feature_map = TangentOptions(width=5).draw(schema)
    require_columns_of(schema, feature_map)
    assert isinstance(feature_map, JointFeatures)
    require_columns_of(schema, replace(feature_map, moments=older))
    others = replace(older, categories=found.categories[:2])
    with pytest.raises(SchemaError, match="the products of columns are not those"):
        require_columns_of(schema, replace(feature_map, moments=others))
