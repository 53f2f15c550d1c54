"""The ranges of numbers that an honest release can hold, whatever its records and noise.

A number outside its range cannot come from any records: it is damaged or made up, and computing
with it may overflow. So it is refused before anything is computed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...common.adjacency import Adjacency
from ...common.errors import FormatError
from ...common.ledger import SMALLEST_DELTA, SMALLEST_EPSILON
from ...common.numerics.unit import LARGEST_SHIFT, LARGEST_SUM, SMALLEST_SHIFT, units_per_one
from ..mechanism.accountant import LARGEST_EPSILON, LARGEST_MULTIPLIER, SMALLEST_MULTIPLIER
from ..mechanism.discrete_gaussian import FURTHEST, LARGEST_SIGMA
from .model import EmbeddingGuarantee, Guarantee

Matrix = NDArray[np.float32]
Shares = NDArray[np.float64]

_MOST_RELEASES: Final = 10**9
"""More than anybody makes."""
_ROUNDED: Final = 1 + 1e-6
"""Factor above the effect of all roundings together; the largest is that to float32, 2^-24."""


def require_possible_figures(guarantee: EmbeddingGuarantee, levels: int) -> None:
    """Refuse figures that are out of an honest writer's range; each is checked by itself.

    Args:
        guarantee: the figures.
        levels: of the feature map.

    Raises:
        FormatError: one is; the message says which.
    """
    g = guarantee
    units = _units(g, levels)
    multiplier, largest = g.noise_multiplier, LARGEST_MULTIPLIER * _ROUNDED
    n_is_public = g.private and g.adjacency is Adjacency.REPLACE_ONE
    require_in_range(
        {
            "the number of records": g.records >= 1,
            **possible_promise(g),
            "delta": SMALLEST_DELTA <= g.delta < (1 / max(g.records, 1) if n_is_public else 1),
            "the noise multiplier": multiplier == 0 or SMALLEST_MULTIPLIER <= multiplier <= largest,
            "the grid": units > 0,
            "sigma": g.sigma <= LARGEST_SIGMA * g.grid,
            "the count weight": g.count_weight == 0 or 1 <= g.count_weight * units <= units,
        }
    )


def possible_promise(guarantee: Guarantee) -> dict[str, bool]:
    """Whether each figure that both kinds of release have is in its range, by name."""
    total = guarantee.total_epsilon
    return {
        "epsilon": guarantee.epsilon >= SMALLEST_EPSILON,
        "delta": SMALLEST_DELTA <= guarantee.delta < 1,
        "the total epsilon": total <= LARGEST_EPSILON or total == math.inf,
        "the number of releases": 1 <= guarantee.total_releases <= _MOST_RELEASES,
    }


def require_in_range(possible: Mapping[str, bool]) -> None:
    """Refuse figures that are out of range.

    Args:
        possible: whether each figure, by name, is in its range.

    Raises:
        FormatError: one is not; the message says which.
    """
    for name, is_possible in possible.items():
        if not is_possible:
            raise FormatError(f"{name} is out of range")


def require_possible_arrays(
    guarantee: EmbeddingGuarantee, levels: int, embedding: Matrix, class_weights: Shares
) -> None:
    """Refuse a number of records, a matrix or class weights that no records and noise can give.

    Proof that nothing is refused that some records give: let n be the number of records and c that
    of classes. Then n is at most `room`, because n in grid units is at most `LARGEST_SUM`
    (`dpntk.embed.exact.grid`). No draw of noise exceeds 60 sigma (docs/privacy/proofs.md, statement
    8).

    - Under replace-one, m is n. Under add-remove, m is the rounded sum of c noisy counts, and at
      least 1; each count is off by one draw divided by what one record adds to it. So m and n
      differ by at most `miscounted`.
    - An entry of the matrix is (S + noise) / m, where S is a sum of n coordinates of vectors of
      norm at most 1.
    - A class's share is that of a count from 1 to m among c such counts, or a declared 1 / c.

    Args:
        guarantee: figures that are in their ranges.
        levels: of the feature map.
        embedding: float32 (d, c).
        class_weights: float64 (c,).

    Raises:
        FormatError: something is impossible; the message says what.
    """
    g, classes, units = guarantee, len(class_weights), _units(guarantee, levels)
    room, farthest, miscounted = LARGEST_SUM / units, FURTHEST * g.sigma, 0.0
    if g.adjacency is Adjacency.ADD_REMOVE:
        one_record = math.floor(g.count_weight * units) / units
        miscounted = classes * farthest / one_record + 1
    if g.records > (room + miscounted) * _ROUNDED:
        raise FormatError("the sums have no room for so many records")
    records = min(g.records + miscounted, room)
    largest = max(float(embedding.max()), -float(embedding.min()))
    if largest > (records + farthest) / g.records * _ROUNDED:
        raise FormatError("neither records nor noise make so large an entry of the embedding")
    if class_weights.min() * classes * g.records * _ROUNDED < 1:
        raise FormatError("a class weight is below the share of a single record")
    if not g.count_weight and (class_weights != 1 / classes).any():
        raise FormatError("the class weights follow from no counts that were released")


def _units(guarantee: Guarantee, levels: int) -> int:
    """The number of grid units that make 1; 0 if there is no such grid."""
    shifts = range(SMALLEST_SHIFT, LARGEST_SHIFT + 1)
    known = {1 / units: units for units in (units_per_one(levels, shift) for shift in shifts)}
    return known.get(guarantee.grid, 0)
