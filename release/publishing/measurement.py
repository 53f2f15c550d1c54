"""The mechanism on all that a release is made of: at once, or pairs of columns after the rest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...common.features.joint import parts_of
from ...common.schema.table import TableSchema
from ...embed.sums.file import Embedding
from ..mechanism.gaussian import NoiseScale, NoisySums, add_noise
from .merging import merged_cells
from .selection import select_pairs
from .weighing import CHOSEN, Weighed, is_undecided, with_pairs


def measure(
    embedding: Embedding, released: Weighed, uniform: NoiseScale, *, private: bool
) -> tuple[Weighed, NoisySums]:
    """What is released of an embedding, with its noise.

    Guarantee:
        With noise that is calibrated for the embedding's map it satisfies what that promises. Where
        an embedding leaves open which pairs of columns are measured, this follows from what has its
        noise already, and so do the cells that numbers have in them; the noise on pairs is the same
        whatever is chosen.
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
    parts = parts_of(feature_map)
    of_pairs = parts.group_place
    first = released.where(~_within(released, of_pairs))
    noisy = _noisy(embedding, first, embedding.counts, private=private)
    products = _within(first, parts.moment_place)
    noise = float(first.noise()[products].max()) if private else 0.0
    chosen = select_pairs(parts, schema, noisy.sums[products].astype(float), noise, CHOSEN)
    shares = noisy.sums[_within(first, parts.marginal_place)].sum(axis=1)
    whole = with_pairs(feature_map, uniform, chosen, merged_cells(feature_map.marginals, shares))
    later = _within(whole, of_pairs)
    sums = np.empty((whole.dimension, len(schema.classes)), dtype=np.int64)
    sums[~later] = noisy.sums
    sums[later] = _noisy(embedding, whole.where(later), None, private=private).sums
    return whole, NoisySums(sums, noisy.counts)


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
