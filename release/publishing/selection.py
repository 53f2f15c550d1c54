"""Which pairs of columns get a measurement of their own: those that a release's rest points to.

Products of columns (`dpntk.common.features.moments`) show how far each pair is from independence,
with noise. Where the noise is small, so do tables of few cells for all pairs of numbers, even if
numbers are skewed or lie far within their bounds. The choice follows from what has its noise
already, so it costs nothing, and the noise on the chosen pairs does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...common.features.joint import Parts
from ...common.features.marginals.cells import MarginalColumn, MarginalGroup
from ...common.features.moments import (
    CONSTANT,
    INDICATOR,
    LEAST_DEVIATION,
    MomentFeatures,
    noise_variances,
)
from ...common.schema.encoding import blocks_of
from ...common.schema.table import TableSchema

_KNOWN: Final = 20.0
"""A class counts if the square of the constant, over all its records, is this many times the noise
on a product. The largest class always counts, since nothing is known better."""
_USUAL_DISTANCE: Final = 0.8
"""Distance of a number from its mean, in standard deviations."""
_BY_CHANCE: Final = 0.25
"""If no columns went together, this part of the chosen pairs would pass for such by chance."""
_LEAST_SHARE: Final = 0.25
"""Least share of a cell under independence, as a part of its share if all cells were equally
frequent."""


@dataclass(frozen=True, eq=False)
class Dependence:
    """How far two columns are from independence in each class.

    Attributes:
        squares: an estimate of the sum of (share - expected share)^2 / expected share over the
            cells of a table (Pearson's phi^2), float64 (c,).
        variances: of it, as noise makes it, (c,).
    """

    squares: NDArray[np.float64]
    variances: NDArray[np.float64]


def dependences(
    tables: Sequence[MarginalGroup],
    cells: NDArray[np.int64],
    noise: float,
    first_part: Mapping[MarginalColumn, float] = MappingProxyType({}),
) -> Iterator[Dependence]:
    """How far pairs of columns are from independence, by tables of few cells.

    Args:
        tables: of two columns each.
        cells: sums over the records of each class with noise, of the cells of all tables, int64
            (cells, c), in any unit.
        noise: standard deviation of that on each, in this unit; 0 if there is none.
        first_part: for each column of a folded table, the share of the records with a value that is
            in the first of its two cells.
    """
    sizes = np.cumsum([table.dimension for table in tables])
    for table, sums in zip(tables, np.split(cells, sizes[:-1]), strict=True):
        if table.folded:
            yield _folded(sums, noise, *(first_part[side] for side in table.sides))
            continue
        of_class = sums.sum(axis=0).clip(max(noise * len(sums) ** 0.5, 1.0))
        shares = (sums / of_class).reshape(*(side.dimension for side in table.sides), -1)
        rows, columns = (shares.sum(axis=axis, keepdims=True) for axis in (1, 0))
        expected = (rows * columns).clip(_LEAST_SHARE / len(sums))
        # What rows and columns add up to has the noise of the cells, too.
        freedom = (1 - rows.clip(0, 1)) * (1 - columns.clip(0, 1))
        variance = (noise / of_class) ** 2
        apart = ((shares - rows * columns) ** 2 / expected).sum(axis=(0, 1))
        by_noise = variance * (freedom / expected).sum(axis=(0, 1))
        doubt = 2 * variance**2 * (freedom / expected**2).sum(axis=(0, 1))
        yield Dependence(apart - by_noise, doubt)


def _folded(sums: NDArray[np.int64], noise: float, row: float, column: float) -> Dependence:
    """The same of a folded table: how often both are in the same part says all.

    Args:
        sums: of its cells, int64 (cells, c).
        noise: see `dependences`.
        row: how often the first column is in its first part.
        column: how often the second is.
    """
    known = sums[:2].sum(axis=0).clip(max(noise * 2**0.5, 1.0))
    apart = (sums[0] - sums[1]) / known - (2 * row - 1) * (2 * column - 1)
    # It is 4 times what one of four cells has beyond its expected share.
    size = 16 * row * (1 - row) * column * (1 - column)
    size = max(size, _LEAST_SHARE**2)
    variance = 2 * (noise / known) ** 2 / size
    return Dependence(apart**2 / size - variance, 2 * variance**2)


def select_pairs(
    parts: Parts,
    schema: TableSchema,
    products: NDArray[np.float64],
    noise: float,
    count: int,
    together: Mapping[int, Dependence] | None = None,
) -> list[int]:
    """The pairs of columns that are farthest from independence, class by class.

    The distance is the total variation between the shares of cells and the products of shares. It
    is at most, and usually about, the root of the number of cells times the sum of squares. For
    categories the squares follow from the products of columns; for numbers they are those of a
    linear dependence. What noise alone adds to them is taken off, and so are as many of its
    standard deviations as few pairs exceed by chance.

    Guarantee:
        A function of its arguments, of which `products` and what `together` is an estimate from
        have their noise already. (docs/privacy/proofs.md, statement 23.)

    Args:
        parts: of an embedding's map, which leaves pairs undecided.
        schema: of the table.
        products: sums over the records of each class with noise, float64 (k^2, c), in any unit.
        noise: standard deviation of that on each, in this unit; 0 if there is none.
        count: how many pairs to choose.
        together: how far some pairs are from independent ones, by their numbers, where that is
            known better than from products.

    Returns:
        The pairs' numbers in rising order, at most `count`.
    """
    marginals, moments = parts.marginals, parts.moments
    assert marginals is not None
    assert moments is not None
    shares, of_share = _of_size(moments)
    matrices = products.T.reshape(-1, moments.factors, moments.factors)
    weights = (shares * matrices).sum(axis=(1, 2)).clip(noise * of_share)
    # Each product of two factors is there twice, with noise of its own.
    of_seen = noise / np.sqrt(2)
    enough = min(_KNOWN * of_seen / CONSTANT**2, weights.max())
    counted = np.where(weights >= enough, weights, 0.0)
    squares, doubt = _departures(moments, matrices, counted, of_seen)
    chance = _BY_CHANCE * min(count / len(marginals.groups), 0.5)
    beyond = NormalDist().inv_cdf(1 - chance)
    column_of = {first: number for number, first in enumerate(moments.places)}
    place_of = {
        start: (column_of.get(block.first), moments.places.get(block.first))
        for block in blocks_of(schema)
        for start in block.starts
    }

    def score(number: int, group: MarginalGroup) -> float:
        if together and (seen := together.get(number)) is not None:
            spread = np.sqrt(counted**2 @ seen.variances)
            return float(counted @ seen.squares - beyond * spread)
        (first, one), (second, other) = (place_of[side.start] for side in group.sides)
        known = squares[one, other].sum() - beyond * np.sqrt(doubt[first, second])
        return float(known * squares[one, other].size)

    scores = [score(number, group) for number, group in enumerate(marginals.groups)]
    best = np.argsort(-np.array(scores), kind="stable")[:count]
    return sorted(int(number) for number in best)


def _departures(
    moments: MomentFeatures,
    matrices: NDArray[np.float64],
    weights: NDArray[np.float64],
    noise: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How far products of standardised columns are from those of independent ones.

    Args:
        moments: the features.
        matrices: their sums over the records of each class, float64 (c, k, k).
        weights: how many records each class has, each divided by its |z|^2, (c,); a class with 0
            is left out.
        noise: standard deviation of that on a product, the mean of the two places where it is.

    Returns:
        Sums over the classes of squared distances less what the noise adds to them, (k, k); and
        the variance, as noise makes it, of what two columns have of these, (columns, columns).
    """
    k, possible = moments.factors, moments.possible.numpy()
    numbers = np.arange(k) - 1 < len(moments.numbers)
    least_deviation = LEAST_DEVIATION * moments.times.numpy()
    squares, doubt = np.zeros((k, k)), np.zeros((moments.columns, moments.columns))
    for matrix, weight in zip(matrices, weights, strict=True):
        if not weight:
            continue
        seen = possible @ (matrix + matrix.T) @ possible / 2
        mean = seen[0] / (CONSTANT * weight)
        apart = seen / weight - np.outer(mean, mean)
        # What is taken off has noise of its own, the more the farther numbers are from 0.
        centre = np.eye(k)
        centre[:, 0] -= mean / CONSTANT
        of_noise = noise / weight * (centre @ possible @ centre.T)
        of_apart = noise_variances(of_noise)
        least = np.maximum(2 * np.sqrt(of_apart.diagonal()), least_deviation**2)
        deviation = np.sqrt(np.maximum(apart.diagonal(), least))
        scale = np.where(numbers, deviation / _USUAL_DISTANCE, INDICATOR)
        size = np.outer(scale, scale)
        squares += weight * (apart**2 - of_apart) / size**2
        # Products of a column's categories with all others are not independent of one another.
        alike = np.square(of_noise / size)
        of_column = [alike[place, place].sum() for place in moments.places.values()]
        doubt += 2 * weight**2 * np.outer(of_column, of_column)
    return squares, doubt


def _of_size(moments: MomentFeatures) -> tuple[NDArray[np.float64], float]:
    """How to read off the products of a class how many records it has, with the least noise.

    Every record has the constant, and one category of each column. So the products of any two of
    these columns add up to the same number, times what indicators are: that of the records, each
    divided by its |z|^2. This is the mean of all that, weighted by how much noise each has.

    Returns:
        What products are to be multiplied with before they are added up, float64 (k, k); and the
        standard deviation of what comes out where that of a product is 1.
    """
    each, own = np.zeros(moments.factors), np.zeros(moments.factors)
    column = np.zeros(moments.factors, dtype=np.int64)
    each[0], own[0] = CONSTANT, CONSTANT**2
    for number, (first, count) in enumerate(moments.categories, 1):
        place = moments.places[first]
        column[place], each[place], own[place] = number, INDICATOR / count, INDICATOR**2 / count
    # A number's own are 0; within a column only a category's with itself are not.
    expected = np.outer(each, each) * (column[:, None] != column) + np.diag(own)
    precision = float(np.square(expected).sum())
    return expected / precision, precision**-0.5
