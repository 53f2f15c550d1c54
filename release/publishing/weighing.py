"""How long each part of a feature is in a release: chosen by what is public once one is made.

An embedding holds the sums of its parts exactly, so nothing has to be decided before the records
are read. How much noise there will be, and by how many records it is divided, is known afterwards.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from ...common.adjacency import Adjacency
from ...common.features.base import FeatureMap
from ...common.features.joint_image import JointImageFeatures
from ...embed.exact.grid import Grid
from ...embed.sums.file import Embedding
from ..mechanism.gaussian import NoiseScale

HALF: Final = 0.03
"""With so much noise on a class's mean feature, in any one direction, half of a squared feature is
its pixels: with more, network features hardly tell classes from one another any more."""
_POWER: Final = 6
"""Of the noise, as which the odds of pixels rise: there is not much between."""
_LEAST, _MOST = 0.25, 0.9
"""Weights of pixels. Below, they are noise that generators learn, and are left out; above, nothing
is left that tells records of a class from one another."""


def weighed(
    embedding: Embedding, scale: NoiseScale, adjacency: Adjacency
) -> tuple[FeatureMap, NoiseScale]:
    """The map of a release of an embedding, and the noise that its sums get; see `weigh`."""
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


def weigh(
    feature_map: FeatureMap, scale: NoiseScale, blur: float | None
) -> tuple[FeatureMap, NoiseScale]:
    """The map of a release, and the noise on an embedding's sums that makes it one of this map.

    Guarantee:
        The squares of the factors times those of the parts' lengths add up to 1, up to roundings of
        2^-53. (docs/privacy/proofs.md, statement 22.) Rows of the sums that have none, the
        last ones, are left out of the release.

    Args:
        feature_map: of the embedding.
        scale: of the noise on the map's features, whatever its parts weigh.
        blur: see `blur_of`; None if it is not public.

    Raises:
        BudgetError: a part would need more noise than 64 bits hold.
    """
    if not isinstance(feature_map, JointImageFeatures) or feature_map.weight is not None:
        return feature_map, scale
    odds = ((blur or 0.0) / HALF) ** _POWER
    weight = min(math.sqrt(odds / (1 + odds)), _MOST)
    of_main, of_pixels = feature_map.weights_of_parts
    border = feature_map.main.dimension
    if weight < _LEAST:
        return feature_map.main, replace(scale, factors=np.full(border, 1 / of_main))
    released = feature_map.weighed(weight)
    main, pixels = released.weights_of_parts
    sizes = border, feature_map.dimension - border
    factors = np.repeat([main / of_main, pixels / of_pixels], sizes)
    scale = replace(scale, factors=factors)
    scale.sigmas(len(factors))
    return released, scale
