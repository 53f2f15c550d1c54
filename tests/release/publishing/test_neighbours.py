"""Neighbours differ in nothing but what gets noise, and there by no more than the noise hides.

At random: schemas, degenerate ones often; options, promises, numbers of records; and what comes out
of the mechanism, of which everything is possible. Records are any bytes, corners before others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.adjacency import Adjacency
from dpntk.common.features.base import FeatureMap
from dpntk.common.features.joint import parts_of
from dpntk.common.features.joint_image import JointImageFeatures
from dpntk.common.features.marginals.cells import CELLS
from dpntk.common.features.pixels import PixelFeatures
from dpntk.common.schema import Schema
from dpntk.common.schema.classes import numbered
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind, Missing
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.common.schema.privacy_unit import PrivacyUnit
from dpntk.common.schema.table import TableSchema
from dpntk.embed import Embedding, FeatureOptions, FourierOptions, PixelOptions, TangentOptions
from dpntk.embed.exact.grid import Grid
from dpntk.embed.sums.accumulate import ClassSums
from dpntk.release import Release
from dpntk.release.file.validation import log_delta, require_consistent
from dpntk.release.mechanism import accountant, gaussian
from dpntk.release.mechanism.gaussian import SMOOTHING, NoiseScale, NoisySums
from dpntk.release.publishing import layout, measurement, pipeline
from dpntk.release.publishing.fewer_cells import added_up, of_few_cells
from dpntk.release.publishing.layout import ReleaseLayout
from dpntk.release.publishing.lengths import is_undecided
from dpntk.release.publishing.measurement import Measured, measure
from dpntk.release.publishing.parameters import ClassCounts, PrivacyParameters, noise_on
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.helpers.neighbours import Integers

GRID = Grid.for_capacity(255, 2**20)
Random = np.random.Generator
TABLES = {
    "all",
    "no pairs",
    "pairs",
    "coarse pairs",
    "folded pairs with 1 parts",
    "folded pairs with 2 parts",
}
"""What may be released of a table, where it is drawn for each of these by one seed or several."""


@dataclass(frozen=True)
class Seen:
    """A release, and how it came about.

    Attributes:
        release: what is written.
        layout: what it is made of.
        inputs: what got its noise, and the standard deviation of the noise on each number.
    """

    release: Release
    layout: ReleaseLayout
    inputs: Sequence[tuple[Integers, Integers]]


class Mechanism:
    """The mechanism, with what comes out of it held: each data set gets what the first one got."""

    def __init__(self, random: Random, monkeypatch: pytest.MonkeyPatch) -> None:
        self._random, self._held = random, list[Integers]()
        self._inputs, self._layouts = list[tuple[Integers, Integers]](), list[ReleaseLayout]()
        # This noise shows its standard deviation.
        monkeypatch.setattr(gaussian, "discrete_gaussian", lambda size, s: np.full(size, int(s)))
        monkeypatch.setattr(measurement, "add_noise", self._add_noise)
        monkeypatch.setattr(measurement, "noisy_counts", self._noisy_counts)
        monkeypatch.setattr(pipeline, "measure", self._measure)

    def release(self, embedding: Embedding, parameters: PrivacyParameters) -> Seen:
        self._inputs = []
        made = unrecorded_release(embedding, parameters)
        require_consistent(made.guarantee, made.feature_map, made.schema)
        return Seen(made, self._layouts.pop(), self._inputs)

    def _measure(
        self, embedding: Embedding, uniform: NoiseScale, adjacency: Adjacency, *, private: bool
    ) -> Measured:
        measured = measure(embedding, uniform, adjacency, private=private)
        self._layouts.append(measured.layout)
        return measured

    def _add_noise(self, sums: Integers, counts: Integers | None, scale: NoiseScale) -> NoisySums:
        assert counts is None
        sigmas = gaussian.add_noise(np.zeros_like(sums), None, scale).sums
        exact = gaussian.add_noise(sums, None, scale).sums - sigmas
        return NoisySums(self._out(exact, sigmas, _any_sums), None)

    def _noisy_counts(self, counts: Integers, scale: NoiseScale) -> Integers | None:
        sigmas = gaussian.noisy_counts(np.zeros_like(counts), scale)
        found = gaussian.noisy_counts(counts, scale)
        if sigmas is None or found is None:
            return None
        return self._out(found - sigmas, sigmas, _any_counts)

    def _out(
        self,
        exact: Integers,
        sigmas: Integers,
        drawn: Callable[[Integers, Integers, Random], Integers],
    ) -> Integers:
        self._inputs.append((exact, sigmas))
        if len(self._inputs) > len(self._held):
            self._held.append(drawn(exact, sigmas, self._random))
        found = self._held[len(self._inputs) - 1]
        assert found.shape == exact.shape
        return found


def _any_sums(exact: Integers, sigmas: Integers, random: Random) -> Integers:
    """Noise none, usual or great, of one sign, or in few places alone; choices follow from it."""
    usual = np.rint(random.normal(size=exact.shape) * sigmas).astype(np.int64)
    rare = random.random(exact.shape) < 2.0 ** -random.uniform(0, 8)
    ways = (
        exact,
        exact + usual,
        0 * exact,
        exact + 9 * sigmas,
        exact - 9 * sigmas,
        2**10 * usual,
        rare * sigmas.max() * 2**10,
        random.permuted(exact, axis=0),
    )
    return ways[random.integers(len(ways))].astype(np.int64)


def _any_counts(exact: Integers, sigmas: Integers, random: Random) -> Integers:
    """Those of a data set of any size, or of none."""
    ways = (
        exact,
        exact,
        exact + sigmas,
        -sigmas,
        exact // 3,
        sigmas * int(10 ** random.uniform(1, 5)),
    )
    return ways[random.integers(len(ways))]


def any_column(random: Random, name: str, *, number: bool) -> Column:
    """A column with one value, or two, or few, or many."""
    missing, few = bool(random.integers(2)), int(random.choice([1, 1, 2, 3, 63, 127, 128, 300]))
    low = float(random.choice([0.0, 1.0, -1e6]))
    squares = [number**2 for number in range(min(few, 9) + 1)]
    numbers = (
        lambda: Column.integer(name, -1, few - 1, missing=missing),
        lambda: Column.integer(name, 0, squares[-1], values=squares, missing=missing),
        lambda: Column.continuous(name, low, math.nextafter(low, math.inf), missing=missing),
        lambda: Column.continuous(name, -1.0, 1e6, transform="signed-log", missing=missing),
        lambda: Column.continuous(name, 0.0, few / 100, decimals=2, missing=missing),
        lambda: Column.date(name, "2019-12-31", "2020-01-01", missing=missing),
        lambda: Column.duration(name, "PT0S", f"PT{few}M", missing=missing),
    )
    texts = [f"{name}{one}" for one in range(min(few, 33))]
    own = Missing.CATEGORY if missing else Missing.REFUSED
    ranked = Column(name, ColumnKind.ORDINAL, "string", categories=tuple(texts), missing=own)
    others = (
        lambda: Column.categorical(name, texts, missing=missing),
        lambda: Column.boolean(name, ["no", "yes"], missing=missing),
        lambda: ranked,
    )
    kinds = numbers if number or random.integers(2) else others
    return kinds[random.integers(len(kinds))]()


def any_table(random: Random) -> tuple[Schema, FeatureOptions]:
    """Often of numbers alone, so many that their pairs may be folded."""
    numbers = bool(random.integers(2))
    count = random.integers(4, 6) if numbers else random.integers(1, 7)
    columns = [any_column(random, f"c{one}", number=numbers) for one in range(count)]
    label = "label" if random.integers(2) else None
    if label:
        columns.append(Column.boolean(label, ["no", "yes"]))
    schema = TableSchema(tuple(columns), label, left_out=("who",), bins=int(random.integers(2, 5)))
    names = [column.name for column in schema.features]
    signed = "softsign" if random.integers(4) == 0 else None
    usual = TangentOptions(width=2, activation=signed, seed=int(random.integers(9)))
    booleans = sum(column.choices == 2 for column in schema.features)
    ways: list[FeatureOptions] = [
        replace(usual, pairs=("none",)),
        replace(usual, marginals=0),
        replace(usual, moments=0),
        FourierOptions(frequencies=3),
    ]
    if count > 1:
        ways += [replace(usual, pairs=("all",)), replace(usual, pairs=(",".join(names[:2]),))]
    if booleans > 2:
        ways += [replace(usual, pairs=("triples",))]
    places = [column.name for column in schema.features if column.kind.numeric]
    if len(places) > 1 and random.integers(2):
        usual = replace(usual, target=places[0])
    undecided = numbers or random.integers(2)
    return schema, usual if undecided else ways[random.integers(len(ways))]


def any_images(random: Random) -> tuple[Schema, FeatureOptions]:
    """Of one class or several, grey or in colour."""
    classes, channels = numbered(int(random.integers(1, 4))), int(random.choice([1, 3]))
    schema = ImageSchema(8, classes, Origin.DECLARED, Origin.DECLARED, channels=channels)
    usual = TangentOptions(width=3, activation="softsign" if random.integers(4) == 0 else None)
    ways = (
        usual,
        usual,
        replace(usual, pixels=0.9),
        replace(usual, pixels=0.0, front="pixels"),
        PixelOptions(),
        FourierOptions(frequencies=3),
    )
    return schema, ways[random.integers(len(ways))]


def any_parameters(random: Random, adjacency: Adjacency) -> PrivacyParameters:
    return PrivacyParameters(
        float(random.choice([0.02, 1.0, 1.0, 30.0])),
        1e-7,
        adjacency,
        ClassCounts.UNIFORM if random.integers(4) == 0 else ClassCounts.NOISY,
        float(random.choice([0.01, 0.25, 1.0])),
    )


@dataclass(frozen=True)
class Records:
    """Any records, their features, and how many of each are in every data set."""

    schema: Schema
    feature_map: FeatureMap
    values: NDArray[np.uint8]
    features: Integers
    counts: Integers

    @classmethod
    def draw(
        cls, random: Random, schema: Schema, feature_map: FeatureMap, scale: NoiseScale
    ) -> Records:
        """So many that releases with such noise choose parts of every kind."""
        values = random.integers(0, 256, (5, schema.record_size)).astype(np.uint8)
        values[2:4] = random.choice([0, 255], (2, schema.record_size), p=[0.8, 0.2])
        values[0], values[1] = 0, 255
        features = []
        for value in values:
            sums = ClassSums(feature_map, 1, GRID)
            sums.add(value[None], np.zeros(1, dtype=np.int64))
            features.append(sums.sums[:, 0])
        blur = random.choice([0.0005, 0.003, 0.0065, 0.05]) * len(schema.classes) ** 0.5
        total = min(scale.sigma * GRID.unit * len(schema.classes) / blur, 500_000)
        shares = random.dirichlet(np.ones(len(values) * len(schema.classes)))
        counts = 2 + np.rint(total * shares).reshape(len(values), -1)
        return cls(schema, feature_map, values, np.stack(features), counts.astype(np.int64))

    def embedding(self, further: Sequence[tuple[int, int]] = ()) -> Embedding:
        """Of all of them, and of some more, by their numbers and classes."""
        counts = self.counts.copy()
        for record, label in further:
            counts[record, label] += 1
        sums = self.features.T @ counts
        return Embedding(sums, counts.sum(axis=0), self.schema, self.feature_map, GRID)

    def strangers(self, adjacency: Adjacency) -> Records:
        """As many of other records, or, if their number is not public, fewer."""
        counts = self.counts[::-1, ::-1]
        return replace(self, counts=counts // 2 if adjacency is Adjacency.ADD_REMOVE else counts)


def squared_distance(one: Seen, other: Seen) -> Fraction:
    """Between what got its noise, each number over the noise on it."""
    total = Fraction(0)
    for (first, sigmas), (second, same) in zip(one.inputs, other.inputs, strict=True):
        assert np.array_equal(sigmas, same)
        change = first - second
        squares: dict[int, int] = {}
        for value, sigma in zip(
            change[change != 0].tolist(), sigmas[change != 0].tolist(), strict=True
        ):
            squares[sigma] = squares.get(sigma, 0) + value**2
        for sigma, square in squares.items():
            total += square / (Fraction(sigma) ** 2 - Fraction(SMOOTHING) ** 2)
    return total


def require_the_same(one: Release, other: Release) -> None:
    assert one.feature_map.spec() == other.feature_map.spec()
    assert np.array_equal(one.embedding, other.embedding)
    assert np.array_equal(one.class_weights, other.class_weights)
    assert one.guarantee == other.guarantee
    assert one.schema == other.schema
    assert one.statement == other.statement


def require_the_features_of_its_map(released: ReleaseLayout, records: Records) -> None:
    """Of each record, at the places that the release's own map names, with all of its norm."""
    sigma, factors = released.scale.sigma, released.scale.factors
    factors = np.ones(released.dimension) if factors is None else factors
    assert (released.noise() * factors >= sigma * (1 - 1e-12)).all()
    assert np.allclose(released.noise() * factors, sigma, rtol=1e-6)
    parts = parts_of(released.feature_map)
    features = in_cells_of(released, records)
    for value, feature in zip(records.values, features, strict=True):
        made = released.sums(feature[:, None])[:, 0] * factors / GRID.units_per_one
        assert 0.999 < made @ made <= 1
        if parts.marginals is not None:
            expected = np.zeros(parts.marginals.dimension)
            (hits,) = parts.marginals.hits(torch.from_numpy(value[None])).numpy()
            expected[hits] = parts.weight * parts.marginals.entries
            assert np.allclose(made[parts.marginal_place], expected, rtol=1e-5, atol=0)


def in_cells_of(released: ReleaseLayout, records: Records) -> Integers:
    """The records' features, with cells added up as far as a release has fewer."""
    drawn, left = records.feature_map, parts_of(released.feature_map).marginals
    if not is_undecided(drawn) or left is None:
        return records.features
    many = {column.start for column in drawn.marginals.by_level}
    cells = {column.cells for column in left.columns if column.start in many} - {CELLS}
    if not cells:
        return records.features
    return added_up(records.features.T, drawn, of_few_cells(drawn)).T


def kind_of(released: ReleaseLayout, drawn: FeatureMap) -> str:
    """What is released of a map that leaves something open, in words."""
    if isinstance(drawn, JointImageFeatures) and drawn.weight is None:
        return "pixels" if isinstance(released.feature_map, PixelFeatures) else "network"
    marginals = parts_of(drawn).marginals
    if marginals is None or not marginals.undecided:
        return "all"
    left = parts_of(released.feature_map).marginals
    assert left is not None
    if not left.groups:
        return "no pairs"
    if not left.coarse:
        return "pairs"
    if not left.coarse[0].folded:
        return "coarse pairs"
    known = min(side.known for group in left.coarse for side in group.sides)
    return f"folded pairs with {known} parts"


@pytest.mark.parametrize(
    ("drawn", "seeds", "kinds"),
    [
        (any_table, (*range(16), 50, 53), TABLES),
        (any_images, range(11), {"all", "pixels", "network"}),
    ],
)
def test_neighbours_differ_by_what_the_noise_hides_and_in_nothing_else(
    drawn: Callable[[Random], tuple[Schema, FeatureOptions]],
    seeds: Sequence[int],
    kinds: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In whole numbers and fractions; and what is released uses all that the promise allows."""
    for module in (layout, measurement):
        monkeypatch.setattr(module, "CHOSEN_PAIRS", 2)
    monkeypatch.setattr(accountant, "log_delta", cache(log_delta))  # autodp is slow to import
    seen = set()
    for seed in seeds:
        random = np.random.default_rng(seed)
        schema, options = drawn(random)
        adjacency = (Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE)[seed % 2]
        rows = 1
        if isinstance(schema, TableSchema) and seed % 4 == 1:
            rows, schema = 2, schema.with_privacy_unit(PrivacyUnit("who", rows=2))
        parameters = any_parameters(random, adjacency)
        feature_map = options.draw(schema)
        scale = noise_on(feature_map, GRID, 1, parameters, schema.privacy_unit)
        records = Records.draw(random, schema, feature_map, scale)
        with monkeypatch.context() as patch:
            mechanism = Mechanism(random, patch)
            labels = random.integers(0, len(schema.classes), len(records.values))
            neighbours = [[(number, label)] * rows for number, label in enumerate(labels)]
            if adjacency is Adjacency.ADD_REMOVE:
                neighbours = [[], *neighbours]
            found = [mechanism.release(records.embedding(each), parameters) for each in neighbours]
            far = records.strangers(adjacency).embedding(neighbours[0])
            for other in (*found[1:], mechanism.release(far, parameters)):
                require_the_same(found[0].release, other.release)
        multiplier = found[0].release.guarantee.noise_multiplier
        assert log_delta(multiplier, parameters.epsilon) <= math.log(1e-7)
        allowed = 1 / Fraction(multiplier) ** 2
        if adjacency is Adjacency.ADD_REMOVE:
            apart = [squared_distance(found[0], other) for other in found[1:]]
            assert max(apart) > 0.999 * allowed
        else:
            apart = list(itertools.starmap(squared_distance, itertools.combinations(found, 2)))
        assert max(apart) <= allowed
        require_the_features_of_its_map(found[0].layout, records)
        seen.add(kind_of(found[0].layout, feature_map))
    assert seen >= kinds
