"""Random Fourier features (DP-MERF) of images, and of the numbers and categories of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ..common.features.base import FeatureMap
from ..common.features.joint import JointFeatures
from ..common.features.marginals import MarginalFeatures
from ..common.features.rff import RandomFourierFeatures
from ..common.schema import Schema
from ..common.schema.encoding import blocks_of
from ..common.schema.table import TableSchema

_VALUES_PER_SQUARED_LENGTH: Final = 7.5
"""DP-MERF's squared length scale for MNIST is 105, a 7.5th of the number of pixels."""


def fourier_features(
    schema: Schema, frequencies: int, length_scale: float | None, seed: int
) -> FeatureMap:
    """Of images all values; of tables numbers, and categories beside them in one-hot form.

    Args:
        schema: of the records.
        frequencies: how many; there are twice as many features.
        length_scale: of the Gaussian kernel, for values 0..1; sqrt(k / 7.5) for k values if None.
        seed: of the frequencies.
    """
    places: Sequence[int] = range(schema.record_size)
    categories = None
    if isinstance(schema, TableSchema):
        numeric = [block for block in blocks_of(schema) if block.column.kind.numeric]
        places = [block.place.start for block in numeric]
        places += [block.place.stop - 1 for block in numeric if block.missing_place]
        if len(numeric) < len(schema.features):
            categories = MarginalFeatures.of(schema, numbers=False)
        if categories is not None and not numeric:
            return categories
    numbers = RandomFourierFeatures.draw(
        schema.record_size,
        frequencies=frequencies,
        length_scale=length_scale or math.sqrt(len(places) / _VALUES_PER_SQUARED_LENGTH),
        levels=schema.levels,
        seed=seed,
        places=places,
    )
    if categories is None:
        return numbers
    return JointFeatures(numbers, categories, math.sqrt(0.5))  # both kernels are at most 1
