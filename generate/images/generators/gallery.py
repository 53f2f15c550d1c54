"""A generator that is a gallery: a set of images that are trained themselves.

A network that knows photographs computes thousands of features of an image, and a deformable
template can match few of them. Here every pixel of some thousand images is trained, and sampling
picks one of the images.

Public knowledge about photographs sets the start and the parameters. An image is a sum of waves (a
cosine transform) in brightness and two colours. The coefficients start standard normal and are
multiplied by amplitudes that decrease with the frequency (Field 1987, "Relations Between the
Statistics of Natural Images and the Response Properties of Cortical Cells"), and are smaller for
colours than for brightness. Equal steps in the coefficients then change an image where photographs
differ, and add hardly any pixel noise (as in Olah, Mordvintsev and Schubert 2017, "Feature
Visualization"). A sampled image may be shifted a little and, in colour, mirrored: it still shows
the same thing. Grey images are not mirrored, as they may show letters, or the left side of a body.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ....common.errors import GeneratorError
from ....common.schema.image import COLOUR, GREY, ImageSchema
from ...output.generator_file import Spec
from ..cosine_transform import cosines
from ..spectral_basis import OPPONENTS
from .networks.spec import require_form

# A gallery's file holds coefficients, so the constants up to the weights of colours are part of its
# format.
_FALLING: Final = 2.0
"""Amplitudes fall with this power of the frequency, faster than in photographs: steps then fit
coarse structure before they fit the noise."""
_COMMON: Final = 0.15
"""Learning speed of the part that a class's images share, relative to each image's own part: every
step changes the shared part."""
_DEVIATION: Final = 0.18
"""Initial standard deviation of pixels."""
_MIDDLE: Final = 0.47
"""Initial mean of pixels: photographs are a little darker than medium grey."""
_VIVID: Final = 1.0, 0.3, 0.12
"""Amplitudes of brightness, yellow against blue, and purple against green."""
_USUAL_SHIFT: Final = 1 / 8
"""Largest shift of an image in either direction, as a fraction of its side."""
_USUAL_IMAGES: Final = 2000
_MOST_IMAGES: Final = 1 << 16
"""Most images over all classes."""


@dataclass(frozen=True)
class GallerySpec(Spec):
    """Everything needed to rebuild a gallery, except its waves.

    Attributes:
        side: height and width of an image.
        classes: number of classes.
        images: number of images of each class.
        channels: of an image, 1 or 3.
        shift: largest shift of an image along each side, in pixels; earlier files do not record it.

    Raises:
        GeneratorError: a number is out of its range.
    """

    side: int
    classes: int
    images: int
    channels: int = GREY
    shift: int = 2

    def __post_init__(self) -> None:
        require_form(self.side, self.classes, self.channels)
        if not (1 <= self.images * self.classes <= _MOST_IMAGES and 0 <= self.shift < self.side):
            raise GeneratorError("the generator's description is out of range")

    @classmethod
    def of(cls, schema: ImageSchema) -> GallerySpec:
        """A gallery of the default number of images, over all classes."""
        classes = len(schema.classes)
        images, shift = -(-_USUAL_IMAGES // classes), round(_USUAL_SHIFT * schema.side)
        return cls(schema.side, classes, images, schema.channels, shift)

    @property
    def code(self) -> int:
        """Length of the latent code: the choice of image, mirroring, and two shifts."""
        return 4


class Gallery(nn.Module):
    """Maps a latent code and class to one of the class's images, shifted and perhaps mirrored.

    Attributes:
        waves: coefficients of each image's cosine transform in brightness and colours, (classes,
            images, channels, side, side).
        shared: the part of these that the images of a class share, divided by `_COMMON`, (classes,
            1, channels, side, side).
    """

    def __init__(self, spec: GallerySpec) -> None:
        super().__init__()
        self.spec = spec
        form = spec.channels, spec.side, spec.side
        self.waves = nn.Parameter(torch.randn(spec.classes, spec.images, *form))
        self.shared = nn.Parameter(torch.zeros(spec.classes, 1, *form))

    def forward(self, code: Tensor, classes: Tensor) -> Tensor:
        """Pick images; see `ConditionalGenerator.forward`."""
        which = _place(code[..., 0], self.spec.images)
        own, shared = self.waves[classes[:, None], which], _COMMON * self.shared[classes]
        images = self._shown((own + shared).flatten(0, 1)).clamp(0.0, 1.0)
        mirrored = (code[..., 1].flatten() < 0) & (self.spec.channels == COLOUR)
        moves = _place(code[..., 2:], 2 * self.spec.shift + 1) - self.spec.shift
        return _laid(images, mirrored, moves.flatten(0, 1)).reshape(*code.shape[:2], -1)

    def _shown(self, waves: Tensor) -> Tensor:
        """Transform coefficients (b, channels, side, side) to pixels, not confined to 0..1."""
        scale, directions, cosine = _transform(
            self.spec.side, self.spec.channels, waves.dtype, waves.device
        )
        return _MIDDLE + torch.einsum(
            "bchw,cd->bdhw", cosine.T @ (scale * waves) @ cosine, directions
        )


def _place(code: Tensor, count: int) -> Tensor:
    """Map a standard normal number to one of 0..count-1, all equally probable."""
    place: Tensor = (torch.special.ndtr(code) * count).long().clamp(max=count - 1)
    return place


def _laid(images: Tensor, mirrored: Tensor, moves: Tensor) -> Tensor:
    """Mirror images (b, channels, side, side) where asked, and shift them up and left by (b, 2).

    Pixels from beyond an edge are reflected.
    """
    last = images.shape[-1] - 1
    along = torch.arange(last + 1, device=images.device) + moves[..., None]
    rows, columns = (last - (last - along.abs()).abs()).abs().unbind(dim=1)
    columns = torch.where(mirrored[:, None], columns.flip(1), columns)
    each = torch.arange(len(images), device=images.device)[:, None, None]
    laid: Tensor = images.movedim(1, -1)[each, rows[:, :, None], columns[:, None, :]]
    return laid.movedim(-1, 1)


@lru_cache(maxsize=8)
def _transform(
    side: int, channels: int, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Amplitudes (side, side), colours (channels, channels) and waves (side, side).

    They are cached, so that they are sent to a GPU only once.
    """
    colours = _colours(channels)
    amplitudes = _amplitudes(side) * math.sqrt(channels / np.square(colours).sum())
    scale, directions, cosine = (
        torch.tensor(numbers, dtype=dtype, device=device)
        for numbers in (amplitudes, colours, cosines(side))
    )
    return scale, directions, cosine


def _amplitudes(side: int) -> NDArray[np.float64]:
    """Amplitudes of waves by frequency, (side, side), scaled to the pixels' initial deviation."""
    along = np.arange(side)
    frequency = np.hypot(along[:, None], along[None]).clip(min=1)  # the mean counts as 1
    falling = (1 + frequency) ** -_FALLING
    amplitudes: NDArray[np.float64] = falling * (_DEVIATION * side / np.linalg.norm(falling))
    return amplitudes


def _colours(channels: int) -> NDArray[np.float64]:
    """Directions of brightness and, in colour, of colour differences among the channels."""
    if channels != COLOUR:
        return np.ones((1, 1))
    lengths = np.linalg.norm(OPPONENTS, axis=1, keepdims=True)
    colours: NDArray[np.float64] = np.array(_VIVID)[:, None] * OPPONENTS / lengths
    return colours
