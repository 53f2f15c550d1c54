"""The one-way marginals that a release holds: as a target of training, and as a last correction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..common.encoding import Block, NumericEncoding, blocks_of
from ..common.joint import JointFeatures
from ..common.marginals import MarginalFeatures
from ..common.table_schema import TableSchema
from ..release.contents import Release

_EMPTY: Final = 1e-12


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
        """The cell of each generated row (n, inputs) of values 0..1."""
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


def believable(
    noisy: NDArray[np.float64], made: NDArray[np.float64], noise: float
) -> NDArray[np.float64]:
    """Shares between the released ones and those that the generator makes by itself.

    Where the two differ by less than the noise, the generator, which was trained on all that was
    released, is left alone; elsewhere it is corrected but for that much.

    Args:
        noisy: released shares (cells,).
        made: shares among generated rows (cells,).
        noise: standard deviation of the noise.
    """
    difference = noisy - made
    surely = np.sign(difference) * np.maximum(np.abs(difference) - noise, 0)
    return to_simplex(made + surely)


def to_simplex(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest vector of shares (Duchi et al. 2008, "Efficient projections ... l1-ball")."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    kept = np.flatnonzero(ordered > excess)[-1]
    shares = np.maximum(values - excess[kept], 0)
    projected: NDArray[np.float64] = shares / shares.sum()
    return projected


def corrected(
    records: NDArray[np.float32],
    labels: NDArray[np.int64],
    marginals: tuple[ColumnMarginal, ...],
    random: np.random.Generator,
) -> None:
    """Change generated rows as little as needed for the released marginals, class by class.

    Numbers are moved along their order, so that what goes with a large one still does. Of
    categories that are too frequent, random rows change to those that are too rare.

    Args:
        records: float32 (n, inputs), values 0..1: only the value of numeric columns and the
            categories and missing values are looked at, and changed.
        labels: int64 (n,).
        marginals: of the release.
        random: chooses the rows.
    """
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        for marginal in marginals:
            shares, block = marginal.shares[label], marginal.block
            cells = marginal.cells(records[rows])
            made = np.bincount(cells, minlength=len(shares)) / len(rows)
            shares = believable(shares, made, float(marginal.noise[label]))
            if not isinstance(block.encoding, NumericEncoding):
                codes = _rearranged(cells, shares, random)
                records[rows, block.shares] = np.eye(len(shares), dtype=np.float32)[codes]
                continue
            there = rows
            if block.missing_place:
                wanted = np.array([shares[:-1].sum(), shares[-1]])
                missing = _rearranged((cells == marginal.points).astype(np.int64), wanted, random)
                records[rows, block.place.stop - 1] = missing
                there = rows[missing == 0]
            _requantile(records, there, block.place.start, shares[: marginal.points], random)


def _requantile(
    records: NDArray[np.float32],
    rows: NDArray[np.int64],
    place: int,
    shares: NDArray[np.float64],
    random: np.random.Generator,
) -> None:
    if not len(rows) or shares.sum() < _EMPTY:
        return
    order = np.lexsort((random.random(len(rows)), records[rows, place]))
    wanted = np.cumsum(shares / shares.sum())
    quantile = (np.arange(len(rows)) + 0.5) / len(rows)
    cell = np.minimum(np.searchsorted(wanted, quantile), len(shares) - 1)
    begin = np.concatenate([[0.0], wanted])[cell]
    within = (quantile - begin) / np.maximum(wanted[cell] - begin, _EMPTY) - 0.5
    # Where the value of a cell is all there is (integers), `within` is rounded away.
    records[rows[order], place] = np.clip((cell + 0.98 * within) / (len(shares) - 1), 0, 1)


def _rearranged(
    codes: NDArray[np.int64], shares: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.int64]:
    """Codes with the wanted shares, as few of them changed as possible."""
    wanted = np.floor(shares * len(codes)).astype(np.int64)
    rest = shares * len(codes) - wanted
    wanted[np.argsort(-rest, kind="stable")[: len(codes) - int(wanted.sum())]] += 1
    found = np.bincount(codes, minlength=len(shares))
    free = [
        random.choice(np.flatnonzero(codes == code), found[code] - wanted[code], replace=False)
        for code in np.flatnonzero(found > wanted)
    ]
    if not free:
        return codes
    changed = codes.copy()
    lacking = np.maximum(wanted - found, 0)
    new = random.permutation(np.repeat(np.arange(len(shares)), lacking))
    changed[np.concatenate(free)] = new
    return changed


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
