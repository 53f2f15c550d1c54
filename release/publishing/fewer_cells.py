"""Fewer cells of numbers in a release, where noise would hide as many as an embedding has.

An embedding counts numbers in `CELLS` cells between their bounds. Each of a release's counts has
the same noise, however many there are. So the fewer cells there are, the less noise is there in all
and on what many of them say together, such as a mean. If noise would hide an evenly spread number,
neighbouring cells are added up before noise is added.

The borders of the fewer cells are among those of all (`FEW_CELLS`). So the sums are, to the bit,
those that an embedding with fewer cells would have of the same columns and pairs.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...common.features.base import FeatureMap
from ...common.features.joint import JointFeatures, parts_of
from ...common.features.marginals.cells import (
    CELLS,
    FEW_CELLS,
    MarginalColumn,
    MarginalGroup,
    nearest_cell,
)
from ...common.schema.table import LEVELS
from ...embed.sums.file import Embedding
from ..mechanism.gaussian import NoiseScale
from .layout import layout_of
from .lengths import blur_of, is_undecided

MUCH_NOISE: Final = 4.0
"""Noise on the share of a cell in all classes, relative to an even share, above which there are
fewer. With less, stage three makes up for it by what the network's features say of columns."""

Sums = NDArray[np.int64]


def with_fewer_cells(embedding: Embedding, scale: NoiseScale, records: int) -> Embedding:
    """The embedding with as many cells of numbers as a release shows.

    Guarantee:
        The sums are those of a feature map with fewer cells, to which the guarantee of any map
        applies. Which one is a function of the noise, of the given number of records and of what is
        public. (docs/privacy/proofs.md, statements 4 and 22.)

    Args:
        embedding: the exact sums.
        scale: of the noise on them.
        records: number of records: the public one, or an estimate from noisy counts.
    """
    classes = len(embedding.schema.classes)
    blur = blur_of(scale, embedding.grid, classes, records)
    fewer = map_with_fewer_cells(embedding.feature_map, scale, blur, classes)
    if fewer is embedding.feature_map:
        return embedding
    assert isinstance(fewer, JointFeatures)
    assert isinstance(embedding.feature_map, JointFeatures)
    sums = added_up(embedding.sums, embedding.feature_map, fewer)
    return replace(embedding, feature_map=fewer, sums=sums)


def map_with_fewer_cells(
    feature_map: FeatureMap, scale: NoiseScale, blur: float, classes: int
) -> FeatureMap:
    """The feature map of an embedding with as many cells of numbers as a release shows.

    Args:
        feature_map: of the embedding; one that leaves no pairs to the release stays as it is.
        scale: of the noise on its features.
        blur: see `lengths.blur_of`.
        classes: number of classes.
    """
    if not is_undecided(feature_map):
        return feature_map
    parts = parts_of(layout_of(feature_map, scale, blur, classes).feature_map)
    assert parts.marginals is not None
    noise = blur / math.sqrt(classes) / (parts.weight * parts.marginals.entry)
    return of_few_cells(feature_map) if noise * CELLS > MUCH_NOISE else feature_map


def of_few_cells(feature_map: JointFeatures) -> JointFeatures:
    """The map with `FEW_CELLS` cells of each number that has more values than cells.

    Args:
        feature_map: one that leaves pairs to the release.
    """
    marginals = feature_map.marginals
    many = {column.start for column in marginals.by_level}

    def fewer(column: MarginalColumn) -> MarginalColumn:
        return replace(column, cells=FEW_CELLS) if column.start in many else column

    groups = (replace(group, sides=tuple(map(fewer, group.sides))) for group in marginals.groups)
    return replace(
        feature_map,
        marginals=replace(
            marginals,
            columns=tuple(map(fewer, marginals.columns)),
            groups=tuple(groups),
        ),
    )


def added_up(sums: Sums, before: JointFeatures, after: JointFeatures) -> Sums:
    """The sums of an embedding, with those of neighbouring cells added up.

    Args:
        sums: int64 (d, c).
        before: their feature map.
        after: the same with fewer cells of some numbers.
    """
    found = np.zeros((after.dimension, sums.shape[1]), dtype=np.int64)
    old, new = parts_of(before), parts_of(after)
    found[: new.split], found[new.moment_place] = sums[: old.split], sums[old.moment_place]
    tables = zip(before.marginals.tables, before.marginals.places, strict=True)
    others = zip(after.marginals.tables, after.marginals.places, strict=True)
    for (table, place), (fewer, into) in zip(tables, others, strict=True):
        rows = sums[old.split + place.start : old.split + place.stop]
        np.add.at(found[new.split + into.start : new.split + into.stop], _cells(table, fewer), rows)
    return found


def _cells(
    before: MarginalColumn | MarginalGroup, after: MarginalColumn | MarginalGroup
) -> NDArray[np.int64]:
    """The cell of a table with fewer cells that contains each of its cells, (cells,)."""
    sides, fewer = (
        table.sides if isinstance(table, MarginalGroup) else (table,) for table in (before, after)
    )
    found = np.zeros(1, dtype=np.int64)
    for side, other in zip(sides, fewer, strict=True):
        within = np.arange(side.dimension)
        if side.cells != other.cells:
            within[: side.known] = _containing(side.cells, other.cells)
            within[side.known :] = other.known  # of missing values
        found = (found[:, None] * other.dimension + within).ravel()
    return found


def _containing(cells: int, fewer: int) -> NDArray[np.int64]:
    """Which of `fewer` cells contains each of `cells`."""
    levels = np.arange(LEVELS + 1)
    found = np.zeros(cells, dtype=np.int64)
    found[nearest_cell(levels, cells)] = nearest_cell(levels, fewer)
    return found
