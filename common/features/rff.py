"""Random Fourier features: the kernel exp(-||x - x'||^2 / (2 l^2)), the map of DP-MERF.

phi(x) = (cos(2 pi t_1 x), sin(2 pi t_1 x), ..., cos(2 pi t_k x), sin(2 pi t_k x)) / sqrt(k), with
frequencies t_j drawn from N(0, 1 / (2 pi l)^2) for each value of x (Rahimi and Recht 2007, "Random
Features for Large-Scale Kernel Machines"; Harder, Adamczewski and Park 2021, "DP-MERF").

Frequencies are multiples of 2^-32 turns per level of a value, so that t_j x is an exact number of
2^-32 turns for every record: see `dpntk.embed.exact.rff`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from ..errors import SchemaError
from ..schema import Schema
from .base import FEATURE_MAPS, described_so
from .ntk.map import EXACT

TURN: Final = 2**32
"""A full turn in units of the frequencies' grid."""
_LARGEST: Final = 2**24


@FEATURE_MAPS.add("rff")
@dataclass(frozen=True, eq=False)
class RandomFourierFeatures:
    """The feature map `rff`.

    Attributes:
        turns: turns per level of a value, float32 (k, record size), multiples of 2^-32.
        levels: records hold integers 0..levels.

    Guarantee:
        norm_bound: cos^2 + sin^2 = 1 for each of the k frequencies. nonnegative: no. The inner
        product of two features is the mean of cos(2 pi t_j (x - x')), which the noise of the draw
        makes negative for records far apart. (docs/privacy/proofs.md, statements 1 and 2.)
    """

    turns: NDArray[np.float32]
    levels: int
    norm_bound: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.turns.dtype != np.float32 or self.turns.ndim != 2 or not self.turns.size:
            raise SchemaError("feature map: the frequencies must be a float32 matrix")
        units = self.turns.astype(np.float64) * TURN
        if not np.array_equal(units, np.rint(units)) or np.abs(units).max() > _LARGEST:
            raise SchemaError("feature map: the frequencies are not on their grid")
        longest = np.abs(units).sum(axis=1).max() * self.levels
        if not 1 <= self.levels <= 2**16 or self.record_size > 2**20 or longest >= EXACT:
            raise SchemaError("feature map: the phases could not be summed exactly")

    @classmethod
    def draw(
        cls,
        record_size: int,
        *,
        frequencies: int,
        length_scale: float,
        levels: int,
        seed: int,
        places: Sequence[int] | None = None,
    ) -> RandomFourierFeatures:
        """Draw the frequencies at random, without looking at any record.

        Args:
            record_size: number of values in a record.
            frequencies: k, half the dimension.
            length_scale: l, for values 0..1.
            levels: largest integer in a record.
            seed: the seed of the frequencies alone.
            places: the places of the values that the kernel uses; all if None.
        """
        normal = np.random.default_rng(seed).standard_normal((frequencies, record_size))
        if places is not None:
            unseen = np.ones(record_size, dtype=bool)
            unseen[list(places)] = False
            normal[:, unseen] = 0
        units = np.rint(normal * (TURN / (2 * math.pi * length_scale * levels)))
        return cls((units.clip(-_LARGEST, _LARGEST) / TURN).astype(np.float32), levels)

    @property
    def frequencies(self) -> int:
        """Half the dimension."""
        return int(self.turns.shape[0])

    @property
    def record_size(self) -> int:
        """Number of values in a record."""
        return int(self.turns.shape[1])

    @property
    def dimension(self) -> int:
        """A cosine and a sine for each frequency."""
        return 2 * self.frequencies

    def describe(self, schema: Schema) -> str:
        """A description for readers of a release."""
        return f"random Fourier features, {self.frequencies:,} frequencies"

    def spec(self) -> dict[str, Any]:
        """Everything beside `weights` that is needed to rebuild the map, as plain JSON."""
        return {
            "features": "rff",
            "frequencies": self.frequencies,
            "inputs": self.record_size,
            "levels": self.levels,
        }

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The drawn frequencies."""
        return {"turns": self.turns}

    @classmethod
    def from_spec(
        cls, spec: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]
    ) -> RandomFourierFeatures:
        """Rebuild a map from `spec()` and `weights()`.

        Raises:
            SchemaError: they do not describe a map that this dpntk knows, or contradict each other.
        """
        levels = spec.get("levels")
        if set(weights) != {"turns"} or not isinstance(levels, int) or isinstance(levels, bool):
            raise SchemaError("feature map: rff has the weights turns, and a number of levels")
        return described_so(cls(weights["turns"], levels), spec)
