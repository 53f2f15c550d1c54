"""Choose the pairs and triples of columns to compare."""

from __future__ import annotations

import itertools
import math
from typing import Final

import numpy as np

MOST_PAIRS: Final = 5_000
MOST_TRIPLES: Final = 1_000


def some_combinations(columns: int, size: int, most: int) -> list[tuple[int, ...]]:
    """Combinations of columns, by their numbers: all, or a random selection.

    The selection is always the same.

    Args:
        columns: number of columns.
        size: of a combination.
        most: largest number of combinations.
    """
    total = math.comb(columns, size)
    if total <= most:
        return list(itertools.combinations(range(columns), size))
    drawn = np.random.default_rng(0).choice(total, most, replace=False)
    return [_combination(place, columns, size) for place in sorted(drawn.tolist())]


def _combination(place: int, columns: int, size: int) -> tuple[int, ...]:
    """The combination at a given place in lexicographic order."""
    found: list[int] = []
    column = 0
    for left in range(size - 1, -1, -1):
        while (beginning := math.comb(columns - column - 1, left)) <= place:
            place -= beginning
            column += 1
        found.append(column)
        column += 1
    return tuple(found)
