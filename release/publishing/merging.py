"""The cells of a column of numbers in a pair, which hold about equally many records.

If bounds are wide, or numbers are skewed as amounts of money are, most records lie in a few of the
equally spaced cells, and a pair with such cells shows hardly any dependence. The released marginals
of single columns show where records lie, and neighbouring cells are merged accordingly: into many
for the few pairs that a release chooses, and into few, with less noise in total, for coarse pairs.
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
    """Project noisy cell sums onto the nearest possible ones.

    No cell has fewer than 0 records, and the cells of a column together have all of them. Setting
    negative sums to 0 would leave the positive noise. For a skewed column between wide bounds that
    can exceed the records, and halves would be cut in the middle of the noise.

    Guarantee:
        A function of its arguments, of which `noisy` already has its noise.
        (docs/privacy/proofs.md, statement 23.)

    Args:
        marginals: of an embedding's map.
        noisy: see `merged_cells`.

    Returns:
        The same with possible cells of columns, in the same unit.
    """
    places = marginals.places[: len(marginals.columns)]
    sums = [int(noisy[place].sum()) for place in places]
    # Each column's cells add up to the records, with a noise variance in proportion to their
    # number.
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
    """Numeric columns with merged cells, by the original columns.

    Guarantee:
        A function of its arguments, of which `noisy` already has its noise.
        (docs/privacy/proofs.md, statement 23.)

    Args:
        marginals: of an embedding's map.
        noisy: noisy sums over all classes of the cells of its columns, int64 (cells,); more may
            follow, and are ignored.
        parts: largest number of cells of a column; if None, as few as possible with at most one in
            `MOST` records each.
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
        # A frequent value remains a cell of its own.
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
    """For numbers cut into two parts, the share of non-missing records in the first part.

    Args:
        marginals: of an embedding's map.
        noisy: see `merged_cells`.
        merging: the result of `merged_cells`.

    Returns:
        Shares by columns with merged cells.
    """
    found = {}
    for column, place in zip(marginals.columns, marginals.places, strict=False):
        if column.cells:
            shares = noisy[place][: column.cells].clip(0)
            until = merging[column].merged[1] if len(merging[column].merged) > 1 else column.cells
            found[merging[column]] = float(shares[:until].sum() / max(shares.sum(), 1))
    return found
