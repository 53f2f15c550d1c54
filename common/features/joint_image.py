"""An image's tangent features and its pixels, in one vector that gets noise once.

An embedding has both parts, of equal length, and a release chooses one of them by what is public
then. Alternatively, the owner fixes the parts' lengths when embedding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from ..errors import SchemaError
from ..schema import Schema
from .base import FEATURE_MAPS, described_so
from .ntk.map import TangentFeatures
from .pixels import PixelFeatures

_EVEN: Final = math.sqrt(0.5)


@FEATURE_MAPS.add("joint-image")
@dataclass(frozen=True, eq=False)
class JointImageFeatures:
    """phi(x) = (a psi(x), b chi(x)) with a^2 + b^2 = 1, where chi is the map of pixels.

    Attributes:
        main: psi.
        weight: b, above 0 and below 1; None in an embedding if a release is to choose one of the
            parts. Until then a = b.

    Guarantee:
        norm_bound: a^2 ||psi||^2 + b^2 is at most a^2 + b^2 = 1. nonnegative, if psi is: an inner
        product is a^2 times that of psi plus b^2 times that of chi, which is not negative.
        (docs/privacy/proofs.md, statements 1 and 2.)
    """

    main: TangentFeatures
    weight: float | None
    norm_bound: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if self.weight is not None and not 0 < self.weight < 1:
            raise SchemaError("feature map: the pixels' weight must be above 0 and below 1")

    @property
    def weights_of_parts(self) -> tuple[float, float]:
        """The weights a and b."""
        pixels = _EVEN if self.weight is None else self.weight
        return math.sqrt(1 - pixels**2), pixels

    @property
    def pixels(self) -> PixelFeatures:
        """The map of the pixels, chi."""
        return PixelFeatures(self.record_size, self.levels)

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
        """The number of features: those of psi, which come first, and of chi."""
        return self.main.dimension + self.pixels.dimension

    @property
    def nonnegative(self) -> bool:
        """See the class docstring."""
        return self.main.nonnegative

    def describe(self, schema: Schema) -> str:
        """A description for readers of a release."""
        return f"{self.main.describe(schema)}, {self.beside}"

    @property
    def beside(self) -> str:
        """The part beside the network's features, in words."""
        if self.weight is None:
            return "or pixels: a release chooses"
        return f"and pixels of weight {self.weight:.3g}"

    def spec(self) -> dict[str, Any]:
        """Everything beside `weights` that is needed to rebuild the map, as plain JSON."""
        return {"features": "joint-image", "tangent": self.main.spec(), "weight": self.weight}

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The weights of psi."""
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
        if not isinstance(weight, float | None):
            raise SchemaError("feature map: the pixels' weight must be a number")
        return described_so(cls(TangentFeatures.from_spec(main, weights), weight), spec)
