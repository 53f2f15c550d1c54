"""Select the pairs of columns to measure, by what a release already shows.

Products of columns (`dpntk.common.features.moments`) show with noise how far each pair is from
independence. If the noise is small, so do coarse pairs of all numbers, even if numbers are skewed
or lie far within their bounds. The selection follows from what already has its noise, so it costs
no privacy, and the noise on the chosen pairs does not depend on it.
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
on a product. The largest class always counts, since it is known best."""
_USUAL_DISTANCE: Final = 0.8
"""Mean distance of a number from its mean, in standard deviations."""
_BY_CHANCE: Final = 0.25
"""If all columns were independent, this fraction of the chosen pairs would seem dependent by
chance."""
_LEAST_SHARE: Final = 0.25
"""Least share of a cell under independence, relative to a uniform share."""


@dataclass(frozen=True, eq=False)
class Dependence:
    """How far two columns are from independence in each class.

    Attributes:
        squares: an estimate of the sum of (share - expected share)^2 / expected share over the
            cells of a table (Pearson's phi^2), float64 (c,).
        variances: variance of the estimate due to noise, (c,).
    """

    squares: NDArray[np.float64]
    variances: NDArray[np.float64]


def dependences(
    tables: Sequence[MarginalGroup],
    cells: NDArray[np.int64],
    noise: float,
    first_part: Mapping[MarginalColumn, float] = MappingProxyType({}),
) -> Iterator[Dependence]:
    """How far pairs of columns are from independence, by coarse tables.

    Args:
        tables: of two columns each.
        cells: noisy sums over the records of each class, for the cells of all tables, int64 (cells,
            c), in any unit.
        noise: standard deviation of the noise on each, in this unit; 0 if there is none.
        first_part: for each column of a folded table, the share of non-missing records in the first
            of its two cells.
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
        # The sums of rows and columns contain the noise of the cells, too.
        freedom = (1 - rows.clip(0, 1)) * (1 - columns.clip(0, 1))
        variance = (noise / of_class) ** 2
        apart = ((shares - rows * columns) ** 2 / expected).sum(axis=(0, 1))
        by_noise = variance * (freedom / expected).sum(axis=(0, 1))
        doubt = 2 * variance**2 * (freedom / expected**2).sum(axis=(0, 1))
        yield Dependence(apart - by_noise, doubt)


def _folded(sums: NDArray[np.int64], noise: float, row: float, column: float) -> Dependence:
    """The same for a folded table, which counts whether both columns are in the same part.

    Args:
        sums: of its cells, int64 (cells, c).
        noise: see `dependences`.
        row: share of the first column in its first part.
        column: share of the second column in its first part.
    """
    known = sums[:2].sum(axis=0).clip(max(noise * 2**0.5, 1.0))
    apart = (sums[0] - sums[1]) / known - (2 * row - 1) * (2 * column - 1)
    # `apart` is 4 times the excess of one of four cells over its expected share.
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
    """Select the pairs of columns that are farthest from independence, class by class.

    The distance is the total variation between the shares of cells and the products of shares. It
    is at most, and usually about, the root of the number of cells times the sum of squares. For
    categories the squares follow from the products of columns; for numbers they are those of a
    linear dependence. The expected contribution of the noise is subtracted, and also as many of its
    standard deviations as only few pairs exceed by chance.

    Guarantee:
        A function of its arguments, of which `products`, and whatever `together` is estimated from,
        already have their noise. (docs/privacy/proofs.md, statement 23.)

    Args:
        parts: of an embedding's map, which leaves pairs undecided.
        schema: of the table.
        products: noisy sums over the records of each class, float64 (k^2, c), in any unit.
        noise: standard deviation of the noise on each, in this unit; 0 if there is none.
        count: how many pairs to choose.
        together: the dependence of pairs, by their numbers, if known better than from products.

    Returns:
        The numbers of at most `count` pairs, in increasing order.
    """
    marginals, moments = parts.marginals, parts.moments
    assert marginals is not None
    assert moments is not None
    shares, of_share = _of_size(moments)
    matrices = products.T.reshape(-1, moments.factors, moments.factors)
    weights = (shares * matrices).sum(axis=(1, 2)).clip(noise * of_share)
    # Each product of two factors appears twice, with independent noise.
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
        weights: sum over each class's records of 1 / |z|^2, (c,); a class with 0 is left out.
        noise: standard deviation of the noise on a product, averaged over its two places.

    Returns:
        Squared distances minus the noise's contribution, summed over classes, (k, k); and the
        variance due to noise of the sum of these for two columns, (columns, columns).
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
        # Centring adds noise, in proportion to the distance of the mean from 0.
        centre = np.eye(k)
        centre[:, 0] -= mean / CONSTANT
        of_noise = noise / weight * (centre @ possible @ centre.T)
        of_apart = noise_variances(of_noise)
        least = np.maximum(2 * np.sqrt(of_apart.diagonal()), least_deviation**2)
        deviation = np.sqrt(np.maximum(apart.diagonal(), least))
        scale = np.where(numbers, deviation / _USUAL_DISTANCE, INDICATOR)
        size = np.outer(scale, scale)
        squares += weight * (apart**2 - of_apart) / size**2
        # Noise on the products of a column's categories is correlated.
        alike = np.square(of_noise / size)
        of_column = [alike[place, place].sum() for place in moments.places.values()]
        doubt += 2 * weight**2 * np.outer(of_column, of_column)
    return squares, doubt


def _of_size(moments: MomentFeatures) -> tuple[NDArray[np.float64], float]:
    """A linear estimator of a class's weight from its products, with minimal noise.

    Every record has the constant, and one category of each column. So the products of any two of
    these columns add up to the same number, times the indicators' values: the sum over records of
    1 / |z|^2. The estimator is the precision-weighted mean of all these sums.

    Returns:
        The coefficients of products, float64 (k, k); and the standard deviation of the estimate if
        that of each product is 1.
    """
    each, own = np.zeros(moments.factors), np.zeros(moments.factors)
    column = moments.column.numpy()
    each[0], own[0] = CONSTANT, CONSTANT**2
    for first, count in moments.categories:
        place = moments.places[first]
        each[place], own[place] = INDICATOR / count, INDICATOR**2 / count
    # Coefficients of numbers are 0, and within a column only the diagonal is nonzero.
    expected = np.outer(each, each) * (column[:, None] != column) + np.diag(own)
    precision = float(np.square(expected).sum())
    return expected / precision, precision**-0.5
