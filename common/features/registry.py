"""The feature maps that there are, by the name in their `spec`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from numpy.typing import NDArray

from ..errors import SchemaError
from .base import FeatureMap
from .hermite import HermiteFeatures
from .joint import JointFeatures
from .marginals import MarginalFeatures
from .ntk.map import TangentFeatures
from .perceptual import PerceptualFeatures
from .rff import RandomFourierFeatures

_Rebuild = Callable[[Mapping[str, Any], Mapping[str, NDArray[Any]]], FeatureMap]

_KINDS: Final[dict[str, _Rebuild]] = {
    "ntk": TangentFeatures.from_spec,
    "rff": RandomFourierFeatures.from_spec,
    "hermite": HermiteFeatures.from_spec,
    "marginals": MarginalFeatures.from_spec,
    "joint": JointFeatures.from_spec,
    "perceptual": PerceptualFeatures.from_spec,
}

FEATURES: Final = tuple(kind for kind in _KINDS if kind not in ("marginals", "joint"))
"""Those that are chosen by name."""


def feature_map_from_spec(spec: object, weights: Mapping[str, NDArray[Any]]) -> FeatureMap:
    """Rebuild a map from its `spec()` and `weights()`.

    Raises:
        SchemaError: they do not describe a map that this dpntk knows, or contradict each other.
    """
    if isinstance(spec, Mapping):
        kind = spec.get("features")
        if isinstance(kind, str) and kind in _KINDS:
            return _KINDS[kind](spec, weights)
    raise SchemaError("feature map: not one that this dpntk knows")
