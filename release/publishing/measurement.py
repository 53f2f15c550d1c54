"""Apply the mechanism to everything in a release: at once, or pairs of columns after the rest.

Counts come first: if the number of records is not public, they estimate it, and so the noise on
everything else. Then come columns, products of columns and main features; then coarse pairs of all
numbers, whose cells follow from the released columns; then the pairs chosen by all of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...common.adjacency import Adjacency
from ...common.display.representations import RedactedRepr
from ...common.features.base import FeatureMap
from ...common.features.joint import parts_of
from ...common.features.marginals.map import GroupChoice
from ...common.schema import Schema
from ...common.schema.table import TableSchema
from ...embed.sums.file import Embedding
from ..mechanism.gaussian import NoiseScale, NoisySums, add_noise, noisy_counts
from .fewer_cells import with_fewer_cells
from .layout import (
    CHOSEN_PAIRS,
    ReleaseLayout,
    coarse_pairs,
    layout_of_embedding,
    with_pairs,
)
from .lengths import PairLengths, is_undecided
from .merging import first_parts, merged_cells, possible_sums
from .selection import Dependence, dependences, select_pairs


@dataclass(frozen=True, eq=False)
class Measured:
    """What leaves the mechanism.

    Attributes:
        layout: what a release is made of.
        noisy: its sums and counts.
        records: number of records: the public one, or the sum of the noisy counts.
    """

    layout: ReleaseLayout
    noisy: NoisySums
    records: int


def measure(
    embedding: Embedding, uniform: NoiseScale, adjacency: Adjacency, *, private: bool
) -> Measured:
    """Measure everything that is released of an embedding, with noise.

    Guarantee:
        With noise calibrated for the embedding's map, the result satisfies what the calibration
        promises. Which parts are released follows from the number of records if the adjacency makes
        it public, or else from the noisy counts. If an embedding leaves the choice of pairs of
        columns open, this choice and the cells of numbers in them follow from what already has its
        noise; the noise on pairs does not depend on the choice, nor on how cells are merged.
        (docs/privacy/proofs.md, statements 22 and 23.)

    Args:
        embedding: the exact sums.
        uniform: the noise on the embedding's sums, whatever its parts weigh.
        adjacency: of the guarantee.
        private: False leaves the noise out.

    Raises:
        BudgetError: sums and noise do not fit 64 bits.
    """
    counts = _counts(embedding, uniform, private=private)
    records = known_records(embedding, counts, uniform, adjacency)
    embedding = with_fewer_cells(embedding, uniform, records)
    layout = layout_of_embedding(embedding, uniform, records)
    if is_undecided(embedding.feature_map) and parts_of(layout.feature_map).groups:
        layout, sums = _with_pairs(embedding, layout, uniform, private=private)
    else:
        sums = _noisy(embedding, layout, private=private)
    return Measured(layout, NoisySums(sums, counts), records)


def known_records(
    embedding: Embedding,
    counts: NDArray[np.int64] | None,
    scale: NoiseScale,
    adjacency: Adjacency,
) -> int:
    """The number of records, as far as it may be known.

    Guarantee:
        The exact number under replace-one, where it is public; otherwise a function of the noisy
        counts. (docs/privacy/proofs.md, statements 10 and 22.)

    Args:
        embedding: the exact sums.
        counts: noisy counts of its classes, times the count weight, int64 (c,); None if they are
            not released, which is possible under replace-one only.
        scale: of the noise.
        adjacency: of the guarantee.
    """
    if adjacency is Adjacency.REPLACE_ONE:
        return embedding.records
    assert counts is not None
    return max(1, round(float((counts / scale.count_weight).sum())))


def _with_pairs(
    embedding: Embedding, layout: ReleaseLayout, uniform: NoiseScale, *, private: bool
) -> tuple[ReleaseLayout, NDArray[np.int64]]:
    """Choose pairs by what gets its noise before them.

    Args:
        embedding: the exact sums.
        layout: what a release is made of, with placeholders for the chosen pairs.
        uniform: the noise on the embedding's sums, whatever its parts weigh.
        private: False leaves the noise out.

    Returns:
        What the release is made of, and its noisy sums.
    """
    feature_map, pairs = embedding.feature_map, layout.pairs
    assert is_undecided(feature_map)
    assert layout.weighed is not None
    assert pairs is not None
    place = _places(layout)
    rest = layout.where(~(place.coarse | place.fine))
    noisy = _noisy(embedding, rest, private=private)
    of_columns = noisy[rest.within(parts_of(feature_map).marginal_place)].sum(axis=1)
    shares = possible_sums(feature_map.marginals, of_columns)
    merging = merged_cells(feature_map.marginals, shares)
    lay_out = partial(with_pairs, feature_map, layout.weighed, uniform, by_level=layout.by_level)
    coarse = None
    if pairs.parts:
        count = len(parts_of(layout.feature_map).groups)
        any_pairs = partial(lay_out, GroupChoice(range(count), pairs.fine, merging))
        coarse = _coarse_pairs(embedding, pairs, shares, any_pairs, private=private)
    together = {} if coarse is None else coarse.dependences
    chosen: Sequence[int] = feature_map.marginals.named or _chosen_pairs(
        feature_map, embedding.schema, rest, noisy, together, private=private
    )
    fine = GroupChoice(chosen, pairs.fine, merging)
    whole = lay_out(fine, None if coarse is None else coarse.choice)
    place = _places(whole)
    sums = np.empty((whole.dimension, noisy.shape[1]), dtype=np.int64)
    sums[~(place.coarse | place.fine)] = noisy
    if coarse is not None:
        sums[place.coarse] = coarse.sums
    sums[place.fine] = _noisy(embedding, whole.where(place.fine), private=private)
    return whole, sums


@dataclass(frozen=True, eq=False, repr=False)
class _CoarsePairs(RedactedRepr):
    """All pairs of numbers in few cells, with their noise.

    Attributes:
        choice: the pairs and their cells.
        sums: of the cells, int64 (cells, c).
        dependences: how far each pair is from independence, by its number.
    """

    choice: GroupChoice
    sums: NDArray[np.int64]
    dependences: Mapping[int, Dependence]


def _coarse_pairs(
    embedding: Embedding,
    pairs: PairLengths,
    shares: NDArray[np.int64],
    lay_out: Callable[[GroupChoice], ReleaseLayout],
    *,
    private: bool,
) -> _CoarsePairs:
    """Measure the coarse pairs, in cells that follow from the noisy columns.

    Args:
        embedding: the exact sums.
        pairs: how pairs of columns are measured.
        shares: possible sums of the columns' cells, from those that have their noise.
        lay_out: what a release with coarse pairs is made of, whichever pairs it chooses.
        private: False leaves the noise out.
    """
    assert is_undecided(embedding.feature_map)
    marginals = embedding.feature_map.marginals
    merging = merged_cells(marginals, shares, pairs.parts)
    choice = coarse_pairs(pairs, marginals, merging)
    layout = lay_out(choice)
    layout = layout.where(_places(layout).coarse)
    sums = _noisy(embedding, layout, private=private)
    noise = float(layout.noise().max()) if private else 0.0
    left = parts_of(layout.feature_map).marginals
    assert left is not None
    seen = dependences(left.coarse, sums, noise, first_parts(marginals, shares, merging))
    return _CoarsePairs(choice, sums, dict(zip(choice.numbers, seen, strict=True)))


def _chosen_pairs(
    feature_map: FeatureMap,
    schema: Schema,
    rest: ReleaseLayout,
    noisy: NDArray[np.int64],
    together: Mapping[int, Dependence],
    *,
    private: bool,
) -> list[int]:
    """Choose pairs by products of columns and by coarse pairs, which have their noise.

    Args:
        feature_map: of the embedding.
        schema: of a table.
        rest: what a release is made of besides pairs.
        noisy: the noisy sums of that, int64 (d, c).
        together: see `_CoarsePairs.dependences`.
        private: whether the sums have noise.
    """
    assert isinstance(schema, TableSchema)
    parts = parts_of(feature_map)
    products = rest.within(parts.moment_place)
    noise = float(rest.noise()[products].max()) if private else 0.0
    return select_pairs(parts, schema, noisy[products].astype(float), noise, CHOSEN_PAIRS, together)


class _Places(NamedTuple):
    """Which rows of a release are of pairs of columns, bool (d,) each."""

    coarse: NDArray[np.bool_]
    fine: NDArray[np.bool_]


def _places(layout: ReleaseLayout) -> _Places:
    parts, every = parts_of(layout.feature_map), np.arange(layout.dimension)
    places = (parts.coarse_place, parts.group_place)
    return _Places(*((every >= place.start) & (every < place.stop) for place in places))


def _noisy(embedding: Embedding, layout: ReleaseLayout, *, private: bool) -> NDArray[np.int64]:
    sums = layout.sums(embedding.sums)
    return add_noise(sums, None, layout.scale).sums if private else sums


def _counts(embedding: Embedding, scale: NoiseScale, *, private: bool) -> NDArray[np.int64] | None:
    if private:
        return noisy_counts(embedding.counts, scale)
    return embedding.counts * scale.count_weight if scale.count_weight else None
