"""The mechanism on all that a release is made of: at once, or pairs of columns after the rest.

First columns, products of columns and main features; then all pairs of numbers in few cells, whose
cells follow from what is released of columns; then the pairs that what there is so far points to.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...common.features.joint import parts_of
from ...common.schema.table import TableSchema
from ...embed.sums.file import Embedding
from ..mechanism.gaussian import NoiseScale, NoisySums, add_noise
from .merging import merged_cells
from .selection import dependences, select_pairs
from .weighing import CHOSEN, Weighed, coarse_pairs, fine_pairs, is_undecided, with_pairs


def measure(
    embedding: Embedding, released: Weighed, uniform: NoiseScale, *, private: bool
) -> tuple[Weighed, NoisySums]:
    """What is released of an embedding, with its noise.

    Guarantee:
        With noise that is calibrated for the embedding's map it satisfies what that promises. Where
        an embedding leaves open which pairs of columns are measured, this follows from what has its
        noise already, and so do the cells that numbers have in them; the noise on pairs is the same
        whatever is chosen, and however cells are merged.
        (docs/privacy/proofs.md, statement 23.)

    Args:
        embedding: the exact sums.
        released: what a release is made of, if any pairs stand for the chosen ones.
        uniform: the noise on the embedding's sums, whatever its parts weigh.
        private: False leaves the noise away.

    Returns:
        What it is made of, and its sums and counts.

    Raises:
        BudgetError: sums and noise do not fit 64 bits.
    """
    feature_map, schema = embedding.feature_map, embedding.schema
    if not is_undecided(feature_map) or not parts_of(released.feature_map).groups:
        return released, _noisy(embedding, released, embedding.counts, private=private)
    assert isinstance(schema, TableSchema)
    marginals, parts, place = feature_map.marginals, parts_of(feature_map), _places(released)
    first = released.where(~(place.coarse | place.fine))
    noisy = _noisy(embedding, first, embedding.counts, private=private)
    products = _within(first, parts.moment_place)
    noise = float(first.noise()[products].max()) if private else 0.0
    shares = noisy.sums[_within(first, parts.marginal_place)].sum(axis=1)
    merging, coarse, together = merged_cells(marginals, shares), None, {}
    if released.parts:
        coarse = coarse_pairs(marginals, merged_cells(marginals, shares, released.parts))
        any_pairs = fine_pairs(range(len(parts_of(released.feature_map).groups)), merging)
        second = with_pairs(feature_map, uniform, any_pairs, coarse)
        second = second.where(_places(second).coarse)
        cells = _noisy(embedding, second, None, private=private).sums
        of_cells = float(second.noise().max()) if private else 0.0
        tables = feature_map.choosing(any_pairs, coarse).marginals.coarse
        together = dict(zip(coarse.numbers, dependences(tables, cells, of_cells), strict=True))
    chosen = select_pairs(
        parts, schema, noisy.sums[products].astype(float), noise, CHOSEN, together
    )
    whole = with_pairs(feature_map, uniform, fine_pairs(chosen, merging), coarse)
    place = _places(whole)
    sums = np.empty((whole.dimension, len(schema.classes)), dtype=np.int64)
    sums[~(place.coarse | place.fine)] = noisy.sums
    if coarse is not None:
        sums[place.coarse] = cells
    sums[place.fine] = _noisy(embedding, whole.where(place.fine), None, private=private).sums
    return whole, NoisySums(sums, noisy.counts)


class _Places(NamedTuple):
    """Which rows of a release are of pairs of columns, bool (d,) each."""

    coarse: NDArray[np.bool_]
    fine: NDArray[np.bool_]


def _places(released: Weighed) -> _Places:
    parts, every = parts_of(released.feature_map), np.arange(released.dimension)
    places = (parts.coarse_place, parts.group_place)
    return _Places(*((every >= place.start) & (every < place.stop) for place in places))


def _within(released: Weighed, place: slice) -> NDArray[np.bool_]:
    """Which rows of a release are from a place in the sums of its embedding."""
    rows = released.first_rows
    inside: NDArray[np.bool_] = (rows >= place.start) & (rows < place.stop)
    return inside


def _noisy(
    embedding: Embedding, released: Weighed, counts: NDArray[np.int64] | None, *, private: bool
) -> NoisySums:
    sums, scale = released.sums(embedding.sums), released.scale
    if private:
        return add_noise(sums, counts, scale)
    weight = scale.count_weight
    return NoisySums(sums, None if counts is None or not weight else counts * weight)
