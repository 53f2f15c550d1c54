"""The one-way marginals that a release holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ....common.errors import GeneratorError
from ....common.features.base import FeatureMap
from ....common.features.joint import parts_of
from ....common.features.marginals.map import MarginalFeatures
from ....common.schema.encoding import Block, NumericEncoding, blocks_of
from ....common.schema.table import LEVELS, TableSchema
from ....release.file.model import Release
from ...kernels.mean_embedding import MeanEmbedding
from ...output.generator_file import Arrays
from .denoising import WIDE, WIDE_OF_DATES, category_shares, number_shares
from .levels import Levels, estimate_levels

_FAR: Final = 6
"""Cells are far from others if at least so many empty ones lie between; those of single values, if
it is this part of the column."""
_CERTAIN: Final = 4.0
"""Such cells are occupied if all of them, or one, have this many standard deviations of noise."""
_LEVELS: Final = ".levels"
"""Suffix of the names of arrays that hold levels."""
_WRONG: Final = "its classes and weights contradict each other"
_EXACT: Final = 1e-9
_FEW: Final = 2
"""With this many cells or fewer, numbers take no values between cells."""
_LARGEST: Final = 1e30
"""Largest noise or noisy share: far beyond any release, but with a finite square."""


@dataclass(frozen=True, eq=False)
class ColumnMarginal:
    """The shares of a column's cells in each class.

    Attributes:
        block: the column and its place in a record.
        shares: noisy, float64 (classes, cells). The last cell is that of missing values if the
            schema allows them.
        noise: standard deviation of the noise on them, float64 (classes,).
        levels: of a numeric column, where numbers lie within cells; None if unknown.
    """

    block: Block
    shares: NDArray[np.float64]
    noise: NDArray[np.float64]
    levels: Levels | None = None

    @property
    def known(self) -> bool:
        """Whether the shares have no noise, or have been denoised (`estimate_columns`)."""
        return not self.noise.any()

    @property
    def hides_even_share(self) -> bool:
        """Whether noise would hide each cell in every class, if all were equally frequent."""
        return bool(self.noise.min() * self.shares.shape[1] > 1)

    @cached_property
    def posterior_mean(self) -> NDArray[np.float64]:
        """The posterior mean shares, float64 (classes, cells).

        Classes inform one another. A cell of numbers is emptied only if every class by itself would
        empty it. The shares of categories in a class are expected to be near those in all classes
        together, where each class is weighted by its precision.
        """
        if self.known:
            return self.shares
        of = [(noisy, float(noise)) for noisy, noise in zip(self.shares, self.noise, strict=True)]
        if isinstance(self.block.encoding, NumericEncoding):
            possible = self._possible(of)
            return np.stack([number_shares(*one, self.points, possible, self._wide) for one in of])
        common = category_shares(*self.together)
        return np.stack([category_shares(*one, common) for one in of])

    @property
    def together(self) -> tuple[NDArray[np.float64], float]:
        """Noisy shares in all classes, weighted by their precision, (cells,), and their noise."""
        precision = np.maximum(self.noise, _EXACT) ** -2.0
        return precision @ self.shares / precision.sum(), float(precision.sum() ** -0.5)

    def _possible(self, of: Sequence[tuple[NDArray[np.float64], float]]) -> NDArray[np.bool_]:
        """Cells of a numeric column that are not empty in every class, bool (cells,).

        A class in which no cell seems empty is ignored if its noise exceeds a uniform share.
        """
        left = [number_shares(*one, self.points, wide=self._wide) > 0 for one in of]
        heard = [
            there
            for there, (_, noise) in zip(left, of, strict=True)
            if not there.all() or noise * self.points <= 1
        ]
        found: NDArray[np.bool_] = np.any(heard or left, axis=0)
        found[self._far_and_uncertain(np.flatnonzero(found[: self.points]), of)] = False
        return found

    def _far_and_uncertain(
        self, occupied: NDArray[np.int64], of: Sequence[tuple[NDArray[np.float64], float]]
    ) -> NDArray[np.int64]:
        """Those of some cells that are far from all others, and not certain to be occupied.

        Among so many cells, noise alone makes some that seem occupied, and a few rows so far away
        change means and deviations beyond use.
        """
        # Whole numbers may well be in steps, of ten for example.
        far = _FAR if self.has_values_between else max(_FAR, self.points // _FAR)
        islands = np.split(occupied, 1 + np.flatnonzero(np.diff(occupied) > far))
        together = self.together
        main = max(islands, key=lambda cells: together[0][cells].sum())

        def certain(cells: NDArray[np.int64]) -> bool:
            root = math.sqrt(len(cells))
            return any(
                max(shares[cells].sum() / root, shares[cells].max())
                >= _CERTAIN * max(noise, _EXACT)
                for shares, noise in (*of, together)
            )

        left = [cells for cells in islands if not (cells is main or certain(cells))]
        return np.concatenate([occupied[:0], *left])

    @property
    def _wide(self) -> float:
        return WIDE_OF_DATES if self.block.column.kind.temporal else WIDE

    @property
    def points(self) -> int:
        """Number of cells of a numeric column, without the cell of missing values."""
        return int(self.shares.shape[1]) - self.block.missing_place

    @property
    def has_values_between(self) -> bool:
        """Whether a numeric column has more values than cells."""
        values = self.block.column.different
        return self.points > _FEW and (values is None or values > self.points)

    def cells(self, records: NDArray[np.float32]) -> NDArray[np.int64]:
        """The cell of each generated row (n, record size) of values 0..1."""
        if not isinstance(self.block.encoding, NumericEncoding):
            most: NDArray[np.int64] = records[:, self.block.shares].argmax(axis=1)
            return most
        share = records[:, self.block.place.start].astype(np.float64).clip(0, 1)
        nearest: NDArray[np.int64] = np.rint(share * (self.points - 1)).astype(np.int64)
        if self.block.missing_place:
            nearest[records[:, self.block.place.stop - 1] > 0.5] = self.points
        return nearest

    def in_record(self) -> NDArray[np.float64]:
        """The mean of the column's `Block.shares` in a record, (classes, values).

        A numeric column's cells lie at single points; the encoding gives their overlap with the
        soft bins.
        """
        encoding = self.block.encoding
        if not isinstance(encoding, NumericEncoding):
            return self.shares
        overlap = encoding.bins(np.arange(self.points) / (self.points - 1))
        bins = self.shares[:, : self.points] @ overlap
        return np.concatenate([bins, self.shares[:, self.points :]], axis=1)


def marginals_of(
    mean: MeanEmbedding, feature_map: FeatureMap, schema: TableSchema
) -> tuple[ColumnMarginal, ...]:
    """The marginals that a release of a table holds; empty if it holds none.

    Args:
        mean: mean features of each class.
        feature_map: of the release.
        schema: of the release.
    """
    found = marginal_part(mean, feature_map)
    if found is None:
        return ()
    marginals, noisy, size = found
    blocks = blocks_of(schema)
    if len(marginals.columns) < len(blocks):  # only of categories
        blocks = tuple(block for block in blocks if not block.column.kind.numeric)
    places = marginals.places[: len(marginals.columns)]
    return tuple(
        ColumnMarginal(block, (noisy[place] / size).T, mean.noise / size)
        for block, place in zip(blocks, places, strict=True)
    )


def are_known(marginals: tuple[ColumnMarginal, ...], schema: TableSchema) -> bool:
    """Whether there are noiseless marginals of every column, enough to make rows from."""
    return len(marginals) == len(schema.features) and all(one.known for one in marginals)


def marginal_part(
    mean: MeanEmbedding, feature_map: FeatureMap
) -> tuple[MarginalFeatures, NDArray[np.float64], float] | None:
    """The part of mean features that holds marginals; None if there is none.

    Returns:
        The map of that part; its coordinates, float64 (cells, classes); and the value of a column's
        coordinate if all records of a class are in that cell.
    """
    parts = parts_of(feature_map)
    if parts.marginals is None:
        return None
    noisy = mean.values[parts.marginal_place].astype(np.float64)
    return parts.marginals, noisy, parts.weight * parts.marginals.entry


def with_levels(
    marginals: tuple[ColumnMarginal, ...], release: Release
) -> tuple[ColumnMarginal, ...]:
    """Add the levels of numbers to marginals, if a release holds them.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)

    Args:
        marginals: denoised, of all columns.
        release: of the table.
    """
    parts = parts_of(release.feature_map)
    if parts.marginals is None or not parts.marginals.by_level:
        return marginals
    columns, size = parts.marginals.by_level, parts.weight * parts.marginals.level_entry
    of_all = release.embedding[parts.level_place].sum(axis=1, dtype=np.float64) / size
    noise = release.noise_per_coordinate * float(np.sqrt(len(release.class_weights))) / size
    borders = np.cumsum([column.dimension for column in columns])[:-1]
    starts = (column.start for column in columns)
    noisy = dict(zip(starts, np.split(of_all, borders), strict=True))
    found = []
    for marginal in marginals:
        levels = noisy.get(marginal.block.place.start)
        if levels is not None:
            cells = (release.class_weights @ marginal.posterior_mean)[: marginal.points]
            there = max(float(cells.sum()), _EXACT)
            seen = levels[: LEVELS + 1] / there
            known = estimate_levels(marginal.block, cells / there, seen, noise / there)
            marginal = replace(marginal, levels=known)
        found.append(marginal)
    return tuple(found)


def record_targets(
    marginals: tuple[ColumnMarginal, ...],
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The targets that marginals set for the mean record of each class.

    Returns:
        Places in a record, int64 (k,), and the means there, float32 (classes, k), of values 0..1.
    """
    places = [np.arange(m.block.shares.start, m.block.shares.stop) for m in marginals]
    means = [marginal.in_record() for marginal in marginals]
    return np.concatenate(places), np.concatenate(means, axis=1).astype(np.float32)


def marginals_to_arrays(marginals: tuple[ColumnMarginal, ...], schema: TableSchema) -> Arrays:
    """Arrays of shares, named by the number of their column, and of the noise, shared by all."""
    blocks = blocks_of(schema)
    arrays = {str(blocks.index(marginal.block)): marginal.shares for marginal in marginals}
    for marginal in marginals:
        if (levels := marginal.levels) is not None:
            name = f"{blocks.index(marginal.block)}{_LEVELS}"
            arrays[name] = np.stack([levels.shares, levels.spikes])
    return {**arrays, "noise": marginals[0].noise} if marginals else {}


def marginals_from_arrays(arrays: Arrays, schema: TableSchema) -> tuple[ColumnMarginal, ...]:
    """Restore the marginals from arrays that `marginals_to_arrays` made.

    Raises:
        GeneratorError: they are not marginals of such a table.
        KeyError: there are shares, but no noise.
    """
    found, known = [], {"noise"}
    for number, block in enumerate(blocks_of(schema)):
        if str(number) in arrays:
            marginal = ColumnMarginal(block, arrays[str(number)], arrays["noise"])
            known |= {str(number), name := f"{number}{_LEVELS}"}
            if not _is_marginal(marginal, len(schema.classes)):
                raise GeneratorError(_WRONG)
            if name in arrays:
                marginal = replace(marginal, levels=_levels_from(arrays[name], marginal))
            found.append(marginal)
    if arrays.keys() - known:
        raise GeneratorError(_WRONG)
    return tuple(found)


def _levels_from(array: NDArray[Any], marginal: ColumnMarginal) -> Levels:
    if not isinstance(marginal.block.encoding, NumericEncoding):
        raise GeneratorError(_WRONG)
    if array.shape != (2, LEVELS + 1) or array.dtype != np.float64:
        raise GeneratorError(_WRONG)
    if not ((array >= 0) & (array <= 1)).all() or marginal.points > LEVELS + 1:
        raise GeneratorError(_WRONG)
    return Levels(marginal.block, marginal.points, *array)


def _is_marginal(marginal: ColumnMarginal, classes: int) -> bool:
    shares, choices = marginal.shares, marginal.block.column.choices
    if shares.ndim != 2 or len(shares) != classes or shares.dtype != np.float64:
        return False
    fits = shares.shape[1] == choices if choices else marginal.points >= 2
    return fits and is_noise(marginal.noise, classes) and bool(np.abs(shares).max() <= _LARGEST)


def is_noise(noise: NDArray[Any], classes: int) -> bool:
    """Whether an array can be the noise of each class; NaN fails every comparison."""
    if noise.shape != (classes,) or noise.dtype != np.float64:
        return False
    return bool(((noise >= 0) & (noise <= _LARGEST)).all())
