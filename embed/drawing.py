"""Draw a feature map for records of a schema, without looking at any record."""

from __future__ import annotations

import math
from typing import Final

from ..common.errors import SchemaError
from ..common.feature_map import FeatureMap
from ..common.feature_maps import FEATURES
from ..common.front import make_front
from ..common.hermite import HermiteFeatures
from ..common.ntk import OneHiddenLayerNTK
from ..common.rff import RandomFourierFeatures
from ..common.schema import ImageSchema

ARCHITECTURES: Final = ("fc_1l",)
DEFAULT_WIDTH: Final = 400
DEFAULT_FRONT: Final = "scattering"
DEFAULT_FREQUENCIES: Final = 5000
_VALUES_PER_SQUARED_LENGTH: Final = 7.5
"""DP-MERF's squared length scale for MNIST is 105, a 7.5th of the number of pixels."""


def draw_map(
    schema: ImageSchema,
    features: str,
    front: str | None,
    width: int,
    frequencies: int,
    length_scale: float | None,
    seed: int,
) -> FeatureMap:
    """Draw a feature map by the options of `embed`.

    Raises:
        SchemaError: there is no such map.
    """
    if features == "ntk":
        return OneHiddenLayerNTK.draw(
            make_front(front or DEFAULT_FRONT, schema.side),
            width=width,
            outputs=len(schema.classes),
            levels=schema.levels,
            seed=seed,
        )
    if front is not None:
        raise SchemaError("--front goes with --features ntk only")
    if features == "hermite":
        return HermiteFeatures.draw(schema.inputs, levels=schema.levels, seed=seed)
    if features == "rff":
        return RandomFourierFeatures.draw(
            schema.inputs,
            frequencies=frequencies,
            length_scale=length_scale or math.sqrt(schema.inputs / _VALUES_PER_SQUARED_LENGTH),
            levels=schema.levels,
            seed=seed,
        )
    raise SchemaError(f"--features {features}: known are {', '.join(FEATURES)}")
