"""A release says which parts it is of, by what is public, and its noise is enough for that."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import BudgetError, FormatError
from dpntk.common.features.base import FeatureMap
from dpntk.common.features.joint import JointFeatures
from dpntk.common.features.joint_image import JointImageFeatures
from dpntk.common.features.marginals.cells import MarginalColumn, MarginalGroup
from dpntk.common.features.marginals.map import MarginalFeatures
from dpntk.common.features.pixels import PixelFeatures
from dpntk.common.schema.classes import numbered
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.common.schema.table import TableSchema
from dpntk.embed import TangentOptions
from dpntk.embed.exact.grid import DEFAULT_CAPACITY, Grid
from dpntk.embed.sums.accumulate import ClassSums
from dpntk.embed.sums.file import Embedding
from dpntk.release.file.validation import require_consistent
from dpntk.release.mechanism.gaussian import SMOOTHING, NoiseScale
from dpntk.release.publishing import measurement
from dpntk.release.publishing.layout import LARGEST_NETWORK_BLUR, layout_of, layout_of_embedding
from dpntk.release.publishing.lengths import (
    LARGEST_PAIRS_BLUR,
    USUAL_LENGTH_BLUR,
    PairLengths,
    decisive_blurs,
    length_of_levels,
    lengths_of_pairs,
)
from dpntk.release.publishing.parameters import PrivacyParameters, noise_for
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.conftest import draw_records
from tests.helpers.neighbours import Integers

GRID = Grid.for_capacity(255, DEFAULT_CAPACITY)
SCHEMA = ImageSchema(8, numbered(3), Origin.DECLARED, Origin.DECLARED)
OPEN = TangentOptions(width=13).draw(SCHEMA)
EXACT = PrivacyParameters(math.inf, 1e-5, not_private=True)


def embedding(records: int = 200, weight: float | None = None) -> Embedding:
    assert isinstance(OPEN, JointImageFeatures)
    return embedding_by(replace(OPEN, weight=weight), records)


def embedding_by(feature_map: FeatureMap, records: int = 200) -> Embedding:
    sums = ClassSums(feature_map, 3, GRID)
    images, labels = draw_records(records)
    for first in range(0, records, sums.chunk_size):
        some = slice(first, first + sums.chunk_size)
        sums.add(images[some], labels[some])
    return Embedding(sums.sums, sums.counts, SCHEMA, feature_map, GRID)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_the_noise_on_each_part_hides_what_any_record_adds_to_it(epsilon: float) -> None:
    """In whole numbers and fractions: distances of neighbours over the noise on each coordinate."""
    made, adjacency = embedding(), Adjacency.REPLACE_ONE
    uniform = noise_for(made, PrivacyParameters(epsilon, 1e-5, adjacency))
    found = layout_of_embedding(made, uniform, made.records)
    scale = found.scale
    assert isinstance(found.feature_map, PixelFeatures) == (epsilon < 100)
    sigmas = [int(sigma) for sigma in found.noise()]
    continuous = [Fraction(sigma**2) - Fraction(SMOOTHING) ** 2 for sigma in sigmas]
    most = 1 / Fraction(scale.noise_multiplier) ** 2
    records, _ = draw_records(40)
    records[:2] = [[0] * 64, [255] * 64]
    labels = np.zeros(40, dtype=np.int64)
    for one, label in zip(records, labels, strict=True):
        for other, another in ((records[0], 1), (records[1], 2), (records[5], 0)):
            sums = [ClassSums(OPEN, 3, GRID) for _ in range(2)]
            sums[0].add(one[None], np.array([label]))
            sums[1].add(other[None], np.array([another]))
            changed = (sums[0].sums - sums[1].sums)[found.rows].astype(object)
            square = sum(
                Fraction(int(value) ** 2) / variance
                for row, variance in zip(changed, continuous, strict=True)
                for value in row
            )
            counts = [int(c) * scale.count_weight for c in sums[0].counts - sums[1].counts]
            square += Fraction(sum(c * c for c in counts)) / Fraction(scale.sigma**2 - 9)
            assert square <= most


@pytest.mark.parametrize("adjacency", Adjacency)
def test_which_part_follows_from_the_noise_and_from_nothing_secret(
    adjacency: Adjacency, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under add-remove two numbers of records with the same noisy counts give the same part."""
    few, more = embedding(150), embedding(2500)

    def of_pixels(made: Embedding, epsilon: float) -> bool:
        released = unrecorded_release(made, PrivacyParameters(epsilon, 1e-5, adjacency))
        return isinstance(released.feature_map, PixelFeatures)

    cases = ((few, 1.0), (more, 1.0), (more, 1e-2), (more, 1e5))
    assert [of_pixels(*case) for case in cases] == [True, False, True, False]
    for counted, pixels in ((few, True), (more, False)):
        counts = counted.counts.copy()

        def held(_: Integers, scale: NoiseScale, counts: Integers = counts) -> Integers:
            return counts * scale.count_weight

        monkeypatch.setattr(measurement, "noisy_counts", held)
        secret = adjacency is Adjacency.ADD_REMOVE
        assert of_pixels(few, 1.0) == (pixels if secret else True)
        assert of_pixels(more, 1.0) == (pixels if secret else False)


def test_a_release_is_of_one_part_alone() -> None:
    assert isinstance(OPEN, JointImageFeatures)
    border = OPEN.main.dimension
    scale = NoiseScale(1.0, 1, 1000, 0)
    for blur, part, rows in (
        (0.0, OPEN.main, range(border)),
        (LARGEST_NETWORK_BLUR, OPEN.main, range(border)),
        (1.01 * LARGEST_NETWORK_BLUR, OPEN.pixels, range(border, OPEN.dimension)),
    ):
        found = layout_of(OPEN, scale, blur, 2)
        assert found.feature_map.spec() == part.spec()
        assert found.rows.tolist() == list(rows)
        # Each part of the embedding is as long as the other, and is doubled in its square.
        factors = found.scale.factors
        assert factors is not None
        assert factors == pytest.approx(math.sqrt(2), rel=1e-12)


def test_a_network_whose_features_may_be_opposite_stays() -> None:
    """Its noise is for a distance of 2, and a reader expects that of a release's own map."""
    opposite = TangentOptions(width=13, activation="softsign").draw(SCHEMA)
    assert isinstance(opposite, JointImageFeatures)
    released = unrecorded_release(embedding_by(opposite, 150), PrivacyParameters(1.0, 1e-5))
    assert released.feature_map.spec() == opposite.main.spec()
    require_consistent(released.guarantee, released.feature_map, released.schema)


def test_a_weight_that_was_given_beforehand_stays() -> None:
    given = embedding(150, 0.9).feature_map
    assert layout_of(given, NoiseScale(1.0, 1, 1000, 0), 1.0, 2).feature_map is given


def test_without_much_noise_it_is_what_an_embedding_without_pixels_gives() -> None:
    assert isinstance(OPEN, JointImageFeatures)
    made = unrecorded_release(embedding(), EXACT)
    assert made.feature_map.spec() == OPEN.main.spec()
    alone = unrecorded_release(embedding_by(OPEN.main), EXACT)
    # Each is cut to whole numbers of its own.
    assert np.allclose(made.embedding, alone.embedding, rtol=1e-4, atol=1e-6)
    assert np.array_equal(made.class_weights, alone.class_weights)


@pytest.mark.parametrize("epsilon", [0.5, 1e4])
def test_a_part_has_the_noise_that_its_release_says(epsilon: float) -> None:
    """Chances are below 1e-9 that it is off by six standard errors."""
    made = embedding(records=60)
    assert isinstance(OPEN, JointImageFeatures)
    released = unrecorded_release(made, PrivacyParameters(epsilon, 1e-5))
    part = OPEN.pixels if epsilon < 1 else OPEN.main
    assert released.feature_map.spec() == part.spec()
    exact = unrecorded_release(embedding_by(part, 60), EXACT)
    noise = (released.embedding - exact.embedding) / released.noise_per_coordinate
    spread = np.mean(noise.astype(float) ** 2)
    assert spread == pytest.approx(1, abs=6.2 * (2 / noise.size) ** 0.5)


def test_a_reader_wants_the_weight() -> None:
    made = unrecorded_release(embedding(), PrivacyParameters(1.0, 1e-5))
    require_consistent(made.guarantee, made.feature_map, made.schema)
    with pytest.raises(FormatError, match="the weight of the pixels has not been chosen"):
        require_consistent(made.guarantee, OPEN, made.schema)


def test_noise_that_fits_no_integers_is_refused_before_anything_is_spent() -> None:
    scale = NoiseScale(1.0, 1, 2**63, 0)
    with pytest.raises(BudgetError, match="a larger capacity"):
        layout_of(OPEN, scale, 0.05, 2)


def test_numbers_are_cut_into_as_many_parts_as_noise_leaves_to_be_seen() -> None:
    """Each of their cells has ten times the noise on it, at least, and no more parts would.

    Few parts need less: what they say adds up. The part is as long as makes the noise on a cell
    four thousandths, or with classes a hundredth, if it need not be longer than .45 for that.
    """
    columns = tuple(MarginalColumn(n, 1, 64, -1) for n in range(6))
    words = MarginalColumn(6, 3, 0, -1)
    pairs = [MarginalGroup((columns[a], columns[b])) for a in range(6) for b in range(a)]
    words_too = [MarginalGroup((words, columns[0]))]
    marginals = MarginalFeatures((*columns, words), 9, (*pairs, *words_too), undecided=True)
    assert marginals.pairs_of_numbers == list(range(15))
    seen, lengths = set(), set()
    for blur in np.geomspace(1e-5, 0.006, 100):
        each = lengths_of_pairs(marginals, blur, 1)
        assert each is not None
        seen.add(each.parts)
        noise = blur * 15**0.5 / each.coarse
        assert each.fine == (0.3 if blur <= USUAL_LENGTH_BLUR else 0.1)
        assert each.coarse == pytest.approx(min(max(0.15, 250 * blur * 15**0.5), 0.45))
        with_classes = lengths_of_pairs(marginals, blur * 2**0.5, 2)
        assert with_classes is not None
        of_classes = pytest.approx(min(max(0.15, 100 * blur * 15**0.5), 0.45))
        assert with_classes.coarse == of_classes
        lengths.add(each.coarse)
        if each.parts == 3:
            assert 4 * noise <= 1 / 9
            assert 10 * noise > 1 / 16
        elif each.parts > 2:
            assert 10 * noise <= each.parts**-2
            assert each.parts == 8 or (each.parts + 1) ** -2 < 10 * noise
        else:
            assert 4 * noise <= 1.000001 / 4
            assert 4 * noise > 1 / 9
    assert seen == {2, 3, 4, 5, 6, 7, 8}
    assert {0.15, 0.45} < lengths
    few = replace(marginals, groups=tuple(pairs[:3]))
    assert lengths_of_pairs(few, 0.99 * LARGEST_PAIRS_BLUR, 1) == PairLengths(0.1, 0.45, 2)
    assert lengths_of_pairs(few, 1.01 * LARGEST_PAIRS_BLUR, 1) is None
    assert lengths_of_pairs(marginals, 0.0, 1) == PairLengths(0.3, 0.15, 8)
    without = replace(marginals, groups=tuple(words_too))
    assert lengths_of_pairs(without, 1e-4, 1) == PairLengths(0.3, 0.15, 0)
    assert lengths_of_pairs(without, 1.01 * USUAL_LENGTH_BLUR, 1) is None


def test_many_numbers_of_few_records_are_halved_in_a_longer_part() -> None:
    """Until halves would have less than three times their noise in a part of length .6.

    A longer part makes it four times the noise.
    """
    columns = tuple(MarginalColumn(n, 1, 64, -1) for n in range(20))
    pairs = [MarginalGroup((columns[a], columns[b])) for a in range(20) for b in range(a)]
    marginals = MarginalFeatures(columns, 20, tuple(pairs), undecided=True)
    most = 0.6 / 12 / 190**0.5
    assert USUAL_LENGTH_BLUR < most < LARGEST_PAIRS_BLUR
    assert lengths_of_pairs(marginals, 0.99 * most, 1) == PairLengths(0.1, 0.6, 2)
    assert lengths_of_pairs(marginals, 1.01 * most, 1) is None
    less = lengths_of_pairs(marginals, USUAL_LENGTH_BLUR / 2, 1)
    assert less is not None
    assert less.coarse == 0.45
    more = lengths_of_pairs(marginals, 0.0025, 1)
    assert more is not None
    assert more.coarse == pytest.approx(16 * 0.0025 * 190**0.5)
    assert less.fine**2 + less.coarse**2 < 1


@pytest.mark.parametrize("classes", [1, 4])
@pytest.mark.parametrize("numbers", [2, 4, 9, 20])
@pytest.mark.parametrize("by_level", [0, 1, 2])
def test_at_no_blur_is_a_part_longer_or_shorter_than_at_decisive_ones(
    numbers: int, by_level: int, classes: int
) -> None:
    columns = [Column.integer(f"n{n}", 0, 63) for n in range(numbers - by_level)]
    columns += [Column.continuous(f"x{n}", 0.0, 1.0) for n in range(by_level)]
    feature_map = TangentOptions(width="3").draw(TableSchema(tuple(columns), None))
    assert isinstance(feature_map, JointFeatures)

    def lengths(blur: float) -> tuple[float, float, float]:
        found = lengths_of_pairs(feature_map.marginals, blur, classes)
        levels = length_of_levels(feature_map.marginals, blur)
        return (found.fine, found.coarse, levels or 0.0) if found else (0.0, 0.0, 0.0)

    decisive = np.array([lengths(blur) for blur in decisive_blurs(feature_map, classes)])
    for each in np.array(list(map(lengths, np.geomspace(1e-6, 0.1, 500)))):
        assert (each**2).sum() <= (decisive**2).sum(axis=1).max()
        assert (each <= decisive.max(axis=0)).all()
        assert each[0] in decisive[:, 0]


def test_classes_tell_together_how_numbers_go_together() -> None:
    """So eight of them are cut as two are that have half of the noise."""
    columns = tuple(MarginalColumn(n, 1, 64, -1) for n in range(6))
    pairs = [MarginalGroup((columns[a], columns[b])) for a in range(6) for b in range(a)]
    marginals = MarginalFeatures(columns, 9, tuple(pairs), undecided=True)
    for blur in np.geomspace(1e-5, USUAL_LENGTH_BLUR, 20):
        assert lengths_of_pairs(marginals, blur, 8) == lengths_of_pairs(marginals, blur / 2, 2)
    of_four = lengths_of_pairs(marginals, 0.012, 4)
    assert of_four is not None
    assert (of_four.fine, of_four.parts) == (0.1, 2)
    assert of_four.coarse == 0.45
    assert lengths_of_pairs(marginals, 0.012, 1) is None
