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
from dpntk.common.features.marginals import MarginalColumn, MarginalFeatures
from dpntk.common.features.registry import feature_map_from_spec
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import Embedding, embed
from dpntk.embed.exact.joint import ExactMarginals
from dpntk.embed.feature_options import FeatureOptions
from dpntk.embed.sums.accumulate import ClassSums
from dpntk.release.file.validation import require_consistent
from dpntk.release.mechanism.gaussian import SMOOTHING, NoiseScale, NoisySums
from dpntk.release.publishing import measurement
from dpntk.release.publishing.parameters import PrivacyParameters, noise_for
from dpntk.release.publishing.pipeline import unrecorded_release
from dpntk.release.publishing.weighing import weighed, with_pairs
from tests.helpers.neighbours import Integers
from tests.helpers.tables import HEADER, PEOPLE

OPTIONS = FeatureOptions(width=5)
EXACT = PrivacyParameters(math.inf, 1e-5, not_private=True)
CLEAR = PrivacyParameters(100.0, 1e-5)
"""So little noise that 400 rows are enough to choose pairs."""


def embedded(folder: Path, count: int = 400, missing: float = 0.0) -> Embedding:
    """Of rows in which the town follows from the grade, and nothing else from anything."""
    random = np.random.default_rng(0)
    lines = [HEADER]
    for number in range(count):
        grade, town = (("low", "Ulm"), ("mid", "Bonn"), ("high", "other"))[random.integers(3)]
        age, pay, ill = random.integers(100), random.uniform(0, 1000), random.choice(["no", "yes"])
        known = "" if missing and random.random() < missing else f"{pay:.2f}"
        lines.append(f"{number},{age},{known},{grade},{town},{ill}")
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    return embed(folder / "rows.csv", OPTIONS, SourceOptions(schema=PEOPLE))


def merged(marginals: MarginalFeatures, every: int) -> dict[MarginalColumn, MarginalColumn]:
    """So many cells of a number are one."""
    numbers = (column for column in marginals.columns if column.cells)
    return {each: replace(each, merged=tuple(range(0, each.cells, every))) for each in numbers}


def test_all_pairs_are_counted_and_the_one_that_goes_together_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedding = embedded(tmp_path)
    monkeypatch.setattr(measurement, "CHOSEN", 1)
    feature_map = embedding.feature_map
    assert isinstance(feature_map, JointFeatures)
    names = feature_map.marginals.names_of_groups(PEOPLE)
    assert set(names) == set(combinations(["age", "pay", "grade", "town"], 2))
    for parameters in (EXACT, CLEAR):
        made = unrecorded_release(embedding, parameters).feature_map
        assert isinstance(made, JointFeatures)
        assert made.marginals.names_of_groups(PEOPLE) == [("grade", "town")]
        assert "grade and town" in made.describe(PEOPLE)


def test_the_choice_is_a_function_of_what_has_its_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two data sets that differ in all ways, and the same noisy sums: the same pairs."""
    embedding = embedded(tmp_path)
    monkeypatch.setattr(measurement, "CHOSEN", 2)
    other = replace(
        embedding,
        sums=np.random.default_rng(1).permuted(embedding.sums, axis=0),
        counts=embedding.counts[::-1].copy(),
    )
    seen: list[int] = []

    def held(sums: Integers, counts: Integers | None, scale: NoiseScale) -> NoisySums:
        seen.append(len(sums))
        random = np.random.default_rng(len(seen) % 2)
        noise = random.integers(-(2**40), 2**40, sums.shape)
        return NoisySums(noise, None if counts is None else np.full(len(counts), 2**40))

    monkeypatch.setattr(measurement, "add_noise", held)
    one, two = (unrecorded_release(e, CLEAR) for e in (embedding, other))
    assert one.feature_map.spec() == two.feature_map.spec()
    assert np.array_equal(one.embedding, two.embedding)
    assert len(seen) == 4


@pytest.mark.parametrize("adjacency", Adjacency)
def test_what_any_record_adds_is_hidden_whichever_pairs_are_chosen(
    tmp_path: Path, adjacency: Adjacency
) -> None:
    """In whole numbers and fractions: squared distances over the noise, both parts together."""
    embedding = embedded(tmp_path)
    uniform = noise_for(embedding, PrivacyParameters(1.0, 1e-5, adjacency))
    feature_map = embedding.feature_map
    assert isinstance(feature_map, JointFeatures)
    random = np.random.default_rng(0)
    records = random.integers(0, 256, (12, PEOPLE.record_size)).astype(np.uint8)
    records[0], records[1] = 0, 255
    added = []
    for record in records:
        sums = ClassSums(feature_map, 2, embedding.grid)
        sums.add(record[None], np.zeros(1, dtype=np.int64))
        added.append(sums.sums[:, 0])
    most = 1 / Fraction(uniform.noise_multiplier) ** 2
    ways = itertools.product(([0], [1, 4], [0, 1, 2, 3, 4, 5]), (None, 1, 7, 1000))
    for chosen, every in ways:
        merging = every and merged(feature_map.marginals, every)
        released = with_pairs(feature_map, uniform, chosen, merging or None)
        variances = [Fraction(int(s) ** 2) - Fraction(SMOOTHING) ** 2 for s in released.noise()]
        of_count = Fraction(uniform.count_weight**2) / Fraction(uniform.sigma**2 - 9)

        def over_noise(change: Integers, variances: list[Fraction] = variances) -> Fraction:
            whole = (int(value) ** 2 for value in change)
            return sum((v / s for v, s in zip(whole, variances, strict=True)), Fraction(0))

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
    embedding = embedded(tmp_path)
    monkeypatch.setattr(measurement, "merged_cells", lambda of, noisy: merged(of, 9))
    exact = unrecorded_release(embedding, EXACT)
    made = unrecorded_release(embedding, CLEAR)
    # All six pairs are chosen in both, and cells are merged alike.
    assert made.feature_map.spec() == exact.feature_map.spec()
    noise = (made.embedding - exact.embedding) / made.noise_per_coordinate
    parts = parts_of(made.feature_map)
    assert parts.group_place.start > parts.split
    for place in (slice(0, parts.split), parts.group_place, parts.moment_place):
        part = noise[place].astype(float)
        assert np.mean(part**2) == pytest.approx(1, abs=6.2 * (2 / part.size) ** 0.5)


@pytest.mark.parametrize("every", [1, 5, 64])
def test_pairs_with_merged_cells_are_contingency_tables_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """Counted from the rows by their cells, one by one; that of missing values stays by itself."""
    embedding = embedded(tmp_path, missing=0.3)
    monkeypatch.setattr(measurement, "merged_cells", lambda of, noisy: merged(of, every))
    made = unrecorded_release(embedding, EXACT)
    parts = parts_of(made.feature_map)
    assert parts.marginals is not None
    names = parts.marginals.names_of_groups(PEOPLE)
    group = parts.marginals.groups[names.index(("age", "pay"))]
    age, pay = group.sides
    assert pay.dimension == -(-pay.cells // every) + 1
    size = parts.weight * parts.marginals.group_entry
    place = parts.marginals.places[len(parts.marginals.columns) + names.index(("age", "pay"))]
    sums = made.embedding[parts.marginal_place][place].sum(axis=1) * 400 / size
    source = open_source(tmp_path / "rows.csv", SourceOptions(schema=PEOPLE))
    records = torch.from_numpy(np.concatenate([batch.records for batch in source.batches(400)]))
    expected = np.zeros(group.dimension)
    for record in records.long():
        of_age = int(2 * record[age.start] * (age.cells - 1) + 255) // 510 // every
        of_pay = int(2 * record[pay.start] * (pay.cells - 1) + 255) // 510 // every
        if record[pay.missing] > 0:
            of_pay = pay.dimension - 1
        expected[of_age * pay.dimension + of_pay] += 1
    assert sums == pytest.approx(expected, abs=1e-3)


def test_released_pairs_are_contingency_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedding = embedded(tmp_path)
    monkeypatch.setattr(measurement, "CHOSEN", 1)
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
    assert parts.marginals.group_entry * parts.weight * math.sqrt(6) == pytest.approx(0.3)
    require_consistent(made.guarantee, made.feature_map, made.schema)


def test_a_release_that_has_not_chosen_is_refused(tmp_path: Path) -> None:
    embedding = embedded(tmp_path)
    made = unrecorded_release(embedding, CLEAR)
    with pytest.raises(FormatError, match="which pairs of columns it has, has not been chosen"):
        require_consistent(made.guarantee, embedding.feature_map, made.schema)


def test_pairs_of_a_release_are_not_embedded_again(tmp_path: Path) -> None:
    embedding = embedded(tmp_path)
    feature_map = weighed(embedding, noise_for(embedding, CLEAR), Adjacency.REPLACE_ONE).feature_map
    assert isinstance(feature_map, JointFeatures)
    with pytest.raises(SchemaError, match="those of a release already"):
        ExactMarginals(feature_map.marginals, embedding.grid, torch.device("cpu"))


def test_whoever_names_pairs_or_none_gets_these() -> None:
    for pairs, groups in ((("none",), 0), (("age,pay",), 1), (("all",), 6)):
        feature_map = replace(OPTIONS, pairs=pairs).draw(PEOPLE)
        assert isinstance(feature_map, JointFeatures)
        assert len(feature_map.marginals.groups) == groups
        assert not feature_map.marginals.undecided
    without = replace(OPTIONS, moments=0).draw(PEOPLE)  # nothing to choose by
    assert isinstance(without, JointFeatures)
    assert not without.marginals.groups
    with pytest.raises(SchemaError, match="--pairs none: it goes with no others"):
        replace(OPTIONS, pairs=("none", "age,pay")).draw(PEOPLE)


@pytest.mark.parametrize("adjacency", Adjacency)
def test_with_much_noise_or_records_that_nobody_may_count_there_are_no_pairs(
    tmp_path: Path, adjacency: Adjacency
) -> None:
    """What is released then is what an embedding without pairs gives, with the same noise."""
    made = embedded(tmp_path)
    epsilon = 1.0 if adjacency is Adjacency.REPLACE_ONE else 100.0
    parameters = PrivacyParameters(epsilon, 1e-5, adjacency)
    alone = replace(OPTIONS, pairs=("none",)).draw(PEOPLE)
    released = unrecorded_release(made, parameters)
    assert released.feature_map.spec() == alone.spec()
    found = weighed(made, noise_for(made, parameters), adjacency)
    columns = parts_of(alone).marginal_place
    rows = found.noise()
    assert len(rows) == alone.dimension
    usual = noise_for(made, parameters).sigma
    assert (rows[: columns.start] == rows[-1]).all()
    # Counts of columns stand in it as if pairs had a part, and are made longer with their noise.
    assert rows[columns.start] == pytest.approx(usual * math.sqrt(4 / 10))
