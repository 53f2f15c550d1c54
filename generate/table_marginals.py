"""The one-way marginals that a release holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..common.encoding import Block, NumericEncoding, blocks_of
from ..common.joint import JointFeatures
from ..common.marginals import MarginalFeatures
from ..common.table_schema import TableSchema
from ..release.contents import Release


@dataclass(frozen=True, eq=False)
class ColumnMarginal:
    """How often each cell of a column is, class by class.

    Attributes:
        block: the column and its place in a record.
        shares: noisy, float64 (classes, cells). The last cell is that of missing values where the
            schema has one.
        noise: standard deviation of the noise on them, float64 (classes,).
    """

    block: Block
    shares: NDArray[np.float64]
    noise: NDArray[np.float64]

    @property
    def points(self) -> int:
        """Of a numeric column: number of cells that are not of missing values."""
        return int(self.shares.shape[1]) - self.block.missing_place

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

        A numeric column's cells lie at points between which and the soft bins the encoding says how
        they overlap.
        """
        encoding = self.block.encoding
        if not isinstance(encoding, NumericEncoding):
            return self.shares
        place = np.arange(self.points) / (self.points - 1) * (encoding.knots - 1)
        overlap = np.clip(1 - np.abs(place[:, None] - np.arange(encoding.knots)), 0, 1)
        bins = self.shares[:, : self.points] @ overlap
        return np.concatenate([bins, self.shares[:, self.points :]], axis=1)


def released_marginals(release: Release) -> tuple[ColumnMarginal, ...]:
    """The marginals of a release of a table, nothing if it holds none.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy.md, statement 10.)
    """
    found = noisy_marginals(release)
    if found is None:
        return ()
    feature_map, noisy, size = found
    assert isinstance(release.schema, TableSchema)
    blocks = blocks_of(release.schema)
    if len(feature_map.columns) < len(blocks):  # of categories alone
        blocks = tuple(block for block in blocks if not block.column.kind.numeric)
    places = feature_map.places[: len(feature_map.columns)]
    return tuple(
        ColumnMarginal(block, (noisy[place] / size).T, release.noise_per_coordinate / size)
        for block, place in zip(blocks, places, strict=True)
    )


def noisy_marginals(
    release: Release,
) -> tuple[MarginalFeatures, NDArray[np.float64], NDArray[np.float64]] | None:
    """The part of a release of a table that marginals are read off, None if there is none.

    Returns:
        The map of that part; its coordinates, float64 (cells, classes); and, float64 (classes,),
        what they are in a cell where all records of the class are.
    """
    feature_map, noisy, weight = release.feature_map, release.embedding.astype(np.float64), 1.0
    if isinstance(feature_map, JointFeatures):
        noisy = noisy[feature_map.main.dimension :]
        weight = feature_map.weight
        feature_map = feature_map.marginals
    if not isinstance(release.schema, TableSchema) or not isinstance(feature_map, MarginalFeatures):
        return None
    return feature_map, noisy, weight * feature_map.entry * release.class_weights


def record_targets(
    marginals: tuple[ColumnMarginal, ...],
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """What the mean record of each class should be, as far as the marginals say.

    Returns:
        Places in a record, int64 (k,), and the means there, float32 (classes, k), of values 0..1.
    """
    places = [np.arange(m.block.shares.start, m.block.shares.stop) for m in marginals]
    means = [marginal.in_record() for marginal in marginals]
    return np.concatenate(places), np.concatenate(means, axis=1).astype(np.float32)
