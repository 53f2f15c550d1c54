"""Apply the mechanism to everything in a release: at once, or pairs of columns after the rest.

Counts come first: if the number of records is not public, they estimate it, and so the noise on
everything else. Then come columns, products of columns and main features; then coarse pairs of all
numbers, whose cells follow from the released columns; then the pairs chosen by all of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...common.adjacency import Adjacency
from ...common.features.joint import parts_of
from ...common.features.marginals.map import GroupChoice
from ...common.schema.table import TableSchema
from ...embed.sums.file import Embedding
from ..mechanism.gaussian import NoiseScale, NoisySums, add_noise, noisy_counts
from .layout import (
    CHOSEN_PAIRS,
    ReleaseLayout,
    coarse_pairs,
    layout_of_embedding,
    with_pairs,
)
from .lengths import is_undecided
from .merging import first_parts, merged_cells, possible_sums
from .selection import dependences, select_pairs


@dataclass(frozen=True, eq=False)
class Measured:
    """What leaves the mechanism.

    Attributes:
        released: what a release is made of.
        noisy: its sums and counts.
        records: number of records: the public one, or the sum of the noisy counts.
    """

    released: ReleaseLayout
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
    released = layout_of_embedding(embedding, uniform, records)
    if is_undecided(embedding.feature_map) and parts_of(released.feature_map).groups:
        released, sums = _with_pairs(embedding, released, uniform, private=private)
    else:
        sums = _noisy(embedding, released, private=private)
    return Measured(released, NoisySums(sums, counts), records)


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
    embedding: Embedding, released: ReleaseLayout, uniform: NoiseScale, *, private: bool
) -> tuple[ReleaseLayout, NDArray[np.int64]]:
    """Choose pairs; return what the release is made of, and its noisy sums.

    Args:
        embedding: the exact sums.
        released: what a release is made of, with placeholders for the chosen pairs.
        uniform: the noise on the embedding's sums, whatever its parts weigh.
        private: False leaves the noise out.
    """
    feature_map, schema = embedding.feature_map, embedding.schema
    assert is_undecided(feature_map)
    assert isinstance(schema, TableSchema)
    marginals, parts, place = feature_map.marginals, parts_of(feature_map), _places(released)
    first = released.where(~(place.coarse | place.fine))
    noisy = _noisy(embedding, first, private=private)
    products = first.within(parts.moment_place)
    noise = float(first.noise()[products].max()) if private else 0.0
    of_columns = noisy[first.within(parts.marginal_place)].sum(axis=1)
    shares = possible_sums(marginals, of_columns)
    weighed, pairs, merging = released.weighed, released.pairs, merged_cells(marginals, shares)
    assert weighed is not None
    assert pairs is not None
    coarse, together = None, {}
    if pairs.parts:
        in_parts = merged_cells(marginals, shares, pairs.parts)
        coarse = coarse_pairs(pairs, marginals, in_parts)
        any_numbers = range(len(parts_of(released.feature_map).groups))
        any_pairs = GroupChoice(any_numbers, pairs.fine, merging)
        second = with_pairs(feature_map, weighed, uniform, any_pairs, coarse, released.by_level)
        second = second.where(_places(second).coarse)
        cells = _noisy(embedding, second, private=private)
        of_cells = float(second.noise().max()) if private else 0.0
        tables = weighed.choosing(any_pairs, coarse, released.by_level).marginals.coarse
        halves = first_parts(marginals, shares, in_parts)
        seen = dependences(tables, cells, of_cells, halves)
        together = dict(zip(coarse.numbers, seen, strict=True))
    chosen = select_pairs(
        parts, schema, noisy[products].astype(float), noise, CHOSEN_PAIRS, together
    )
    fine = GroupChoice(chosen, pairs.fine, merging)
    whole = with_pairs(feature_map, weighed, uniform, fine, coarse, released.by_level)
    place = _places(whole)
    sums = np.empty((whole.dimension, len(schema.classes)), dtype=np.int64)
    sums[~(place.coarse | place.fine)] = noisy
    if coarse is not None:
        sums[place.coarse] = cells
    sums[place.fine] = _noisy(embedding, whole.where(place.fine), private=private)
    return whole, sums


class _Places(NamedTuple):
    """Which rows of a release are of pairs of columns, bool (d,) each."""

    coarse: NDArray[np.bool_]
    fine: NDArray[np.bool_]


def _places(released: ReleaseLayout) -> _Places:
    parts, every = parts_of(released.feature_map), np.arange(released.dimension)
    places = (parts.coarse_place, parts.group_place)
    return _Places(*((every >= place.start) & (every < place.stop) for place in places))


def _noisy(embedding: Embedding, released: ReleaseLayout, *, private: bool) -> NDArray[np.int64]:
    sums = released.sums(embedding.sums)
    return add_noise(sums, None, released.scale).sums if private else sums


def _counts(embedding: Embedding, scale: NoiseScale, *, private: bool) -> NDArray[np.int64] | None:
    if private:
        return noisy_counts(embedding.counts, scale)
    return embedding.counts * scale.count_weight if scale.count_weight else None
