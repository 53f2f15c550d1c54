"""The parts of an embedding that a release holds, their weights, and their noise.

This is decided when a release is made, not before the records are read: an embedding holds exact
sums of all parts, and only at release is it known how much noise there will be and by how many
records it is divided. The choice of pairs of a table's columns comes last (`measurement`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from ...common.features.base import FeatureMap
from ...common.features.joint import JointFeatures, parts_of
from ...common.features.joint_image import JointImageFeatures
from ...common.features.marginals.cells import MarginalColumn, MarginalGroup
from ...common.features.marginals.map import GroupChoice, MarginalFeatures
from ...embed.sums.file import Embedding
from ..mechanism.gaussian import NoiseScale
from .lengths import (
    FOLDED,
    PairLengths,
    blur_of,
    decisive_blurs,
    is_undecided,
    length_of_levels,
    lengths_of_pairs,
)
from .merging import merged_cells
from .weights import extreme_weights, weighed_for

LARGEST_NETWORK_BLUR: Final = 0.009
"""The largest blur (`blur_of`) at which a release of images holds the features of a network; above
it, it holds pixels alone. It never holds both: a generator would learn the noise of the worse
part."""
CHOSEN_PAIRS: Final = 10
"""Number of pairs of columns that a release chooses, if there are that many."""


@dataclass(frozen=True, eq=False)
class ReleaseLayout:
    """What a release is made of.

    Attributes:
        feature_map: of the release.
        rows: rows of the embedding's sums that are released, int64 (n,).
        into: row of the release that each of these is added to, int64 (n,), in increasing order;
            merged cells share a row, and a row that no record can reach is not among them.
        dimension: number of rows of the release, d.
        scale: of the noise on the rows of the release.
        weighed: the embedding's map with the weights that the release gives its parts, if it
            leaves pairs of columns undecided.
        pairs: how pairs of columns are measured; None if they are not.
        by_level: length of the part that counts the levels of numbers; None if there is none.
    """

    feature_map: FeatureMap
    rows: NDArray[np.int64]
    into: NDArray[np.int64]
    dimension: int
    scale: NoiseScale
    weighed: JointFeatures | None = None
    pairs: PairLengths | None = None
    by_level: float | None = None

    def noise(self) -> NDArray[np.int64]:
        """Standard deviation of the noise on each row of the release, int64 (d,)."""
        return self.scale.sigmas(self.dimension)

    def within(self, place: slice) -> NDArray[np.bool_]:
        """Which rows of the release come from a place in the embedding's sums, bool (d,)."""
        inside = np.zeros(self.dimension, dtype=np.bool_)
        inside[self.into[(self.rows >= place.start) & (self.rows < place.stop)]] = True
        return inside

    def sums(self, exact: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sums that are released, before noise is added.

        Guarantee:
            Each of the embedding's rows is added to one row of the release. A row to which none is
            added, as if two numbers are folded that are cut into a single part each, is 0.
            (docs/privacy/proofs.md, statement 23.)

        Args:
            exact: sums of an embedding, int64 (D, c).

        Returns:
            int64 (d, c).
        """
        reached, starts = np.unique(self.into, return_index=True)
        added = np.zeros((self.dimension, exact.shape[1]), dtype=np.int64)
        added[reached] = np.add.reduceat(exact[self.rows], starts, axis=0)
        return added

    def where(self, chosen: NDArray[np.bool_]) -> ReleaseLayout:
        """Restrict to some rows of the release, with the same map and noise.

        Args:
            chosen: bool (d,).
        """
        numbers = np.cumsum(chosen) - 1
        kept = chosen[self.into]
        return replace(
            self,
            rows=self.rows[kept],
            into=numbers[self.into[kept]],
            dimension=int(chosen.sum()),
            scale=self.scale.of_rows(np.flatnonzero(chosen)),
        )


@dataclass(frozen=True, eq=False)
class _Segment:
    """Rows of a release that follow one another, and what the embedding has of them.

    Attributes:
        rows: rows of the embedding's sums, int64 (n,).
        into: row of the segment that each of these is added to, int64 (n,), in increasing order.
        dimension: number of rows of the segment; some may have nothing added to them.
        factor: by which the rows are multiplied after the noise is added (`NoiseScale`).
    """

    rows: NDArray[np.int64]
    into: NDArray[np.int64]
    dimension: int
    factor: float

    @classmethod
    def copied(cls, place: slice, factor: float) -> _Segment:
        """All rows at a place in the embedding's sums, as they are."""
        rows = np.arange(place.start, place.stop)
        return cls(rows, np.arange(len(rows)), len(rows), factor)

    @classmethod
    def added_up(
        cls, place: slice, cells: NDArray[np.int64], dimension: int, factor: float
    ) -> _Segment:
        """The rows at a place, added up within each of `dimension` cells."""
        order = np.argsort(cells, kind="stable")
        return cls(np.arange(place.start, place.stop)[order], cells[order], dimension, factor)


def layout_of_embedding(embedding: Embedding, scale: NoiseScale, records: int) -> ReleaseLayout:
    """What a release of an embedding is made of; see `layout_of`.

    Guarantee:
        A function of the given number of records, of the noise and of what is public.
    """
    schema, grid = embedding.schema, embedding.grid
    classes = len(schema.classes)
    blur = blur_of(scale, grid, classes, records)
    return layout_of(embedding.feature_map, scale, blur, classes)


def layout_of(
    feature_map: FeatureMap, scale: NoiseScale, blur: float, classes: int
) -> ReleaseLayout:
    """The map of a release, and the noise on the embedding's sums that corresponds to it.

    If the embedding leaves pairs of columns undecided, the first pairs stand in for those that
    `with_pairs` receives later, with cells as if all values were equally frequent. The noise on a
    row depends on neither.

    Guarantee:
        The squares of the factors times those of the parts' lengths add up to 1, up to roundings of
        2^-53. (docs/privacy/proofs.md, statement 22.)

    Args:
        feature_map: of the embedding.
        scale: of the noise on the map's features, whatever its parts weigh.
        blur: see `blur_of`.
        classes: number of classes.

    Raises:
        BudgetError: a part would need more noise than 64 bits hold.
    """
    if isinstance(feature_map, JointFeatures):
        weighed = weighed_for(feature_map, blur, classes)
        return _of_table(feature_map, weighed, scale, blur, classes)
    if isinstance(feature_map, JointImageFeatures) and feature_map.weight is None:
        return _network_or_pixels(feature_map, scale, blur)
    return _unchanged(feature_map, scale)


def extreme_layouts(
    feature_map: FeatureMap, scale: NoiseScale, classes: int
) -> Iterator[ReleaseLayout]:
    """Layouts among which each part is as long and as short as it may be at any blur.

    Args:
        feature_map: of the embedding.
        scale: of the noise on the map's features, whatever its parts weigh.
        classes: number of classes.

    Raises:
        BudgetError: a part would need more noise than 64 bits hold.
    """
    blurs = decisive_blurs(feature_map, classes)
    if not isinstance(feature_map, JointFeatures):
        yield from (layout_of(feature_map, scale, blur, classes) for blur in blurs)
        return
    # The weights share out what pairs leave.
    for weighed, blur in itertools.product(extreme_weights(feature_map, classes), blurs):
        yield _of_table(feature_map, weighed, scale, blur, classes)


def _of_table(
    feature_map: JointFeatures,
    weighed: JointFeatures,
    scale: NoiseScale,
    blur: float,
    classes: int,
) -> ReleaseLayout:
    """`layout_of` for a table, with the given weights of its parts."""
    if not is_undecided(feature_map):
        if feature_map.weights_undecided:
            return _with_weights(feature_map, weighed, scale)
        return _unchanged(feature_map, scale)
    marginals = feature_map.marginals
    pairs = lengths_of_pairs(marginals, blur, classes)
    if pairs is None:
        return with_pairs(feature_map, weighed, scale, None)
    some = marginals.named or range(min(CHOSEN_PAIRS, len(marginals.groups)))
    evenly = np.ones(marginals.dimension, dtype=np.int64)
    fine = GroupChoice(some, pairs.fine, merged_cells(marginals, evenly))
    coarse = None
    if pairs.parts:
        coarse = coarse_pairs(pairs, marginals, merged_cells(marginals, evenly, pairs.parts))
    by_level = length_of_levels(marginals, blur)
    found = with_pairs(feature_map, weighed, scale, fine, coarse, by_level)
    return replace(found, pairs=pairs, by_level=by_level)


def _unchanged(feature_map: FeatureMap, scale: NoiseScale) -> ReleaseLayout:
    """`layout_of` for a map in which nothing is undecided."""
    every = np.arange(feature_map.dimension)
    return ReleaseLayout(feature_map, every, every, len(every), scale)


def _with_weights(
    feature_map: JointFeatures, weighed: JointFeatures, scale: NoiseScale
) -> ReleaseLayout:
    """`layout_of` for a table whose pairs of columns are chosen, but not the weights of parts."""
    before, after = parts_of(feature_map), parts_of(weighed)
    segments = [
        _Segment.copied(slice(0, before.split), after.main_weight / before.main_weight),
        _Segment.copied(before.marginal_place, after.weight / before.weight),
    ]
    if before.moments is not None:
        factor = after.moment_weight / before.moment_weight
        segments.append(_Segment.copied(before.moment_place, factor))
    return _of_segments(weighed, segments, scale)


def _network_or_pixels(
    feature_map: JointImageFeatures, scale: NoiseScale, blur: float
) -> ReleaseLayout:
    """`layout_of` for images whose embedding has both parts, of which a release holds one."""
    border = feature_map.main.dimension
    of_main, of_pixels = feature_map.weights_of_parts
    part: FeatureMap
    # Features that may be opposite, as those of some networks, need more noise than pixels do.
    if blur > LARGEST_NETWORK_BLUR and feature_map.main.nonnegative:
        part, place, weight = feature_map.pixels, slice(border, feature_map.dimension), of_pixels
    else:
        part, place, weight = feature_map.main, slice(0, border), of_main
    return _of_segments(part, [_Segment.copied(place, 1 / weight)], scale)


def coarse_pairs(
    pairs: PairLengths,
    marginals: MarginalFeatures,
    merging: Mapping[MarginalColumn, MarginalColumn],
) -> GroupChoice:
    """The coarse pairs: all pairs of columns of numbers, in few cells."""
    folded = pairs.parts == FOLDED
    return GroupChoice(marginals.pairs_of_numbers, pairs.coarse, merging, folded)


def with_pairs(
    feature_map: JointFeatures,
    weighed: JointFeatures,
    scale: NoiseScale,
    fine: GroupChoice | None,
    coarse: GroupChoice | None = None,
    by_level: float | None = None,
) -> ReleaseLayout:
    """What a release is made of, with the given pairs of an embedding.

    Args:
        feature_map: of the embedding.
        weighed: the same with the weights that the release gives its parts.
        scale: of the noise on the map's features, whatever its parts weigh.
        fine: the chosen pairs; None for no pairs at all.
        coarse: the coarse pairs; None for none.
        by_level: length of the part that counts the levels of numbers; None leaves it out.

    Raises:
        BudgetError: a part would need more noise than 64 bits hold.
    """
    released = weighed.choosing(fine, coarse, by_level)
    before, after = parts_of(feature_map), parts_of(released)
    marginals, left = feature_map.marginals, released.marginals
    columns, border = len(marginals.columns), len(marginals.columns) + len(marginals.by_level)
    groups = [number for choice in (coarse, fine) if choice for number in choice.numbers]
    singles = range(border if by_level is not None else columns)
    kept = [*singles, *(border + number for number in groups)]
    tables, places, entries = marginals.tables, marginals.places, marginals.entries
    segments = [_Segment.copied(slice(0, before.split), after.main_weight / before.main_weight)]
    for number, table, entry in zip(kept, left.tables, left.entries, strict=True):
        place = slice(before.split + places[number].start, before.split + places[number].stop)
        factor = after.weight * entry / (before.weight * entries[number])
        group = tables[number]
        if isinstance(group, MarginalGroup) and isinstance(table, MarginalGroup):
            cells = _merged(group, table)
            segments.append(_Segment.added_up(place, cells, table.dimension, factor))
        else:
            segments.append(_Segment.copied(place, factor))
    factor = after.moment_weight / before.moment_weight
    segments.append(_Segment.copied(before.moment_place, factor))
    return _of_segments(released, segments, scale, weighed)


def _of_segments(
    feature_map: FeatureMap,
    segments: Sequence[_Segment],
    scale: NoiseScale,
    weighed: JointFeatures | None = None,
) -> ReleaseLayout:
    """The layout of a release that consists of some segments, in this order.

    Raises:
        BudgetError: 64 bits do not hold the noise.
    """
    sizes = [segment.dimension for segment in segments]
    starts = np.cumsum([0, *sizes[:-1]])
    shifted = [start + segment.into for start, segment in zip(starts, segments, strict=True)]
    found = ReleaseLayout(
        feature_map,
        np.concatenate([segment.rows for segment in segments]),
        np.concatenate(shifted),
        sum(sizes),
        replace(scale, factors=np.repeat([segment.factor for segment in segments], sizes)),
        weighed,
    )
    found.noise()  # raises
    return found


def _merged(before: MarginalGroup, after: MarginalGroup) -> NDArray[np.int64]:
    """The cell of the merged group that contains each cell of the original group."""
    sides = zip(before.sides, after.sides, strict=True)
    cells = torch.meshgrid(
        *(merged.merge(torch.arange(side.dimension)) for side, merged in sides), indexing="ij"
    )
    found: NDArray[np.int64] = after.cell_among(dict(zip(after.sides, cells, strict=True))).numpy()
    return found.flatten()
