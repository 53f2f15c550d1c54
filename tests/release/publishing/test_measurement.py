"""Pairs of columns are chosen by what has its noise already, and have noise of their own."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import FormatError, SchemaError
from dpntk.common.features.joint import JointFeatures, parts_of
from dpntk.common.features.marginals.cells import MarginalColumn, MarginalGroup
from dpntk.common.features.marginals.map import GroupChoice, MarginalFeatures
from dpntk.common.features.registry import feature_map_from_spec
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import Column, Embedding, TableSchema, TangentOptions, embed
from dpntk.embed.exact.joint import ExactMarginals
from dpntk.embed.sums.accumulate import ClassSums
from dpntk.release.file.validation import require_consistent
from dpntk.release.mechanism.gaussian import (
    SMOOTHING,
    NoiseScale,
    NoisySums,
    add_noise,
    noisy_counts,
)
from dpntk.release.publishing import lengths, measurement
from dpntk.release.publishing.fewer_cells import map_with_fewer_cells
from dpntk.release.publishing.layout import layout_of, layout_of_embedding, with_pairs
from dpntk.release.publishing.lengths import FOLDED
from dpntk.release.publishing.merging import merged_cells
from dpntk.release.publishing.parameters import PrivacyParameters, noise_for
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.helpers.neighbours import Integers
from tests.helpers.tables import HEADER
from tests.helpers.tables import UNORDERED as PEOPLE

OPTIONS = TangentOptions(width=5)
EXACT = PrivacyParameters(math.inf, 1e-5, not_private=True)
CLEAR = PrivacyParameters(100.0, 1e-5)
"""So little noise that 400 rows are enough to choose pairs."""
FEW = 4


def embedded(
    folder: Path,
    count: int = 400,
    missing: float = 0.0,
    *,
    paid_by_age: bool = False,
    options: TangentOptions = OPTIONS,
) -> Embedding:
    """Of rows in which the town follows from the grade, or town and pay from the age."""
    random = np.random.default_rng(0)
    lines = [HEADER]
    for number in range(count):
        grade, town = (("low", "Ulm"), ("mid", "Bonn"), ("high", "other"))[random.integers(3)]
        age, pay, ill = random.integers(100), random.uniform(0, 1000), random.choice(["no", "yes"])
        if paid_by_age:
            pay, town = 10.0 * age, ("Ulm", "Bonn", "other")[age // 34]
        known = "" if missing and random.random() < missing else f"{pay:.2f}"
        lines.append(f"{number},{age},{known},{grade},{town},{ill}")
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    return embed(folder / "rows.csv", options, SourceOptions(schema=PEOPLE))


def merged(
    marginals: MarginalFeatures, every: int, parts: int | None = None
) -> dict[MarginalColumn, MarginalColumn]:
    """So many cells of a number are one, or as many as make so many parts."""
    found = {}
    for column in marginals.columns:
        if column.cells:
            step = every if parts is None else -(-column.cells // parts)
            found[column] = replace(column, merged=tuple(range(0, column.cells, step)))
    return found


def merging_alike(every: int, patch: pytest.MonkeyPatch) -> None:
    """Whatever is released of columns, and however much noise there is."""

    def alike(
        of: MarginalFeatures, noisy: Integers, parts: int | None = None
    ) -> dict[MarginalColumn, MarginalColumn]:
        return merged(of, every, None if parts is None else FEW)

    patch.setattr(measurement, "merged_cells", alike)


def test_all_pairs_are_counted_and_the_one_that_goes_together_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedding = embedded(tmp_path)
    monkeypatch.setattr(measurement, "CHOSEN_PAIRS", 1)
    feature_map = embedding.feature_map
    assert isinstance(feature_map, JointFeatures)
    names = feature_map.marginals.names_of_groups(PEOPLE)
    assert set(names) == set(combinations(["age", "pay", "grade", "town"], 2))
    for parameters in (EXACT, CLEAR):
        made = unrecorded_release(embedding, parameters).feature_map
        assert isinstance(made, JointFeatures)
        assert made.marginals.names_of_groups(PEOPLE) == [("grade", "town")]
        assert "grade and town" in made.describe(PEOPLE)


@pytest.mark.parametrize(
    ("adjacency", "epsilon"),
    [
        *((each, 100.0) for each in Adjacency),
        (Adjacency.REPLACE_ONE, 3.0),  # under add-remove noisy counts decide what is folded
    ],
)
def test_the_choice_is_a_function_of_what_has_its_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adjacency: Adjacency, epsilon: float
) -> None:
    """Of three data sets that differ in many ways, and the same noisy sums: the same pairs.

    Under add-remove they differ in how many rows they have, too. With little epsilon the pair of
    numbers is folded, if three parts are held to what more parts are.
    """
    monkeypatch.setattr(lengths, "_FEW_ABOVE_NOISE", lengths._ABOVE_NOISE)
    parameters = replace(CLEAR, adjacency=adjacency, epsilon=epsilon)
    embedding = embedded(tmp_path)
    monkeypatch.setattr(measurement, "CHOSEN_PAIRS", 1)
    mixed = replace(
        embedding,
        sums=np.random.default_rng(1).permuted(embedding.sums, axis=0),
        counts=embedding.counts[::-1].copy(),
    )
    rows = 400 if adjacency is Adjacency.REPLACE_ONE else 60
    sets = (embedding, mixed, embedded(tmp_path, rows, paid_by_age=True))
    seen: list[NoisySums] = []
    of_counts = noisy_counts(embedding.counts, noise_for(embedding, parameters))
    monkeypatch.setattr(measurement, "noisy_counts", lambda *_: of_counts)
    calls = itertools.count()

    def held(sums: Integers, counts: Integers | None, scale: NoiseScale) -> NoisySums:
        """What the first data set had gets the others as well, as it may by chance."""
        if (call := next(calls)) < 3:
            seen.append(add_noise(sums, counts, scale))
        assert seen[call % 3].sums.shape == sums.shape
        return seen[call % 3]

    monkeypatch.setattr(measurement, "add_noise", held)
    one, *others = (unrecorded_release(each, parameters) for each in sets)
    for other in others:
        assert one.feature_map.spec() == other.feature_map.spec()
        assert np.array_equal(one.embedding, other.embedding)
    marginals = one.feature_map.spec()["marginals"]
    assert "coarse" in marginals
    assert ("coarse_folded" in marginals) == (epsilon < 10)
    # All else, pairs of numbers in few cells, and chosen pairs.
    assert next(calls) == 9


@pytest.mark.parametrize("adjacency", Adjacency)
def test_what_any_record_adds_is_hidden_whichever_pairs_are_chosen(
    tmp_path: Path, adjacency: Adjacency
) -> None:
    """In whole numbers and fractions: squared distances over the noise, all parts together.

    A pair of numbers in one part or two is folded; in one part no record is in its second cell,
    after which comes that of the third record.
    """
    embedding = embedded(tmp_path)
    uniform = noise_for(embedding, PrivacyParameters(1.0, 1e-5, adjacency))
    feature_map = embedding.feature_map
    assert isinstance(feature_map, JointFeatures)
    random = np.random.default_rng(0)
    records = random.integers(0, 256, (9, PEOPLE.record_size)).astype(np.uint8)
    records[0], records[1], records[2] = 0, 255, 0
    records[
        2, [column.missing for column in feature_map.marginals.columns if column.missing >= 0]
    ] = 1
    added = []
    for record in records:
        sums = ClassSums(feature_map, 2, embedding.grid)
        sums.add(record[None], np.zeros(1, dtype=np.int64))
        added.append(sums.sums[:, 0])
    most = 1 / Fraction(uniform.noise_multiplier) ** 2
    numbers = feature_map.marginals.pairs_of_numbers
    assert len(numbers) == 1
    ways = itertools.product(([0], [1, 4], [0, 1, 2, 3, 4, 5]), (None, 1, 7, 1000), (0, 1, 2, 5))
    for number, (chosen, every, few) in enumerate(ways):
        merging = merged(feature_map.marginals, every) if every else {}
        fewer = merged(feature_map.marginals, 1, few) if few else {}
        released = with_pairs(
            feature_map,
            feature_map.weighing(*((0.4, 0.3), (0.9, 0.2), (0.1, 0.99))[number % 3]),
            uniform,
            GroupChoice(chosen, 0.3, merging),
            GroupChoice(numbers, 0.15, fewer, folded=few <= FOLDED) if few else None,
            (None, 0.15)[number % 2],
        )
        variances = [Fraction(int(s) ** 2) - Fraction(SMOOTHING) ** 2 for s in released.noise()]
        of_count = Fraction(uniform.count_weight**2) / Fraction(uniform.sigma**2 - 9)

        rows_of = {v: [i for i, each in enumerate(variances) if each == v] for v in set(variances)}

        def over_noise(change: Integers, rows_of: dict[Fraction, list[int]] = rows_of) -> Fraction:
            """Rows of one variance are added up as whole numbers: fractions are slow."""
            whole = [value**2 for value in change.tolist()]
            return sum(
                (sum(whole[i] for i in rows) / v for v, rows in rows_of.items()), Fraction(0)
            )

        for one, other in combinations([released.sums(row[:, None])[:, 0] for row in added], 2):
            if adjacency is Adjacency.ADD_REMOVE:
                assert over_noise(one) + of_count <= most
                continue
            assert over_noise(one - other) <= most  # of the same class
            assert over_noise(one) + over_noise(other) + 2 * of_count <= most


def test_chosen_pairs_have_the_noise_that_the_release_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chances are below 1e-9 that the noise of a part is off by six standard errors."""
    # Without noise a release would choose other weights.
    embedding = embedded(tmp_path, options=replace(OPTIONS, marginals=0.6, moments=0.2))
    merging_alike(9, monkeypatch)
    exact = unrecorded_release(embedding, EXACT)
    made = unrecorded_release(embedding, CLEAR)
    # All six pairs are chosen in both, and cells are merged alike.
    assert made.feature_map.spec() == exact.feature_map.spec()
    noise = (made.embedding - exact.embedding) / made.noise_per_coordinate
    parts = parts_of(made.feature_map)
    assert parts.group_place.start == parts.coarse_place.stop > parts.coarse_place.start
    assert parts.coarse_place.start == parts.level_place.stop == parts.level_place.start + 257
    columns = slice(parts.split, parts.level_place.start)
    others = (parts.level_place, parts.coarse_place, parts.group_place, parts.moment_place)
    for place in (slice(0, parts.split), columns, *others):
        part = noise[place].astype(float)
        assert np.mean(part**2) == pytest.approx(1, abs=6.2 * (2 / part.size) ** 0.5)


def test_a_cell_that_no_record_can_reach_is_noise_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of numbers that are all the same in one part: no two of them are in different parts."""
    rows = np.random.default_rng(0).choice(["no", "yes"], 400)
    lines = [f"0,0,0,{ill}" for ill in rows]
    (tmp_path / "rows.csv").write_text("\n".join(["one,two,three,ill", *lines]) + "\n")
    numbers = [Column.integer(name, 0, 1) for name in ("one", "two", "three")]
    schema = TableSchema((*numbers, Column.boolean("ill", ["no", "yes"])), "ill")
    embedding = embed(tmp_path / "rows.csv", OPTIONS, SourceOptions(schema))

    def in_one_part(
        of: MarginalFeatures, noisy: Integers, parts: int | None = None
    ) -> dict[MarginalColumn, MarginalColumn]:
        return merged_cells(of, noisy, None if parts is None else 1)

    monkeypatch.setattr(measurement, "merged_cells", in_one_part)
    monkeypatch.setattr(lengths, "_parts_of_numbers", lambda noise: FOLDED)
    for parameters in (EXACT, CLEAR):
        made = unrecorded_release(embedding, parameters)
        parts = parts_of(made.feature_map)
        assert parts.marginals is not None
        assert all(pair.folded and pair.dimension == 2 for pair in parts.marginals.coarse)
        counted = made.embedding[parts.coarse_place].reshape(3, 2, 2)
        size = parts.weight * parts.marginals.entries[3]
        noise = 6 * made.noise_per_coordinate
        expected = size * np.bincount(rows == "yes") / 400
        assert counted[:, 0] == pytest.approx(np.tile(expected, (3, 1)), abs=noise + 1e-6)
        assert counted[:, 1] == pytest.approx(np.zeros((3, 2)), abs=noise)


@pytest.mark.parametrize("every", [1, 5, 64])
def test_pairs_with_merged_cells_are_contingency_tables_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """Counted from the rows by their cells, one by one; that of missing values stays by itself."""
    embedding = embedded(tmp_path, missing=0.3)
    merging_alike(every, monkeypatch)
    made = unrecorded_release(embedding, EXACT)
    parts = parts_of(made.feature_map)
    marginals = parts.marginals
    assert marginals is not None
    names = marginals.names_of_groups(PEOPLE)
    source = open_source(tmp_path / "rows.csv", SourceOptions(schema=PEOPLE))
    records = torch.from_numpy(np.concatenate([batch.records for batch in source.batches(400)]))
    border = len(marginals.columns) + len(marginals.by_level)
    chosen = border + len(marginals.coarse) + names.index(("age", "pay"))
    # In few cells it is there as well, between columns and chosen pairs.
    for number, merged_to in ((border, -(-64 // FEW)), (chosen, every)):
        group = marginals.tables[number]
        assert isinstance(group, MarginalGroup)
        age, pay = group.sides
        assert pay.dimension == -(-pay.cells // merged_to) + 1
        of_age = age.merged[1] if len(age.merged) > 1 else age.cells
        size = parts.weight * marginals.entries[number]
        place = marginals.places[number]
        sums = made.embedding[parts.marginal_place][place].sum(axis=1) * 400 / size
        expected = np.zeros(group.dimension)
        for record in records.long():
            row = int(2 * record[age.start] * (age.cells - 1) + 255) // 510 // of_age
            cell = int(2 * record[pay.start] * (pay.cells - 1) + 255) // 510 // merged_to
            if record[pay.missing] > 0:
                cell = pay.dimension - 1
            expected[row * pay.dimension + cell] += 1
        assert sums == pytest.approx(expected, abs=1e-3)


def test_levels_of_a_number_are_counted_one_by_one(tmp_path: Path) -> None:
    """Pay has more values than cells, age has a cell for each; that of missing values is last."""
    embedding = embedded(tmp_path, missing=0.3)
    made = unrecorded_release(embedding, EXACT)
    parts = parts_of(made.feature_map)
    assert parts.marginals is not None
    (pay,) = parts.marginals.by_level
    source = open_source(tmp_path / "rows.csv", SourceOptions(schema=PEOPLE))
    (batch,) = source.batches(400)
    records, labels = batch.records.astype(np.int64), batch.labels
    size = parts.weight * parts.marginals.level_entry
    assert size == pytest.approx(0.15)
    for label in range(2):
        of_class = records[labels == label]
        first, last = of_class[:, pay.start + 1], of_class[:, pay.start + pay.count - 1]
        at = of_class[:, pay.start].clip(1, 254)
        ends = [of_class[:, pay.missing] > 0, first == 255, last == 255]
        levels = np.select(ends, [256, 0, 255], at)
        sums = made.embedding[parts.level_place][:, label] * 400 / size
        assert sums == pytest.approx(np.bincount(levels, minlength=257), abs=1e-3)


def test_released_pairs_are_contingency_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedding = embedded(tmp_path)
    monkeypatch.setattr(measurement, "CHOSEN_PAIRS", 1)
    made = unrecorded_release(embedding, EXACT)
    parts = parts_of(made.feature_map)
    assert parts.marginals is not None
    size = parts.weight * parts.marginals.group_entry
    shares = made.embedding[parts.group_place].sum(axis=1) / size
    table = np.rint(shares * 400).reshape(3, 4)
    assert np.count_nonzero(table) == 3
    assert table.sum() == 400
    assert table.diagonal().sum() == 400


def test_a_map_says_what_was_chosen_and_is_rebuilt(tmp_path: Path) -> None:
    embedding = embedded(tmp_path)
    made = unrecorded_release(embedding, CLEAR)
    for feature_map in (made.feature_map, embedding.feature_map):
        again = feature_map_from_spec(feature_map.spec(), feature_map.weights())
        assert again.spec() == feature_map.spec()
    parts = parts_of(made.feature_map)
    assert parts.marginals is not None
    # All parts together have length 1.
    squares = parts.main_weight**2 + parts.moment_weight**2
    squares += float((parts.marginals.entries**2).sum()) * parts.weight**2
    assert squares == pytest.approx(1)
    # What pairs and levels leave is shared out by the weights.
    scale = noise_for(embedding, CLEAR)
    weighed = layout_of_embedding(embedding, scale, embedding.records).weighed
    assert weighed is not None
    assert not weighed.weights_undecided
    before, columns = parts_of(weighed), len(parts.marginals.columns)
    left = parts.main_weight / before.main_weight
    assert parts.weight * parts.marginals.entry * math.sqrt(columns) / before.weight == (
        pytest.approx(left)
    )
    assert parts.moment_weight / before.moment_weight == pytest.approx(left)
    assert parts.marginals.group_entry * parts.weight * math.sqrt(6) == pytest.approx(0.3)
    of_levels, coarse = parts.marginals.entries[len(parts.marginals.columns) :][:2]
    assert coarse * parts.weight == pytest.approx(0.15)
    assert of_levels * parts.weight == pytest.approx(0.15)
    described = made.feature_map.describe(PEOPLE)
    assert "1 pair of numbers in few cells of weight 0.15" in described
    assert "1 column of numbers by their levels of weight 0.15" in described
    require_consistent(made.guarantee, made.feature_map, made.schema)


def test_a_release_that_has_not_chosen_is_refused(tmp_path: Path) -> None:
    embedding = embedded(tmp_path)
    made = unrecorded_release(embedding, CLEAR)
    with pytest.raises(FormatError, match="which pairs of columns it has, has not been chosen"):
        require_consistent(made.guarantee, embedding.feature_map, made.schema)


def test_pairs_of_a_release_are_not_embedded_again(tmp_path: Path) -> None:
    embedding = embedded(tmp_path)
    noise = noise_for(embedding, CLEAR)
    feature_map = layout_of_embedding(embedding, noise, embedding.records).feature_map
    assert isinstance(feature_map, JointFeatures)
    with pytest.raises(SchemaError, match="those of a release already"):
        ExactMarginals(feature_map.marginals, embedding.grid, torch.device("cpu"))


def test_whoever_wants_all_pairs_or_none_gets_these() -> None:
    for pairs, groups in ((("none",), 0), (("all",), 6), (("all", "age,pay"), 6)):
        feature_map = replace(OPTIONS, pairs=pairs).draw(PEOPLE)
        assert isinstance(feature_map, JointFeatures)
        assert len(feature_map.marginals.groups) == groups
        assert not feature_map.marginals.undecided
    without = replace(OPTIONS, moments=0).draw(PEOPLE)  # nothing to choose by
    assert isinstance(without, JointFeatures)
    assert not without.marginals.groups
    with pytest.raises(SchemaError, match="pairs='none': it goes with no others"):
        replace(OPTIONS, pairs=("none", "age,pay")).draw(PEOPLE)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_named_pairs_are_measured_whatever_the_noise(tmp_path: Path, epsilon: float) -> None:
    """In place of those that would be chosen; all pairs of numbers are measured as ever."""
    named = [("age", "town"), ("pay", "grade", "town")]
    options = replace(OPTIONS, pairs=("town,age", ("grade", "pay", "town")))
    embedding = embedded(tmp_path, options=options)
    counted = parts_of(embedding.feature_map).marginals
    assert counted is not None
    names = counted.names_of_groups(PEOPLE)
    assert [names[number] for number in counted.named] == named
    assert [name for name in names if name not in named] == [("age", "pay")]
    made = unrecorded_release(embedding, PrivacyParameters(epsilon, 1e-5))
    parts = parts_of(made.feature_map)
    assert parts.marginals is not None
    assert parts.marginals.names_of_groups(PEOPLE) == named
    assert bool(parts.marginals.coarse) == (epsilon == 100)
    # As long as two more columns would be beside four.
    length = parts.marginals.group_length
    assert length is not None
    assert length * parts.weight == pytest.approx(math.sqrt(2 / 6))
    described = made.feature_map.describe(PEOPLE)
    assert "1 pair and 1 triple of columns, named by the owner, of weight 0.577" in described
    for feature_map in (made.feature_map, embedding.feature_map):
        again = feature_map_from_spec(feature_map.spec(), feature_map.weights())
        assert again.spec() == feature_map.spec()
    require_consistent(made.guarantee, made.feature_map, made.schema)


def test_names_of_pairs_that_there_are_not_are_refused(tmp_path: Path) -> None:
    embedding = embedded(tmp_path, options=replace(OPTIONS, pairs=("age,town",)))
    made = unrecorded_release(embedding, CLEAR)
    for feature_map, wrong in (
        (embedding.feature_map, ([2], [-1], [1, 0], [1, 1], ["1"], [True], 1)),
        (made.feature_map, ([1], [0, 1])),  # of which all are named, or none
    ):
        spec = feature_map.spec()
        for named in wrong:
            marginals = {**spec["marginals"], "pairs_named": named}
            with pytest.raises(SchemaError, match="feature map"):
                feature_map_from_spec({**spec, "marginals": marginals}, feature_map.weights())


@pytest.mark.parametrize("adjacency", Adjacency)
def test_with_much_noise_there_are_no_pairs(tmp_path: Path, adjacency: Adjacency) -> None:
    """What is released then is what an embedding without pairs gives, with the same noise."""
    made = embedded(tmp_path)
    parameters = PrivacyParameters(1.0, 1e-5, adjacency)
    scale = noise_for(made, parameters)
    alone = replace(OPTIONS, pairs=("none",)).draw(PEOPLE)
    released = unrecorded_release(made, parameters)
    blur = lengths.blur_of(scale, made.grid, 2, released.guarantee.records)
    fewer = map_with_fewer_cells(made.feature_map, scale, blur, 2)
    assert released.feature_map.spec() == layout_of(fewer, scale, blur, 2).feature_map.spec()
    assert released.feature_map.dimension < alone.dimension  # numbers have fewer cells, too
    found = layout_of_embedding(made, scale, made.records)
    before, after = parts_of(made.feature_map), parts_of(found.feature_map)
    rows, columns = found.noise(), after.marginal_place
    assert len(rows) == alone.dimension
    for place, factor in (
        (slice(0, columns.start), before.main_weight / after.main_weight),
        # Columns stand in it as if pairs and levels had a part, and are made longer.
        (columns, before.weight / after.weight * math.sqrt(4 / 11)),
        (after.moment_place, before.moment_weight / after.moment_weight),
    ):
        assert rows[place] == pytest.approx(scale.sigma * factor)
