"""Fronts: fixed transforms of a record into the network's inputs.

A front is part of the feature map, and is drawn or computed without looking at any record. Its
outputs are integers 0..levels like the records themselves, so the network's exactness
(`dpntk.common.numerics.exact`) and the non-negativity of its kernel are preserved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ...arguments import argument
from ...errors import SchemaError

FILTER_GRID: Final = 2.0**-14
_SCALES: Final = (0.8, 1.6)
_ORIENTATIONS: Final = 8
_SLANT: Final = 0.5
_FREQUENCY: Final = 3 * math.pi / 5
"""Radians per pixel at scale 1; it falls as the scale grows."""
_RADIUS: Final = 5
STRIDE: Final = 2
POOL: Final = 2
GAIN: Final = 2
"""Local means of moduli are multiplied by this before they are clipped at 1, which few images
reach."""


@runtime_checkable
class Front(Protocol):
    """A fixed transform of records into network inputs."""

    @property
    def record_size(self) -> int:
        """Number of values in a record."""
        ...

    @property
    def outputs(self) -> int:
        """The number of network inputs; the first `record_size` are the record."""
        ...

    def spec(self) -> dict[str, Any]:
        """Everything beside `weights` that is needed to rebuild it, as plain JSON."""
        ...

    def weights(self) -> Mapping[str, NDArray[np.float32]]:
        """Its weights by name; they are part of the release file."""
        ...


@dataclass(frozen=True)
class Pixels:
    """No front: the network's inputs are the record.

    Attributes:
        record_size: number of values in a record.
    """

    record_size: int

    @property
    def outputs(self) -> int:
        """The record alone."""
        return self.record_size

    def spec(self) -> dict[str, Any]:
        """Its name."""
        return {"kind": "pixels"}

    def weights(self) -> Mapping[str, NDArray[np.float32]]:
        """No weights: it has none."""
        return {}


@dataclass(frozen=True, eq=False)
class Scattering:
    """The image, and the strength of each orientation and scale around each position.

    The image is convolved with complex oriented band-pass filters (Gabor functions without their
    mean) at every second pixel; the modulus is averaged over 2x2 such positions, multiplied by
    `GAIN` and clipped at 1. This is a scattering transform of order one (Bruna and Mallat 2013,
    "Invariant Scattering Convolution Networks"). A network on pixels alone sees where ink is, on
    average; with these features it also sees the direction of strokes and edges. Each channel of a
    colour image is treated as an image.

    Attributes:
        side: height and width of an image.
        filters: real parts, then imaginary parts, float32 (2 f, k, k), multiples of 2^-14, with
            absolute values that sum to at most 2: a response never exceeds 1.
        planes: the number of an image's channels.
    """

    side: int
    filters: NDArray[np.float32]
    planes: int = 1

    def __post_init__(self) -> None:
        size = 2 * _RADIUS + 1
        if self.filters.ndim != 3 or self.filters.shape[1:] != (size, size):
            raise SchemaError(f"front: filters must be {size}x{size}")
        if len(self.filters) % 2 or not len(self.filters):
            raise SchemaError("front: filters must have a real and an imaginary part each")
        units = self.filters.astype(np.float64) / FILTER_GRID
        if self.filters.dtype != np.float32 or not np.array_equal(units, np.rint(units)):
            raise SchemaError("front: filters must be float32 on their grid")
        if np.abs(units).sum(axis=(1, 2)).max() > 2 / FILTER_GRID + size**2:
            raise SchemaError("front: filters too large to be summed exactly")
        if self.places < 1:
            raise SchemaError(f"front: images of {self.side}x{self.side} pixels are too small")

    @classmethod
    def standard(cls, side: int, planes: int = 1) -> Scattering:
        """Two scales and eight orientations."""
        across = np.arange(-_RADIUS, _RADIUS + 1, dtype=np.float64)
        rows, columns = np.meshgrid(across, across, indexing="ij")
        real, imaginary = [], []
        for scale in _SCALES:
            for number in range(_ORIENTATIONS):
                angle = math.pi * number / _ORIENTATIONS
                along = columns * math.cos(angle) + rows * math.sin(angle)
                athwart = rows * math.cos(angle) - columns * math.sin(angle)
                bell = np.exp(-(along**2 + (_SLANT * athwart) ** 2) / (2 * scale**2))
                wave = _FREQUENCY / scale * along
                even = bell * np.cos(wave)
                even -= bell * (even.sum() / bell.sum())
                size = np.abs(even).sum() / 2
                real.append(even / size)
                imaginary.append(bell * np.sin(wave) / size)
        filters = np.array(real + imaginary)
        # The odd part may be the larger one, and no response may exceed 1.
        largest = np.abs(filters).sum(axis=(1, 2)) / 2
        filters /= np.maximum(largest, 1.0)[:, None, None]
        on_grid = (np.trunc(filters / FILTER_GRID) * FILTER_GRID).astype(np.float32)
        return cls(side, on_grid, planes)

    @property
    def record_size(self) -> int:
        """The number of pixels in all channels."""
        return self.planes * self.side**2

    @property
    def channels(self) -> int:
        """The number of complex filters."""
        return len(self.filters) // 2

    @property
    def places(self) -> int:
        """The number of local means along a side."""
        return ((self.side - 1) // STRIDE + 1) // POOL

    @property
    def outputs(self) -> int:
        """Pixels and local means."""
        return self.record_size + self.planes * self.channels * self.places**2

    def spec(self) -> dict[str, Any]:
        """The name, side and number of filters; for colour images also the number of channels."""
        spec = {"kind": "scattering", "side": self.side, "channels": self.channels}
        return spec if self.planes == 1 else {**spec, "planes": self.planes}

    def weights(self) -> Mapping[str, NDArray[np.float32]]:
        """The filters."""
        return {"front_filters": self.filters}


FRONTS: Final = ("pixels", "scattering")


def make_front(kind: str, side: int, planes: int = 1) -> Front:
    """Make a front by its name.

    Args:
        kind: one of `FRONTS`.
        side: height and width of an image.
        planes: the number of its channels.

    Raises:
        SchemaError: there is no front of that name.
    """
    if kind == "pixels":
        return Pixels(planes * side**2)
    if kind == "scattering":
        return Scattering.standard(side, planes)
    raise SchemaError(f"{argument('front', kind)}: known are {', '.join(FRONTS)}")


def front_from_spec(
    spec: Mapping[str, Any], weights: Mapping[str, NDArray[Any]], outputs: int
) -> Front:
    """Rebuild a front from `spec()` and `weights()`.

    Args:
        spec: the front's spec.
        weights: the front's weights.
        outputs: the number of inputs of the network after it.

    Raises:
        SchemaError: they do not describe a front that this version knows, or contradict each other.
    """
    front: Front
    if spec.get("kind") == "pixels" and not weights:
        front = Pixels(outputs)
    elif spec.get("kind") == "scattering" and set(weights) == {"front_filters"}:
        side, planes = spec.get("side"), spec.get("planes", 1)
        if type(side) is not int or not 0 < side <= 1 << 12:
            raise SchemaError("front: side must be an integer")
        if type(planes) is not int or not 0 < planes <= 1 << 12:
            raise SchemaError("front: planes must be an integer")
        front = Scattering(side, weights["front_filters"], planes)
    else:
        raise SchemaError("front: not one that this dpntk knows")
    if front.spec() != dict(spec) or front.outputs != outputs:
        raise SchemaError("front: it does not fit the network behind it")
    return front
