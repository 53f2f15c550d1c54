"""A release weighs the parts of a table by its noise, and says how."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import FormatError
from dpntk.common.features.joint import JointFeatures, parts_of
from dpntk.common.features.registry import feature_map_from_spec
from dpntk.common.schema.table import TableSchema
from dpntk.common.schema.table_entries import MOST_COLUMNS
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import Column, Embedding, TangentOptions, embed
from dpntk.release.file.validation import require_consistent
from dpntk.release.mechanism.gaussian import NoiseScale
from dpntk.release.publishing import measurement
from dpntk.release.publishing.layout import ReleaseLayout, extreme_layouts, layout_of
from dpntk.release.publishing.parameters import PrivacyParameters
from dpntk.release.publishing.pipeline import unrecorded_release
from dpntk.release.publishing.weights import extreme_weights, weighed_for
from tests.helpers.neighbours import Integers
from tests.helpers.tables import PEOPLE, people

OPTIONS = TangentOptions(width=5)
EXACT = PrivacyParameters(math.inf, 1e-5, not_private=True)
BLURS = np.geomspace(1e-7, 10, 60)
NOISE = NoiseScale(1.0, 1, 1000, 0)
PAIRS = ((), ("none",), ("age,pay", "grade,town"))
"""Left to the release, left out, and chosen."""


def drawn(schema: TableSchema = PEOPLE, options: TangentOptions = OPTIONS) -> JointFeatures:
    found = options.draw(schema)
    assert isinstance(found, JointFeatures)
    return found


def embedded(folder: Path, options: TangentOptions) -> Embedding:
    (folder / "people.csv").write_text(people(300))
    return embed(folder / "people.csv", options, SourceOptions(schema=PEOPLE))


def lengths(layout: ReleaseLayout) -> list[float]:
    """Of the network's features, columns, levels, pairs of numbers, other pairs and products."""
    parts = parts_of(layout.feature_map)
    marginals = parts.marginals
    assert marginals is not None
    sizes = (marginals.columns, marginals.by_level, marginals.coarse, marginals.groups)
    squares = np.split(marginals.entries**2, np.cumsum([len(each) for each in sizes])[:-1])
    of_marginals = [parts.weight * math.sqrt(each.sum()) for each in squares]
    return [parts.main_weight, *of_marginals, parts.moment_weight]


def of_columns(count: int) -> JointFeatures:
    return drawn(TableSchema(tuple(Column.integer(f"n{n}", 0, 9) for n in range(count)), None))


@pytest.mark.parametrize("classes", [1, 2, 7])
def test_more_noise_gives_columns_more_weight_and_products_less(classes: int) -> None:
    found = [weighed_for(of_columns(30), blur, classes) for blur in BLURS]
    weights = np.array([each.weight for each in found])
    of_products = np.array([each.moment_weight for each in found])
    assert (np.diff(weights) >= 0).all()
    assert (np.diff(of_products) <= 0).all()
    assert weights[0] == pytest.approx(0.4 if classes > 1 else math.sqrt(30 / 55))
    assert math.sqrt(30 / 55) in weights
    assert weights[-1] == 0.9
    # Products have a part of what marginals leave.
    share = of_products**2 / (1 - weights**2)
    assert share[0] == pytest.approx(0.2 if classes > 1 else 0.5)
    assert of_products[-1] == 0.1


@pytest.mark.parametrize("count", [1, 3, 120, 400])
@pytest.mark.parametrize("classes", [1, 2])
def test_no_blur_gives_columns_less_weight_than_a_smaller_one(count: int, classes: int) -> None:
    some = BLURS[:: max(1, count // 50)]  # it takes long to weigh many columns
    weights = [weighed_for(of_columns(count), blur, classes).weight for blur in some]
    assert (np.diff(weights) >= 0).all()
    assert 0.9 <= weights[-1] < 0.99


@pytest.mark.parametrize(("classes", "weights"), [(2, (0.27, 0.41, 0.83)), (1, (0.7, 0.7, 0.83))])
def test_columns_weigh_most_where_they_are_many(
    classes: int, weights: tuple[float, float, float]
) -> None:
    """The network's features say little of each of many columns."""
    found = [weighed_for(of_columns(count), 0.02, classes).weight for count in (2, 5, 55)]
    assert found == pytest.approx(weights, abs=0.01)


def test_as_many_columns_as_there_may_be_leave_something_to_the_network() -> None:
    columns = [Column.integer(f"n{n}", 0, 9) for n in range(900)]
    columns += [Column.categorical(f"c{n}", ["a", "b"]) for n in range(MOST_COLUMNS - 900)]
    options = replace(OPTIONS, width=2, pairs=("none",))
    feature_map = drawn(TableSchema(tuple(columns), None), options)
    assert feature_map.moments is not None
    assert min(each.main_weight for each in extreme_weights(feature_map, 1)) > 0.04


def test_weights_that_the_owner_chose_stay() -> None:
    for options in (replace(OPTIONS, marginals=0.3), replace(OPTIONS, moments=0.3)):
        given = drawn(options=replace(options, pairs=("none",)))
        for blur in BLURS[::10]:
            assert layout_of(given, NOISE, blur, 2).feature_map is given


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("moments", [None, 0])
def test_a_release_is_what_an_embedding_of_its_weights_gives(
    tmp_path: Path, pairs: tuple[str, ...], moments: float | None
) -> None:
    """Without noise: whatever the embedding's parts weighed, the release's weigh as it says."""
    options = replace(OPTIONS, pairs=pairs, moments=moments)
    made = unrecorded_release(embedded(tmp_path, options), EXACT)
    weighed = weighed_for(drawn(options=options), 0.0, 2)
    chosen = replace(options, marginals=weighed.weight, moments=weighed.moment_weight)
    same = unrecorded_release(embedded(tmp_path, chosen), EXACT)
    assert made.feature_map.spec() == same.feature_map.spec()
    # Each is cut to whole numbers of its own.
    assert np.allclose(made.embedding, same.embedding, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("pairs", PAIRS)
def test_a_map_that_leaves_weights_to_the_release_is_rebuilt_and_refused_there(
    tmp_path: Path, pairs: tuple[str, ...]
) -> None:
    embedding = embedded(tmp_path, replace(OPTIONS, pairs=pairs))
    feature_map = embedding.feature_map
    again = feature_map_from_spec(feature_map.spec(), feature_map.weights())
    assert again.spec() == feature_map.spec()
    made = unrecorded_release(embedding, PrivacyParameters(1.0, 1e-5))
    require_consistent(made.guarantee, made.feature_map, made.schema)
    assert isinstance(made.feature_map, JointFeatures)
    undecided = replace(made.feature_map, weights_undecided=True)
    with pytest.raises(FormatError, match="the weights of its parts have not been chosen"):
        require_consistent(made.guarantee, undecided, made.schema)


@pytest.mark.parametrize("adjacency", Adjacency)
def test_the_weights_follow_from_the_noisy_counts_where_the_number_is_protected(
    tmp_path: Path, adjacency: Adjacency, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedding = embedded(tmp_path, OPTIONS)

    def held(_: Integers, scale: NoiseScale) -> Integers:
        return np.array([10**6, 10**6]) * scale.count_weight

    monkeypatch.setattr(measurement, "noisy_counts", held)
    made = unrecorded_release(embedding, PrivacyParameters(1.0, 1e-5, adjacency))
    found = lengths_of(made.feature_map)
    if adjacency is Adjacency.ADD_REMOVE:
        assert found[-1] ** 2 / (found[0] ** 2 + found[-1] ** 2) == pytest.approx(0.2)
    else:
        assert found[1] == pytest.approx(0.9)


def lengths_of(feature_map: object) -> list[float]:
    assert isinstance(feature_map, JointFeatures)
    every = np.arange(feature_map.dimension)
    return lengths(ReleaseLayout(feature_map, every, every, len(every), NOISE))


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("classes", [1, 3])
def test_at_no_blur_is_a_part_longer_or_shorter_than_in_extreme_layouts(
    pairs: tuple[str, ...], classes: int
) -> None:
    feature_map = drawn(options=replace(OPTIONS, pairs=pairs))

    def of_each(found: Iterable[ReleaseLayout]) -> NDArray[np.float64]:
        return np.array([lengths(each) for each in found])

    extreme = of_each(extreme_layouts(feature_map, NOISE, classes))
    every = of_each(layout_of(feature_map, NOISE, blur, classes) for blur in BLURS)
    assert (every**2).sum(axis=1) == pytest.approx(1)
    for possible, seen in zip(extreme.T, every.T, strict=True):
        there, among = seen[seen > 0], possible[possible > 0]
        assert len(there) <= len(BLURS) * len(among)  # a part that is there is among them
        assert (there * (1 - 1e-12) <= among.max(initial=0)).all()
        assert (there * (1 + 1e-12) >= among.min(initial=1)).all()
