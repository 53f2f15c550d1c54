"""Which cells a number has in a pair of columns: about as many records in each.

Between wide bounds, or where numbers are skewed, as money is, most records lie in a few of equally
spaced cells, and a pair says next to nothing of how they go together. What is released of each
column by itself says where records lie, so neighbouring cells are merged by that: into many for the
few pairs that a release chooses, and into few, which have less noise in all, for all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...common.features.marginals.cells import MarginalColumn
from ...common.features.marginals.map import MarginalFeatures
from ...common.numerics.simplex import to_simplex

MOST: Final = 16
"""A merged cell has at most one in so many records, unless it is one cell."""


def possible_sums(marginals: MarginalFeatures, noisy: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many records each cell has, as near to noisy sums as those of records can be.

    No cell has fewer than none, and each column's together have all records. If what noise leaves
    below 0 were set to 0 alone, what it leaves above would count: of a skewed number between wide
    bounds more than the records do, so that halves were cut where noise has its middle.

    Guarantee:
        A function of its arguments, of which `noisy` has its noise already.
        (docs/privacy/proofs.md, statement 23.)

    Args:
        marginals: of an embedding's map.
        noisy: see `merged_cells`.

    Returns:
        The same with cells of columns that are possible, in the same unit.
    """
    places = marginals.places[: len(marginals.columns)]
    sums = [int(noisy[place].sum()) for place in places]
    # Each column's cells add up to the records, with as much more noise as there are cells.
    precisions = [1 / (place.stop - place.start) for place in places]
    records = np.average(sums, weights=precisions)
    found = noisy.copy()
    if records > 0:
        for place in places:
            found[place] = np.rint(records * to_simplex(noisy[place] / records))
    return found


def merged_cells(
    marginals: MarginalFeatures, noisy: NDArray[np.int64], parts: int | None = None
) -> dict[MarginalColumn, MarginalColumn]:
    """Numeric columns with merged cells, in place of those that they have by themselves.

    Guarantee:
        A function of its arguments, of which `noisy` has its noise already.
        (docs/privacy/proofs.md, statement 23.)

    Args:
        marginals: of an embedding's map.
        noisy: sums over all classes of the cells of its columns with noise, int64 (cells,), or
            more, of which the others are behind.
        parts: how many cells there are to be, at most; if None, as few as can be of which none has
            more than one in `MOST` records.
    """
    return {
        column: _merged(column, noisy[place][: column.cells].clip(0).astype(np.float64), parts)
        for column, place in zip(marginals.columns, marginals.places, strict=False)
        if column.cells
    }


def _merged(
    column: MarginalColumn, shares: NDArray[np.float64], parts: int | None
) -> MarginalColumn:
    if parts is not None:
        return column.in_parts(shares, parts)
    most = shares.sum() / MOST
    firsts, held = [0], 0.0
    for cell, share in enumerate(shares):
        # What many records have in common is a cell by itself.
        if cell > firsts[-1] and (held + share > most or share >= most):
            firsts.append(cell)
            held = 0.0
        held += share
    return replace(column, merged=tuple(firsts))


def first_parts(
    marginals: MarginalFeatures,
    noisy: NDArray[np.int64],
    merging: Mapping[MarginalColumn, MarginalColumn],
) -> dict[MarginalColumn, float]:
    """Of numbers in two parts, which share of the records that have a value is in the first.

    Args:
        marginals: of an embedding's map.
        noisy: see `merged_cells`.
        merging: what that made of them.

    Returns:
        By columns with merged cells.
    """
    found = {}
    for column, place in zip(marginals.columns, marginals.places, strict=False):
        if column.cells:
            shares = noisy[place][: column.cells].clip(0)
            until = merging[column].merged[1] if len(merging[column].merged) > 1 else column.cells
            found[merging[column]] = float(shares[:until].sum() / max(shares.sum(), 1))
    return found
