"""How long each part of a feature is in a release: chosen by what is public once one is made.

An embedding holds the sums of its parts exactly, so nothing has to be decided before the records
are read. How much noise there will be, and by how many records it is divided, is known afterwards;
and which pairs of a table's columns are worth a measurement of their own, once the rest is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ...common.adjacency import Adjacency
from ...common.features.base import FeatureMap
from ...common.features.joint import JointFeatures, parts_of
from ...common.features.joint_image import JointImageFeatures
from ...embed.exact.grid import Grid
from ...embed.sums.file import Embedding
from ..mechanism.gaussian import NoiseScale

DIM: Final = 0.009
"""With more noise than this on a class's mean feature, in any one direction, a release of images is
of their pixels alone, and with less of network features alone: generators learn the noise of one
part beside what the other says."""
CHOSEN: Final = 10
"""So many pairs of columns are chosen, or as many as there are,"""
_LENGTH: Final = 0.3
"""and the part of a feature that is theirs is so long;"""
FAINT: Final = 0.002
"""but with more noise than this on a class's mean feature, in any one direction, there are none:
they would be noise, and nothing is to spare."""


@dataclass(frozen=True, eq=False)
class Weighed:
    """What a release is made of.

    Attributes:
        feature_map: of the release.
        rows: which rows of the embedding's sums are released, in this order, int64 (d,).
        scale: of the noise on these.
    """

    feature_map: FeatureMap
    rows: NDArray[np.int64]
    scale: NoiseScale

    def noise(self) -> NDArray[np.int64]:
        """Standard deviation of the noise on each row, int64 (d,)."""
        return self.scale.sigmas(len(self.rows))

    def where(self, chosen: NDArray[np.bool_]) -> Weighed:
        """Some of the rows, of the same map, with the noise that they have among all."""
        numbers = np.flatnonzero(chosen)
        return replace(self, rows=self.rows[numbers], scale=self.scale.of_rows(numbers))


def weighed(embedding: Embedding, scale: NoiseScale, adjacency: Adjacency) -> Weighed:
    """What a release of an embedding is made of; see `weigh`."""
    schema, grid = embedding.schema, embedding.grid
    blur = blur_of(scale, grid, len(schema.classes), embedding.records, adjacency)
    return weigh(embedding.feature_map, scale, blur)


def blur_of(
    scale: NoiseScale, grid: Grid, classes: int, records: int, adjacency: Adjacency
) -> float | None:
    """Noise of a class's mean feature along any one direction, if classes are equally frequent.

    Guarantee:
        Under add-remove, which protects the number of records, there is none.
    """
    if adjacency is not Adjacency.REPLACE_ONE:
        return None
    return scale.sigma * grid.unit * classes / records


def weigh(feature_map: FeatureMap, scale: NoiseScale, blur: float | None) -> Weighed:
    """The map of a release, and the noise on an embedding's sums that makes it one of this map.

    Of a map that leaves open which pairs of columns it has, the first ones stand for those that are
    chosen later, by `with_pairs`: what the noise is on everything does not depend on them.

    Guarantee:
        The squares of the factors times those of the parts' lengths add up to 1, up to roundings of
        2^-53. (docs/privacy/proofs.md, statement 22.)

    Args:
        feature_map: of the embedding.
        scale: of the noise on the map's features, whatever its parts weigh.
        blur: see `blur_of`; None if it is not public.

    Raises:
        BudgetError: a part would need more noise than 64 bits hold.
    """
    if is_undecided(feature_map):
        clear = blur is not None and blur <= FAINT
        groups = len(feature_map.marginals.groups)
        return with_pairs(feature_map, scale, range(min(CHOSEN, groups) if clear else 0))
    every = np.arange(feature_map.dimension)
    if not isinstance(feature_map, JointImageFeatures) or feature_map.weight is not None:
        return Weighed(feature_map, every, scale)
    of_main, of_pixels = feature_map.weights_of_parts
    border = feature_map.main.dimension
    # Beside a network whose features may be opposite the noise is for more than pixels need.
    dim = (blur or 0.0) > DIM and feature_map.main.nonnegative
    part, rows, weight = (
        (feature_map.pixels, every[border:], of_pixels)
        if dim
        else (feature_map.main, every[:border], of_main)
    )
    found = Weighed(part, rows, replace(scale, factors=np.full(len(rows), 1 / weight)))
    found.noise()
    return found


def is_undecided(feature_map: FeatureMap) -> TypeGuard[JointFeatures]:
    """Whether a release is to choose among pairs of columns that an embedding holds."""
    return isinstance(feature_map, JointFeatures) and feature_map.marginals.undecided


def with_pairs(feature_map: JointFeatures, scale: NoiseScale, chosen: Sequence[int]) -> Weighed:
    """What a release is made of that has these of the pairs that an embedding holds.

    Args:
        feature_map: of the embedding.
        scale: of the noise on the map's features, whatever its parts weigh.
        chosen: the pairs' numbers, in the order of the map.

    Raises:
        BudgetError: a part would need more noise than 64 bits hold.
    """
    released = feature_map.choosing(chosen, _LENGTH)
    before, after = parts_of(feature_map), parts_of(released)
    tables = list(zip(feature_map.marginals.entries, feature_map.marginals.places, strict=True))
    columns = len(feature_map.marginals.columns)
    kept = [*tables[:columns], *(tables[columns + number] for number in chosen)]
    rows = [np.arange(before.split)]
    factors = [np.full(before.split, after.main_weight / before.main_weight)]
    for (entry, place), new in zip(kept, released.marginals.entries, strict=True):
        rows.append(before.marginal_place.start + np.arange(place.start, place.stop))
        factors.append(np.full(len(rows[-1]), after.weight * new / (before.weight * entry)))
    rows.append(np.arange(before.moment_place.start, before.moment_place.stop))
    factors.append(np.full(len(rows[-1]), after.moment_weight / before.moment_weight))
    found = Weighed(released, np.concatenate(rows), replace(scale, factors=np.concatenate(factors)))
    found.noise()
    return found
