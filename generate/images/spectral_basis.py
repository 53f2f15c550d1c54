"""Cosine waves in brightness and colour differences, an orthonormal basis of images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...common.schema.image import GREY
from .cosine_transform import cosines

Array = TypeVar("Array", NDArray[np.float64], Tensor)

OPPONENTS: Final = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -2.0, 1.0]])
"""Brightness and two colour differences among three channels, orthogonal but not of length 1 (Ohta,
Kanade and Sakai 1980, "Color Information for Region Segmentation")."""


@dataclass(frozen=True, eq=False)
class SpectralBasis(Generic[Array]):
    """The waves of images of one size, for arrays or for tensors on a device.

    The basis is orthonormal, so noise that is alike in all pixels is alike in all coefficients. The
    first channel of the coefficients is brightness; in colour, two colour differences follow.

    Attributes:
        waves: along one axis, (side, side).
        colours: from channels to brightness and colour differences, (channels, channels).
        einsum: NumPy's or torch's.
    """

    waves: Array
    colours: Array
    einsum: Callable[[str, Array, Array], Array]

    @property
    def side(self) -> int:
        """Height and width of an image."""
        return len(self.waves)

    @property
    def channels(self) -> int:
        """Number of channels, 1 or 3."""
        return len(self.colours)

    @property
    def averages(self) -> NDArray[np.bool_]:
        """Which coefficients are the average of a channel, bool (channels * side^2,)."""
        return np.tile(np.arange(self.side**2) == 0, self.channels)

    def coefficients(self, images: Array) -> Array:
        """Transform pixels (..., channels * side^2) to coefficients of the same shape."""
        return self._transformed(images, self.waves, self.colours)

    def pixels(self, coefficients: Array) -> Array:
        """The inverse of `coefficients`."""
        return self._transformed(coefficients, self.waves.T, self.colours.T)

    def _transformed(self, values: Array, along: Array, across: Array) -> Array:
        """Transform both axes of each channel by one matrix, and the channels by another."""
        shape = *values.shape[:-1], self.channels, self.side, self.side
        found = along @ values.reshape(shape) @ along.T
        if self.channels > GREY:
            found = self.einsum("dc,...chw->...dhw", across, found)
        return found.reshape(values.shape)


def spectral_basis(side: int, channels: int = GREY) -> SpectralBasis[NDArray[np.float64]]:
    """The basis for images of some size, in float64."""
    colours = np.eye(1) if channels == GREY else OPPONENTS / np.sqrt([[3], [2], [6]])
    return SpectralBasis(cosines(side), colours, np.einsum)


def basis_on(
    basis: SpectralBasis[NDArray[np.float64]], device: torch.device
) -> SpectralBasis[Tensor]:
    """The same basis for tensors on a device, float32 and differentiable."""
    waves, colours = (
        torch.tensor(each, dtype=torch.float32, device=device)
        for each in (basis.waves, basis.colours)
    )
    return SpectralBasis(waves, colours, torch.einsum)
