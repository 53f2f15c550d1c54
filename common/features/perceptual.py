"""Perceptual features: the normalised output of a module that was trained on public data.

phi(x) = v / ||v||, where v is the output of a pre-trained network for x, and phi(x) = 0 if v is 0
(Harder et al. 2023, "Pre-trained Perceptual Features Improve Differentially Private Image
Generation", DP-MEPF). The squares of v, divided by their own norm, may stand beside it, so that the
mean feature also shows how outputs vary. DP-MEPF releases them separately; here both parts share
one vector, and so one noise.

The module itself is a program and never part of a file. The map holds the SHA-256 of the module's
file and its output for one fixed image; with these, anybody who has the file can check that it
computes the same on their machine. `dpntk.common.features.torchscript` opens the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from ..errors import SchemaError
from ..schema import Schema
from .base import FEATURE_MAPS, described_so
from .ntk.layers import Shape

_LARGEST: Final = 1 << 24
_ROUNDING: Final = 1e-3


@FEATURE_MAPS.add("perceptual")
@dataclass(frozen=True, eq=False)
class PerceptualFeatures:
    """The feature map `perceptual`.

    Attributes:
        module: SHA-256 of the module's file, in hexadecimal.
        shape: the shape of the module's input for one record: (channels, side, side) for images.
        levels: records hold integers 0..levels; the module gets float32 values 0..1.
        probe: the module's output for `probe_record`, divided by its norm, float32 (outputs,).
        squares: b, the weight of the squares; 0 leaves them out. phi is (a v / ||v||,
            b v^2 / ||v^2||) with a^2 + b^2 = 1.
        rectified: whether negative outputs of the module count as 0 in v. Modules that end in a
            ReLU have none.

    Guarantee:
        norm_bound: each part of phi is a vector divided by its own norm, or 0, and a^2 + b^2 = 1.
        nonnegative: if rectified, because then no entry of phi is negative; otherwise the signs of
        the outputs are unknown. The module must have been trained on public data: nothing covers
        the records that it was trained on. (docs/privacy/proofs.md, statements 1, 2 and 3.)
    """

    module: str
    shape: Shape
    levels: int
    probe: NDArray[np.float32]
    squares: float = 0.0
    rectified: bool = False
    norm_bound: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if type(self.squares) is not float or not 0 <= self.squares < 1:
            raise SchemaError("feature map: the squares' weight must be from 0 to below 1")
        if type(self.rectified) is not bool:
            raise SchemaError("feature map: it is rectified or not")
        if re.fullmatch("[0-9a-f]{64}", self.module) is None:
            raise SchemaError("feature map: the module's SHA-256 is not one")
        numbers = (*self.shape, self.levels)
        if not 1 <= len(self.shape) <= 3 or not all(
            type(number) is int and 0 < number <= _LARGEST for number in numbers
        ):
            raise SchemaError("feature map: shape and levels are whole numbers")
        if self.record_size > _LARGEST:
            raise SchemaError("feature map: records too large")
        if self.probe.dtype != np.float32 or self.probe.ndim != 1:
            raise SchemaError("feature map: the probe must be a float32 vector")
        if not 0 < len(self.probe) <= _LARGEST or not np.isfinite(self.probe).all():
            raise SchemaError("feature map: the probe must be finite, with at most 2^24 numbers")
        if np.linalg.norm(self.probe.astype(np.float64)) > 1 + _ROUNDING:
            raise SchemaError("feature map: the probe is longer than a feature")

    @property
    def record_size(self) -> int:
        """Number of values in a record."""
        return math.prod(self.shape)

    @property
    def outputs(self) -> int:
        """The number of the module's outputs for a record."""
        return len(self.probe)

    @property
    def dimension(self) -> int:
        """The number of outputs, and of as many squares if there are any."""
        return 2 * self.outputs if self.squares else self.outputs

    @property
    def main_weight(self) -> float:
        """The weight a of the outputs themselves."""
        return math.sqrt(1 - self.squares**2)

    @property
    def plain(self) -> PerceptualFeatures:
        """The map without squares, with the signs of the outputs."""
        return PerceptualFeatures(self.module, self.shape, self.levels, self.probe)

    @property
    def nonnegative(self) -> bool:
        """See the class docstring."""
        return self.rectified

    def describe(self, schema: Schema) -> str:
        """A description for readers of a release."""
        rectified = "rectified " if self.rectified else ""
        squares = f", and their squares of weight {self.squares:g}" if self.squares else ""
        return f"{rectified}features of a pre-trained module (SHA-256 {self.module}){squares}"

    def spec(self) -> dict[str, Any]:
        """Everything beside `weights` and the module's file that is needed to rebuild the map."""
        return {
            "features": "perceptual",
            "module": self.module,
            "shape": list(self.shape),
            "outputs": self.outputs,
            "levels": self.levels,
            **({"squares": self.squares} if self.squares else {}),
            **({"rectified": True} if self.rectified else {}),
        }

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The probe; the module's own weights stay in its file."""
        return {"probe": self.probe}

    @classmethod
    def from_spec(
        cls, spec: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]
    ) -> PerceptualFeatures:
        """Rebuild a map from `spec()` and `weights()`.

        Raises:
            SchemaError: they do not describe a map that this dpntk knows, or contradict each other.
        """
        module, shape, levels = spec.get("module"), spec.get("shape"), spec.get("levels")
        if set(weights) != {"probe"} or not isinstance(module, str) or not isinstance(shape, list):
            raise SchemaError("feature map: perceptual has a module, a shape and a probe")
        if not isinstance(levels, int):
            raise SchemaError("feature map: shape and levels are whole numbers")
        squares, rectified = spec.get("squares", 0.0), spec.get("rectified", False)
        rebuilt = cls(module, tuple(shape), levels, weights["probe"], squares, rectified)
        return described_so(rebuilt, spec)


def probe_record(shape: Shape, levels: int) -> NDArray[np.int64]:
    """A fixed record that shows what a module computes: triangular numbers modulo levels + 1.

    Returns:
        int64 (record size,), 0..levels.
    """
    index = np.arange(math.prod(shape), dtype=np.int64)
    record: NDArray[np.int64] = index * (index + 1) // 2 % (levels + 1)
    return record
