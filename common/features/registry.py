"""All feature maps, by the name in their `spec`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from ..errors import SchemaError
from .base import FEATURE_MAPS, FeatureMap


def feature_map_from_spec(spec: object, weights: Mapping[str, NDArray[Any]]) -> FeatureMap:
    """Rebuild a map from its `spec()` and `weights()`.

    Raises:
        SchemaError: they do not describe a map that this version knows, or contradict each other.
    """
    if isinstance(spec, Mapping):
        kind = spec.get("features")
        known = FEATURE_MAPS.entries()
        if isinstance(kind, str) and kind in known:
            return known[kind].from_spec(spec, weights)
    raise SchemaError("feature map: not one that this dpntk knows")
