"""Which values stand together in a row: as the released features say, and marginals stay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.errors import GeneratorError
from dpntk.common.features.joint import parts_of
from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.runtime.threads import Each, one_core_each
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind
from dpntk.common.schema.encoding import blocks_of
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import FeatureOptions, FourierOptions, HermiteOptions, TangentOptions, embed
from dpntk.generate import load_generator
from dpntk.generate.kernels.mean_embedding import pooled_mean, released_mean
from dpntk.generate.tables import refinement as refinement_module
from dpntk.generate.tables.energies.goal import STRENGTH, Goal, strength
from dpntk.generate.tables.energies.relu_features import ReluFeatures, has_relu_features
from dpntk.generate.tables.export import SavedTableGenerator, write_table
from dpntk.generate.tables.generators.knots import TableGenerator, TableGeneratorSpec
from dpntk.generate.tables.marginals.matching import match_marginals
from dpntk.generate.tables.marginals.released import marginals_of
from dpntk.generate.tables.moves.metropolis import try_replacements, try_swaps
from dpntk.generate.tables.moves.resample import ResamplingMoves
from dpntk.generate.tables.moves.swap import SwapMoves
from dpntk.generate.tables.refinement import Refinement, refinement_of
from dpntk.generate.tables.reweighting import Reweighting, RowFeatures, reweighting_of
from dpntk.generate.tables.rows.values import records_of
from dpntk.generate.tables.sampling import RowModel, corrected_rows
from dpntk.release import PrivacyParameters
from dpntk.release.file.model import Release
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.helpers.tables import RANKED as PEOPLE
from tests.helpers.tables import people

COLOURS = ("red", "green", "blue")
BLOCKS = blocks_of(PEOPLE)


def paired(count: int, dependent: bool) -> str:
    """Two columns of three colours each, which agree in nine of ten rows, or by chance."""
    random = np.random.default_rng(0)
    first = random.integers(0, 3, count)
    agrees = random.random(count) < 0.9 if dependent else np.zeros(count, bool)
    second = np.where(agrees, first, random.integers(0, 3, count))
    rows = (f"{COLOURS[a]},{COLOURS[b]}" for a, b in zip(first, second, strict=True))
    return "\n".join(["left,right", *rows]) + "\n"


PAIRED = TableSchema(
    (
        Column("left", ColumnKind.CATEGORICAL, "string", categories=COLOURS),
        Column("right", ColumnKind.CATEGORICAL, "string", categories=COLOURS),
    ),
    None,
)


def read(path: Path, schema: TableSchema) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    (batch,) = open_source(path, SourceOptions(schema=schema)).batches(1 << 20)
    return (batch.records / np.float32(255)).astype(np.float32), batch.labels


def shuffled(records: NDArray[np.float32], schema: TableSchema) -> NDArray[np.float32]:
    """The same columns, independent of one another."""
    random, found = np.random.default_rng(1), records.copy()
    for block in blocks_of(schema):
        found[:, block.place] = records[random.permutation(len(records)), block.place]
    return found


def agreement(records: NDArray[np.float32]) -> float:
    """How often both colours are the same."""
    return float((records[:, :3].argmax(axis=1) == records[:, 3:].argmax(axis=1)).mean())


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / "a.csv"
    path.write_text(people(3000))
    return path


@pytest.fixture(scope="module")
def made(table: Path) -> Release:
    return unrecorded_release(
        embed(table, TangentOptions(width=20), SourceOptions(schema=PEOPLE)),
        PrivacyParameters(10.0, 1e-5),
    )


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> int:
    """Rows that are arranged: a quarter of the usual ones, where their order alone matters."""
    monkeypatch.setattr(refinement_module, "_USUAL_ROWS", 1000)
    return 1000


@pytest.fixture
def tangent_map(made: Release) -> TangentFeatures:
    main = parts_of(made.feature_map).main
    assert isinstance(main, TangentFeatures)
    return main


def test_the_mean_of_features_is_theirs(tangent_map: TangentFeatures, table: Path) -> None:
    """In single directions it is what the kernel's inner products give."""
    records, _ = read(table, PEOPLE)
    mean = ReluFeatures(tangent_map).mean(torch.from_numpy(records))
    assert mean.shape == (tangent_map.dimension,)
    features = RowFeatures(tangent_map, records)
    for seed in range(5):
        random = torch.Generator().manual_seed(seed)
        direction = torch.randn(len(mean), generator=random)
        found = float(mean.double() @ direction.double())
        wanted = float(features.inner(direction).double().mean())
        assert found == pytest.approx(wanted, abs=1e-5)
    # Not by chance: the mean of others is another one.
    other = ReluFeatures(tangent_map).mean(torch.from_numpy(shuffled(records, PEOPLE)))
    assert float((mean - other).norm()) > 1e-3


def test_the_goal_is_the_mean_of_a_class_but_for_noise(table: Path) -> None:
    """Of so many releases that chance has next to no part in the mean of squares."""
    records, labels = read(table, PEOPLE)
    embedding = embed(table, TangentOptions(width=20), SourceOptions(schema=PEOPLE))
    shares: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(20):
        refinement = refinement_of(unrecorded_release(embedding, PrivacyParameters(10.0, 1e-5)))
        assert refinement is not None
        for label, found in shares.items():
            goal = refinement.goal(label)
            off = goal.mean - goal.tangents.mean(torch.from_numpy(records[labels == label]))
            found.append(float(off.square().mean()) / goal.noise**2)
            assert goal.floor == pytest.approx(goal.noise**2 * len(goal.mean))
            assert float(goal.mean.square().mean()) > 2 * goal.noise**2  # there is more than noise
    for found in shares.values():
        assert np.mean(found) == pytest.approx(1, rel=0.1)


def steep(tangent_map: TangentFeatures, sizes: dict[str, float]) -> torch.Tensor:
    """Some parts of theta, so large that chance has no say."""
    random, theta = torch.Generator().manual_seed(0), torch.zeros(tangent_map.dimension)
    for name, size in sizes.items():
        place = tangent_map.blocks[name]
        theta[place] = 1e6 * size * torch.randn(theta[place].shape, generator=random)
    return theta


def test_how_alike_rows_are_that_share_a_column(tangent_map: TangentFeatures, table: Path) -> None:
    records, _ = read(table, PEOPLE)
    tangents, blocks = ReluFeatures(tangent_map), blocks_of(PEOPLE)
    rows, others = torch.from_numpy(records[:50]), torch.from_numpy(records[50:100])
    for block, found in zip(
        blocks, tangents.similarity_by_column(rows, others, blocks), strict=True
    ):
        alike = others.clone()
        alike[:, block.place] = rows[:, block.place]
        change = tangents.features(alike) - tangents.features(others)
        expected = float((tangents.features(rows) * change).sum(dim=1).mean())
        assert float(found) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("apart", [0.0, 0.03, 0.06, 0.3])
def test_the_farther_from_independent_rows_the_less_is_held_back(
    tangent_map: TangentFeatures, table: Path, apart: float
) -> None:
    """By the squared distance, over what single columns leave of the features' variance."""
    records, _ = read(table, PEOPLE)
    tangents, noise = ReluFeatures(tangent_map), 1e-4
    rows = torch.from_numpy(shuffled(np.tile(records, (4000 // len(records), 1)), PEOPLE))
    mean, random = tangents.mean(rows), torch.Generator().manual_seed(0)
    direction = torch.randn(len(mean), generator=random)
    noisy = mean + noise * torch.randn(len(mean), generator=random)
    goal = Goal(tangents, blocks_of(PEOPLE), noisy + apart * direction / direction.norm(), noise)
    found, variance = noise**2 / goal.ridge(rows), 1 - float(mean.square().sum())
    least, most = (apart**2 / (part * variance) for part in (1, 0.05))
    assert min(least, STRENGTH) - 1e-3 <= found <= min(most + 1e-3, STRENGTH * (1 + 1e-6))


def test_where_noise_hides_it_columns_go_together_as_usual() -> None:
    dimension = 50_000
    for noise, seen in ((1e-5, 0.0), (0.1, STRENGTH)):
        assert strength(noise**2 * dimension, 0.2, noise, dimension) == pytest.approx(
            seen, abs=STRENGTH / 50
        )
    assert strength(0.004 + 1e-10 * dimension, 0.2, 1e-5, dimension) == pytest.approx(
        0.02, rel=0.01
    )
    assert strength(0.0, 0.2, 1e-3, dimension) == 0.0


@pytest.mark.parametrize(
    "sizes",
    [
        {"weight_1": 1.0, "bias_1": 1.0, "readout": 1.0, "output_bias": 1.0},
        {"weight_1": 1.0, "readout": 5.0},  # as much of one as of the other
        {"output_bias": 1.0},  # the norm, and nothing else
    ],
    ids=" ".join,
)
def test_two_rows_exchange_what_makes_their_features_fit_better(
    tangent_map: TangentFeatures, table: Path, sizes: dict[str, float]
) -> None:
    """Column by column, each seen as the rows then are; the features are the kernel's."""
    records, _ = read(table, PEOPLE)
    theta = steep(tangent_map, sizes)
    form = ReluFeatures(tangent_map).linear_form(theta)
    kept, compared = 0, 0
    for first in range(0, 400, 2):
        wanted, sure = records[first : first + 2].copy(), True
        for block in BLOCKS:
            other = wanted.copy()
            other[:, block.place] = wanted[::-1, block.place]
            both = RowFeatures(tangent_map, np.concatenate([wanted, other])).inner(theta).double()
            gain = float(both[2:].sum() - both[:2].sum())
            sure &= abs(gain) > 1e-4 * float(both.abs().max())  # not a matter of rounding
            if gain > 0:
                wanted, kept = other, kept + 1
        now = torch.from_numpy(records[first : first + 2].copy())
        try_swaps(form, now, BLOCKS, np.random.default_rng(0))
        assert not sure or np.array_equal(now.numpy(), wanted)
        compared += sure
    assert compared > 50
    assert 50 < kept < 750


def test_exchanges_keep_every_columns_values_and_gain(
    tangent_map: TangentFeatures, table: Path
) -> None:
    records, _ = read(table, PEOPLE)
    before, now = records.copy(), torch.from_numpy(records.copy())
    theta = steep(tangent_map, {"weight_1": 1.0, "bias_1": 1.0, "readout": 1.0})
    form, random = ReluFeatures(tangent_map).linear_form(theta), np.random.default_rng(0)
    gains = [RowFeatures(tangent_map, before).inner(theta).double()]
    for _ in range(3):
        try_swaps(form, now, BLOCKS, random)
        gains.append(RowFeatures(tangent_map, now.numpy()).inner(theta).double())
    sums = [float(gain.sum()) for gain in gains]
    assert sums == sorted(sums)
    assert sums[-1] - sums[0] > 0.05 * len(before) * float(gains[0].std())
    for block in BLOCKS:
        for rows in (before, now.numpy()):
            rows[:, block.place] = rows[np.lexsort(rows[:, block.place].T), block.place]
    assert np.array_equal(before, now.numpy())


@pytest.mark.parametrize("replace_values", [False, True])
def test_what_comes_of_rows_does_not_depend_on_who_shares_the_work(
    tangent_map: TangentFeatures, replace_values: bool
) -> None:
    """Several threads, or one; the last of the parts is a short one."""
    random = np.random.default_rng(0)
    start = torch.from_numpy(random.random((7001, PEOPLE.record_size), dtype=np.float32))
    theta = steep(tangent_map, {"weight_1": 1.0, "bias_1": 1.0, "readout": 1.0})
    tangents = ReluFeatures(tangent_map)
    form = tangents.linear_form(theta)

    def rows_and_mean(each: Each) -> tuple[torch.Tensor, torch.Tensor]:
        rows, chances = start.clone(), np.random.default_rng(1)
        for _ in range(2):
            if replace_values:
                try_replacements(form, rows, start, BLOCKS, chances, None, each)
            else:
                try_swaps(form, rows, BLOCKS, chances, each=each)
        return rows, tangents.mean(rows, each)

    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with one_core_each() as each:
            shared = rows_and_mean(each)
            alone = rows_and_mean(map)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(threads)
    assert not torch.equal(alone[0], start)
    assert torch.equal(shared[0], alone[0])
    assert torch.equal(shared[1], alone[1])


def test_arrangements_are_as_likely_as_theta_says(tangent_map: TangentFeatures) -> None:
    """Of two rows and two columns there are two arrangements."""
    rows = np.zeros((2, PEOPLE.record_size), np.float32)
    town, other = BLOCKS[3].place, BLOCKS[0].place
    rows[0, town.start], rows[1, town.start + 1] = 1, 1
    rows[1, other.start] = 1
    crossed = rows.copy()
    crossed[:, town] = rows[::-1, town]
    random = torch.Generator().manual_seed(3)
    theta = torch.randn(tangent_map.dimension, generator=random)
    straight, cross = (
        float(RowFeatures(tangent_map, each).inner(theta).double().sum())
        for each in (rows, crossed)
    )
    theta *= 1.0 / (straight - cross)  # the first is e times as likely
    form, chances = ReluFeatures(tangent_map).linear_form(theta), np.random.default_rng(0)
    now, found = torch.from_numpy(rows.copy()), 0
    for _ in range(4000):
        try_swaps(form, now, [BLOCKS[3]], chances)
        apart = now[:, other.start] != now[:, town.start + 1]
        found += int(not apart.any())
    assert found / 4000 == pytest.approx(np.e / (1 + np.e), abs=0.03)


def test_a_row_takes_what_makes_its_features_fit_better(
    tangent_map: TangentFeatures, table: Path
) -> None:
    """All of another row, or column by column; that row stays as it is."""
    records, _ = read(table, PEOPLE)
    theta = steep(tangent_map, {"weight_1": 1.0, "bias_1": 1.0, "readout": 1.0})
    form, taken, compared = ReluFeatures(tangent_map).linear_form(theta), 0, 0
    for first in range(0, 400, 2):
        wanted, other, sure = records[first : first + 1].copy(), records[first + 1 :][:1], True
        for place in (slice(None), *(block.place for block in BLOCKS)):
            new = wanted.copy()
            new[:, place] = other[:, place]
            if np.array_equal(new, wanted):
                continue
            both = RowFeatures(tangent_map, np.concatenate([wanted, new])).inner(theta).double()
            gain = float(both[1] - both[0])
            sure &= abs(gain) > 1e-4 * float(both.abs().max())
            if gain > 0:
                wanted, taken = new, taken + 1
        now = torch.from_numpy(records[first : first + 2].copy())
        try_replacements(form, now[:1], now[1:], BLOCKS, np.random.default_rng(0))
        assert not sure or np.array_equal(now[:1].numpy(), wanted)
        assert np.array_equal(now[1:].numpy(), other)
        compared += sure
    assert compared > 50
    assert 50 < taken < 750


def test_replaced_values_are_as_likely_as_others_and_theta_say(
    tangent_map: TangentFeatures,
) -> None:
    """Of the other rows a quarter has the one town, which theta makes e times as likely."""
    both = np.zeros((2, PEOPLE.record_size), np.float32)
    town = BLOCKS[3].place
    both[0, town.start], both[1, town.start + 1] = 1, 1
    theta = torch.randn(tangent_map.dimension, generator=torch.Generator().manual_seed(3))
    one, other = RowFeatures(tangent_map, both).inner(theta).double().tolist()
    theta *= 1.0 / (one - other)
    tangents, chances = ReluFeatures(tangent_map), np.random.default_rng(0)
    others = torch.from_numpy(both[[0, 1, 1, 1]])
    now = torch.from_numpy(np.repeat(both[1:], 4000, axis=0))
    for _ in range(30):
        try_replacements(tangents.linear_form(theta), now, others, [BLOCKS[3]], chances)
    found = float(now[:, town.start].mean())
    assert found == pytest.approx(0.25 * np.e / (0.25 * np.e + 0.75), abs=0.03)
    now = torch.from_numpy(np.repeat(both[1:], 4000, axis=0))
    try_replacements(tangents.linear_form(0 * theta), now, others, BLOCKS, chances)
    assert float(now[:, town.start].mean()) == pytest.approx(0.25, abs=0.03)


TRAITS = 12
TRAITED = TableSchema(
    (
        *(Column.categorical(f"t{number}", ["no", "yes"]) for number in range(TRAITS)),
        Column.categorical("rare", ["no", "yes"]),
    ),
    "rare",
)


def test_a_rare_class_is_told_by_all_its_columns_though_noise_hides_each(tmp_path: Path) -> None:
    """100 of 20,000 records have a trait in 0.9 of the cases, the others in 0.3."""
    random = np.random.default_rng(0)
    labels = np.arange(20_000) < 100
    traits = random.random((len(labels), TRAITS)) < np.where(labels, 0.9, 0.3)[:, None]
    names = [column.name for column in TRAITED.columns]
    lines = [",".join(names)]
    for row in np.column_stack([traits, labels]):
        lines.append(",".join(np.where(row, "yes", "no")))
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines) + "\n")
    noisy = unrecorded_release(
        embed(
            path,
            TangentOptions(width=50, marginals=0.4, moments=0.3),
            SourceOptions(schema=TRAITED),
        ),
        PrivacyParameters(1.0, 1e-5),
    )
    refinement = refinement_of(noisy)
    assert refinement is not None
    assert [refinement.swaps(label) for label in (0, 1)] == [True, False]
    marginal = marginals_of(released_mean(noisy), noisy.feature_map, TRAITED)[0]
    assert marginal.noise[1] > 0.3  # so a trait by itself is hidden

    def rows(label: int, count: int) -> NDArray[np.float32]:
        yes = random.random((count, TRAITS)) < 0.3
        return np.stack([~yes, yes], axis=2).reshape(count, -1).astype(np.float32)

    done: list[int] = []
    for count in (315, 9001):
        drawn = refinement.draw(
            1, count, rows, np.random.default_rng(0), lambda units, remark: done.append(units)
        )
        assert drawn.shape == (count, TRAITED.record_size)
        assert drawn[:, 1::2].sum(axis=1).mean() > 7  # of the records: 10.8, of the others: 3.6
    assert sum(done) == 315 + 9001


def test_tables_of_all_classes_leave_a_rare_one_its_columns(tmp_path: Path) -> None:
    """Of 20,000 rows most have a colour twice; 20 are rare, of which no more is known than red."""
    path = tmp_path / "a.csv"
    lines = paired(20_000, True).splitlines()
    schema = replace(PAIRED, columns=(*PAIRED.columns, TRAITED.columns[-1]), label="rare")
    rare = ["yes" if number < 20 else "no" for number in range(20_000)]
    path.write_text("\n".join(",".join(pair) for pair in zip(lines, ["rare", *rare], strict=True)))
    options = TangentOptions(width=50, pairs=("left,right",))
    noisy = unrecorded_release(
        embed(path, options, SourceOptions(schema=schema)), PrivacyParameters(1.0, 1e-5)
    )
    found = refinement_of(noisy)
    assert found is not None
    assert found.goal_of_all().counts is not None
    refinement = replace(found, noise=np.array([found.noise[0], 50.0]))
    assert [refinement.swaps(label) for label in (0, 1)] == [True, False]
    random = np.random.default_rng(0)

    def rows(label: int, count: int) -> NDArray[np.float32]:
        shares = (0.8, 0.1, 0.1) if label else (1 / 3,) * 3
        one, other = (np.eye(3)[random.choice(3, count, p=shares)] for _ in range(2))
        return np.concatenate([one, other], axis=1).astype(np.float32)

    drawn = refinement.draw(1, 4000, rows, np.random.default_rng(0))
    assert drawn[:, 0].mean() > 0.7
    assert agreement(drawn) > 0.8  # 0.66 if columns are independent


@pytest.mark.parametrize(("dependent", "low", "high"), [(True, 0.87, 0.99), (False, 0.3, 0.37)])
def test_what_goes_with_what_is_as_it_was(
    tmp_path: Path, dependent: bool, low: float, high: float
) -> None:
    """Rows whose columns are independent become dependent if the released ones are, only then."""
    path = tmp_path / "a.csv"
    path.write_text(paired(20_000, dependent))
    noisy = unrecorded_release(
        embed(path, TangentOptions(width=50), SourceOptions(schema=PAIRED)),
        PrivacyParameters(100.0, 1e-5),
    )
    refinement = refinement_of(noisy)
    assert refinement is not None
    start = shuffled(read(path, PAIRED)[0], PAIRED)
    assert agreement(start) == pytest.approx(1 / 3, abs=0.01)
    marginals = marginals_of(released_mean(noisy), noisy.feature_map, PAIRED)
    asked: list[tuple[int, int]] = []

    def rows(label: int, count: int) -> NDArray[np.float32]:
        asked.append((label, count))
        match_marginals(start[:count], label, marginals, np.random.default_rng(0))
        return start[:count].copy()

    found = []
    # Draws of independent columns are off by .018, so the mean of four by .009.
    for seed in range(2 if dependent else 4):
        asked.clear()
        drawn = refinement.draw(0, 9001, rows, np.random.default_rng(seed))
        assert drawn.shape == (9001, PAIRED.record_size)
        found.append(agreement(drawn))
    assert low < np.mean(found) < high  # of the records: .934 or 1/3
    # Half of the rows, doubled: their columns' values, twice, but for one row.
    assert asked == [(0, 4501)]
    assert np.abs(drawn.sum(axis=0) - 2 * start[:4501].sum(axis=0)).max() <= 1


@pytest.mark.usefixtures("hasty_rows")
@pytest.mark.parametrize(
    ("noise", "exchange", "least"),
    [((0.001, 0.001), True, 4000), ((0.01, 0.01), True, 1000), ((0.0001, 0.01), False, 1000)],
)
def test_a_few_rows_are_some_of_many_and_many_are_not_the_same(
    made: Release, table: Path, noise: tuple[float, float], exchange: bool, least: int
) -> None:
    """Ten rows that are arranged by themselves could only have the mean of ten rows.

    Where there is much noise, it takes fewer for theirs to be as good as their law's.
    """
    found = refinement_of(made)
    assert found is not None
    refinement = replace(found, noise=np.array(noise))
    assert refinement.swaps(1) == exchange
    asked: list[int] = []

    def rows(label: int, count: int) -> NDArray[np.float32]:
        asked.append(count)
        random = np.random.default_rng(0)
        found = np.resize(read(table, PEOPLE)[0], (count, PEOPLE.record_size))
        found[:, 0] = random.random(count)
        return found

    done: list[int] = []
    began = refinement.draw(1, 4050, rows, np.random.default_rng(0))
    for count, base in ((10, least), (8100, 4050)):
        asked.clear()
        done.clear()
        drawn = refinement.draw(
            1, count, rows, np.random.default_rng(0), lambda units, remark: done.append(units)
        )
        assert (asked[0], len(drawn), sum(done)) == (base, count, count)
        assert np.allclose(drawn[:, 0] * 99, np.rint(drawn[:, 0] * 99), atol=1e-4)
    # Doubled rows are arranged again: they differ in more than what they began with.
    assert len(np.unique(drawn, axis=0)) > 1.2 * len(np.unique(began, axis=0))


def test_a_few_rows_have_the_columns_of_many(made: Release, table: Path) -> None:
    """By chance, shares of 150 rows would be off by as much as a tenth."""
    refinement = refinement_of(made)
    assert refinement is not None
    records, labels = read(table, PEOPLE)
    of_class = records[labels == 0]

    def rows(label: int, count: int) -> NDArray[np.float32]:
        return np.resize(of_class, (count, PEOPLE.record_size))

    drawn = refinement.draw(0, 150, rows, np.random.default_rng(0))
    categories = np.r_[tuple(b.shares for b in BLOCKS if b.column.categories)]
    refined = rows(0, 4000)[:, categories].mean(axis=0)
    assert np.abs(drawn[:, categories].mean(axis=0) - refined).max() < 2.5 / 150


def test_rows_of_which_nothing_is_known_stay_as_they_are(made: Release, table: Path) -> None:
    """A mean feature that is nothing but noise, however large, does not move them."""
    found = refinement_of(made)
    assert found is not None
    records, _ = read(table, PEOPLE)
    for noise in (50.0, 500.0):
        random = np.random.default_rng(0)
        mean = random.normal(0, noise, found.mean.shape).astype(np.float32)
        refinement = replace(found, mean=mean, noise=np.full(2, noise))
        drawn = refinement.draw(
            1, 4000, lambda _, n: np.resize(records, (n, PEOPLE.record_size)), random
        )
        assert np.abs(drawn.mean(axis=0) - records.mean(axis=0)).max() < 0.05


@pytest.mark.parametrize(
    ("options", "suited"),
    [
        (TangentOptions(width=3), True),
        (TangentOptions(width=3, marginals=0.0), False),
        (TangentOptions(width=3, pairs=["age,town", "age,pay,grade"]), True),
        (TangentOptions(width=3, activation="relu6"), False),
        (TangentOptions(arch="fc_2l", width="3_3"), False),
        (FourierOptions(frequencies=20), False),
        (HermiteOptions(), False),
    ],
)
def test_rows_are_arranged_by_features_of_one_kind(
    table: Path, options: FeatureOptions, suited: bool
) -> None:
    assert (
        has_relu_features(embed(table, options, SourceOptions(schema=PEOPLE)).feature_map) == suited
    )


@pytest.mark.usefixtures("hasty_rows")
def test_rows_of_low_signal_classes_are_not_chosen_before_they_are_put_together(
    made: Release, few_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor do they exchange values: the others do, and are chosen."""
    refinement = refinement_of(made)
    assert refinement is not None
    saved = saved_generator(made)
    assert saved.model.reweighting is not None
    done: list[tuple[str, int]] = []

    def seen(owner: type, name: str, number: Callable[..., int]) -> None:
        """Go on as before, and take down what was called."""
        before = getattr(owner, name)

        def wrapped(*arguments: object) -> object:
            done.append((f"{owner.__name__}.{name}", number(*arguments)))
            return before(*arguments)

        monkeypatch.setattr(owner, name, wrapped)

    def those_of_others(replacing: ResamplingMoves, records: torch.Tensor, *rest: object) -> int:
        """Values are taken from rows as they were, not as they become."""
        assert torch.equal(replacing.others, records)
        assert replacing.others.data_ptr() != records.data_ptr()
        return len(records)

    seen(Reweighting, "draw", lambda _, label, *rest: label)
    seen(SwapMoves, "fit", lambda _, records, *rest: len(records))
    seen(ResamplingMoves, "fit", those_of_others)
    known, low_signal = ("SwapMoves.fit", few_rows), ("ResamplingMoves.fit", few_rows)
    first, second = ("Reweighting.draw", 0), ("Reweighting.draw", 1)
    both = [first, second, first, known, second, known]  # seen beside one another before
    for noise, wanted in (
        ((0.001, 0.003), both),
        ((0.0002, 0.0031), [first, known, first, low_signal]),  # beside rows of all classes
        ((0.001, 0.0031), both),
    ):
        done.clear()
        sampled(changed(saved, refinement=replace(refinement, noise=np.array(noise))))
        assert done == wanted


def saved_generator(made: Release) -> SavedTableGenerator:
    generator = TableGenerator(TableGeneratorSpec(4, 8), PEOPLE).eval()
    marginals = marginals_of(pooled_mean(made), made.feature_map, PEOPLE)
    rows = corrected_rows(generator, marginals, torch.Generator().manual_seed(0))
    reweighting, refinement = reweighting_of(made, rows), refinement_of(made)
    model = RowModel(PEOPLE, generator, marginals, reweighting, refinement)
    return SavedTableGenerator(model, made.class_weights, {})


def changed(saved: SavedTableGenerator, **parts: object) -> SavedTableGenerator:
    """A generator with other parts of its model."""
    return replace(saved, model=replace(saved.model, **parts))  # type: ignore[arg-type]


def sampled(saved: SavedTableGenerator, count: int = 500) -> pa.Table:
    return saved.draw(count, 0).table


@pytest.mark.usefixtures("few_rows", "hasty_rows")
def test_a_generator_that_was_written_makes_the_same_rows(made: Release, tmp_path: Path) -> None:
    """Of two generators, one that does not arrange makes others."""
    saved = saved_generator(made)
    rows = sampled(saved)
    write_table(tmp_path / "s", saved, rows, {})
    again = load_generator(tmp_path / "s" / "generator.safetensors")
    assert isinstance(again, SavedTableGenerator)
    assert sampled(again).equals(rows)
    assert not sampled(changed(saved, refinement=None)).equals(rows)


@pytest.mark.usefixtures("hasty_rows")
def test_continuous_numbers_are_different_in_many_rows(made: Release) -> None:
    """Though rows are doubled on the way to so many."""
    saved = replace(saved_generator(made), class_weights=np.array([0.5, 0.5]))
    rows = sampled(saved, 17_000)
    pay = rows["pay"].drop_null().to_numpy()
    assert len(np.unique(pay)) > 0.9 * len(pay) > 10_000


@pytest.mark.usefixtures("few_rows", "hasty_rows")
def test_a_generator_whose_means_do_not_fit_is_refused(made: Release, tmp_path: Path) -> None:
    saved = saved_generator(made)
    rows, good = sampled(saved), saved.model.refinement
    assert good is not None
    assert isinstance(saved.model.reweighting, Reweighting)
    wrong: tuple[Refinement, ...] = (
        replace(good, mean=good.mean[:1]),
        replace(good, mean=good.mean * np.float32("nan")),
        replace(good, noise=-1 - good.noise),
        replace(good, noise=good.noise[:1]),
    )
    for number, refinement in enumerate(wrong):
        folder = tmp_path / str(number)
        write_table(folder, changed(saved, refinement=refinement), rows, {})
        with pytest.raises(GeneratorError, match="means contradict"):
            load_generator(folder / "generator.safetensors")


def test_without_classes_features_are_believed_only_as_far_as_products_leave_something(
    tmp_path: Path,
) -> None:
    """Two columns say the same, and products show it: the features must not make up more."""
    random = np.random.default_rng(0)
    first, count = random.integers(12, size=6000), 5
    others = random.integers(6, size=(len(first), count))
    sizes = {"a": 12, "b": 4, **{f"c{n}": 6 for n in range(count)}}
    schema = TableSchema(
        tuple(Column.categorical(name, list(map(str, range(n)))) for name, n in sizes.items())
    )
    values = np.column_stack([first, first // 3, others])
    table = pa.table({name: list(map(str, values[:, at])) for at, name in enumerate(sizes)})
    embedding = embed(table, TangentOptions(width=50), SourceOptions(schema=schema))
    refinement = refinement_of(unrecorded_release(embedding, PrivacyParameters(10.0, 1e-5)))
    assert refinement is not None
    goal = refinement.goal(0)
    assert goal.only_class
    independent = np.column_stack([random.permutation(column) for column in values.T])
    codes = {name: independent[:, at] for at, name in enumerate(sizes)}
    ridges = []
    for each in (goal, replace(goal, only_class=False)):
        rows = torch.from_numpy(records_of(schema, codes))
        moves = SwapMoves(each, np.random.default_rng(1))
        moves.fit(rows, lambda units, remark: None)
        ridges.append(moves._ridge)
    assert ridges[0] > 20 * ridges[1]  # 170 to 200 times
