"""Tangent features of an image with its pixels beside them, in one vector that gets one noise.

The class-wise mean of pixels says least of all, and says it with the least noise: with few records
it is what a release can still show. `dpntk plan` says when that is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SchemaError
from ..schema import Schema
from .base import FEATURE_MAPS
from .ntk.map import TangentFeatures


@FEATURE_MAPS.add("joint-image")
@dataclass(frozen=True, eq=False)
class JointImageFeatures:
    """phi(x) = (a psi(x), b (x, s) / ||(x, s)||) with a^2 + b^2 = 1 and a constant s.

    The constant is what an image of an even grey of 1/10 is long: short enough to leave most of the
    feature to the pixels, and long enough to say, in the mean, how long images are.

    Attributes:
        main: psi.
        weight: b, above 0 and below 1.

    Guarantee:
        norm_bound: a^2 ||psi||^2 + b^2 is at most a^2 + b^2 = 1. nonnegative: pixels and s are
        not negative, so an inner product is a^2 times one of psi and something not
        negative.
        (docs/privacy/proofs.md, statements 1 and 2.)
    """

    main: TangentFeatures
    weight: float

    def __post_init__(self) -> None:
        if not 0 < self.weight < 1:
            raise SchemaError("feature map: the pixels' weight must be above 0 and below 1")

    @property
    def main_weight(self) -> float:
        """A."""
        return math.sqrt(1 - self.weight**2)

    @property
    def record_size(self) -> int:
        """Number of values in a record."""
        return self.main.record_size

    @property
    def levels(self) -> int:
        """Records hold integers 0..levels."""
        return self.main.levels

    @property
    def dimension(self) -> int:
        """Of psi, which comes first, of the pixels, and of the constant."""
        return self.main.dimension + self.record_size + 1

    @property
    def constant(self) -> int:
        """S, in the units of a record: as the levels are."""
        return max(1, math.isqrt(self.levels**2 * self.record_size) // 10)

    @property
    def norm_bound(self) -> float:
        """1: see the class docstring."""
        return 1.0

    @property
    def nonnegative(self) -> bool:
        """See the class docstring."""
        return self.main.nonnegative

    def describe(self, schema: Schema) -> str:
        """In words, for whoever reads a release."""
        return f"{self.main.describe(schema)}, and pixels of weight {self.weight:g}"

    def spec(self) -> dict[str, Any]:
        """All that is needed beside `weights` to rebuild the map, as plain JSON."""
        return {"features": "joint-image", "tangent": self.main.spec(), "weight": self.weight}

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Those of psi."""
        return self.main.weights()

    @classmethod
    def from_spec(
        cls, spec: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]
    ) -> JointImageFeatures:
        """Rebuild a map from `spec()` and `weights()`.

        Raises:
            SchemaError: they do not describe such a map.
        """
        main, weight = spec.get("tangent"), spec.get("weight")
        if not isinstance(main, Mapping):
            raise SchemaError("feature map: a joint map has two parts, one of them a network's")
        if not isinstance(weight, float):
            raise SchemaError("feature map: the pixels' weight must be a number")
        rebuilt = cls(TangentFeatures.from_spec(main, weights), weight)
        if rebuilt.spec() != dict(spec):
            raise SchemaError("feature map: not one that this dpntk knows")
        return rebuilt
