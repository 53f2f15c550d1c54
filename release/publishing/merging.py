"""Which cells a column of numbers has in a pair: cells that hold about as many records each.

If bounds are wide, or numbers are skewed as money is, most records lie in a few of the equally
spaced cells, and a pair with such cells says next to nothing of how its columns go together. The
released marginals of single columns say where records lie, so neighbouring cells are merged by
them: into many for the few pairs that a release chooses, and into few, which have less noise in
all, for all other pairs.
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
"""A merged cell holds at most one in this many records, unless it is a single cell."""


def possible_sums(marginals: MarginalFeatures, noisy: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many records each cell has: the possible sums that are nearest to noisy ones.

    No cell has fewer than 0 records, and the cells of a column together have all of them. If
    negative sums were only set to 0, the positive noise would stay. For a skewed column between
    wide bounds it can exceed the records, and halves would be cut at the middle of the noise.

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
        noisy: noisy sums over all classes of the cells of its columns, int64 (cells,); more may
            follow, and are ignored.
        parts: how many cells a column is to have at most; if None, as few as there can be with no
            more than one in `MOST` records each.
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
    """For numbers cut into two parts: the share of the records with a value that is in the first.

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
