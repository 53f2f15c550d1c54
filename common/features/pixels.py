"""An image's pixels as its feature: the map for noisy class means.

Of all maps, this one reveals the least, with the least noise: a release of few records can still
show the class-wise mean of pixels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import SchemaError
from ..schema import Schema
from .base import FEATURE_MAPS, described_so


@FEATURE_MAPS.add("pixels")
@dataclass(frozen=True)
class PixelFeatures:
    """phi(x) = (x, s) / ||(x, s)|| with a constant s.

    The constant has the norm of an image with uniform grey 1/10: small enough to leave most of the
    feature to the pixels, and large enough for the mean to show the norm of images.

    Attributes:
        record_size: number of values in a record.
        levels: records hold integers 0..levels.

    Guarantee:
        norm_bound: phi is a vector divided by its norm. nonnegative: pixels and s are not negative.
        (docs/privacy/proofs.md, statements 1 and 2.)
    """

    record_size: int
    levels: int
    norm_bound: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (1 <= self.record_size <= 2**20 and 1 <= self.levels <= 2**16):
            # Above this, sums of squares could reach 2^53 and be inexact.
            raise SchemaError("feature map: so many pixels, or such levels, are not added exactly")

    @property
    def constant(self) -> int:
        """The constant s, in the units of a record's values, which are levels."""
        return max(1, math.isqrt(self.levels**2 * self.record_size) // 10)

    @property
    def constant_of_white(self) -> float:
        """The constant's entry for a white image, which is the smallest of all images."""
        return self.constant / math.hypot(self.constant, self.levels * math.sqrt(self.record_size))

    @property
    def dimension(self) -> int:
        """The number of features: the pixels, and the constant, which comes last."""
        return self.record_size + 1

    def describe(self, schema: Schema) -> str:
        """A description for readers of a release."""
        return "pixels themselves: mean images"

    def spec(self) -> dict[str, Any]:
        """Everything that is needed to rebuild the map, as plain JSON."""
        return {"features": "pixels", "inputs": self.record_size, "levels": self.levels}

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """None: nothing is drawn."""
        return {}

    @classmethod
    def from_spec(
        cls, spec: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]
    ) -> PixelFeatures:
        """Rebuild a map from `spec()` and `weights()`.

        Raises:
            SchemaError: they do not describe such a map.
        """
        inputs, levels = spec.get("inputs"), spec.get("levels")
        if weights or type(inputs) is not int or type(levels) is not int:
            raise SchemaError("feature map: pixels have no weights, and two whole numbers")
        return described_so(cls(inputs, levels), spec)
