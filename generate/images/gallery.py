"""A generator that is a gallery: images which are trained themselves.

A network that knows photographs says thousands of things of an image, and a template that deforms
can follow few of them. Here every pixel of some thousand images is trained: they are what a
generator would have drawn, and drawing is to take one of them.

What everybody knows of photographs is where they begin and how they are written down. An image is a
sum of waves (a cosine transform) in brightness and two colours, whose coefficients are standard
normal at the start, times an amplitude: the smaller, the higher the frequency (Field 1987,
"Relations Between the Statistics of Natural Images and the Response Properties of Cortical Cells"),
and for colours smaller than for brightness. Steps of one size in the coefficients change an image
where photographs differ, and hardly by noise of single pixels (as in Olah, Mordvintsev and Schubert
2017, "Feature Visualization"). An image that is taken may be moved a little, and in colour
mirrored: it shows the same thing. Grey images may be of letters, or of a body's left side.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...common.errors import GeneratorError
from ...common.schema.image import COLOUR, GREY, ImageSchema
from .cosine_transform import cosines
from .networks.spec import require_form

# A file of a gallery holds coefficients: what follows, up to the weights of colours, is part of its
# format.
_FALLING: Final = 2.0
"""Amplitudes fall as this power of the frequency, faster than those of photographs: steps follow
what is seen from afar before they follow the noise."""
_COMMON: Final = 0.15
"""How fast what images of a class have in common is learnt, beside what each has of its own: every
step changes it."""
_DEVIATION: Final = 0.18
"""Standard deviation of pixels at the start."""
_MIDDLE: Final = 0.47
"""Their mean: photographs are a little darker than even grey."""
_OPPONENTS: Final = ((1.0, 1.0, 1.0), (1.0, 0.0, -1.0), (1.0, -2.0, 1.0))
_VIVID: Final = 1.0, 0.3, 0.12
"""How much images have of brightness, of yellow against blue, and of purple against green."""
_USUAL_SHIFT: Final = 1 / 8
"""Largest shift of an image in either direction, as a part of its side."""
_USUAL_IMAGES: Final = 2000
_MOST_IMAGES: Final = 1 << 16
"""Most images of all classes together."""


@dataclass(frozen=True)
class GallerySpec:
    """All that is needed beside its waves to rebuild a gallery.

    Attributes:
        side: height and width of an image.
        classes: number of classes.
        images: of each class.
        channels: of an image, 1 or 3.
        shift: pixels that an image is moved by at the most, along either side; earlier files do not
            say it.

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
        """A gallery of as many images as there are usually, over all classes."""
        classes = len(schema.classes)
        images, shift = -(-_USUAL_IMAGES // classes), round(_USUAL_SHIFT * schema.side)
        return cls(schema.side, classes, images, schema.channels, shift)

    @property
    def code(self) -> int:
        """Length of the latent code: which image, whether it is mirrored, and where it is moved."""
        return 4

    def to_json(self) -> dict[str, Any]:
        """A plain mapping."""
        return asdict(self)


class Gallery(nn.Module):
    """Latent code and class to one of the class's images, moved and perhaps mirrored.

    Attributes:
        waves: coefficients of each image's cosine transform in brightness and colours, (classes,
            images, channels, side, side).
        shared: what the images of a class have in common of these, over `_COMMON`, (classes, 1,
            channels, side, side).
    """

    def __init__(self, spec: GallerySpec) -> None:
        super().__init__()
        self.spec = spec
        form = spec.channels, spec.side, spec.side
        self.waves = nn.Parameter(torch.randn(spec.classes, spec.images, *form))
        self.shared = nn.Parameter(torch.zeros(spec.classes, 1, *form))

    def forward(self, code: Tensor, classes: Tensor) -> Tensor:
        """Take the same number of images of each of some classes.

        Args:
            code: (k, b, 4), standard normal.
            classes: int64 (k,), the class of each group.

        Returns:
            (k, b, channels * side * side), values 0..1.
        """
        which = _place(code[..., 0], self.spec.images)
        own, shared = self.waves[classes[:, None], which], _COMMON * self.shared[classes]
        images = self._shown((own + shared).flatten(0, 1)).clamp(0.0, 1.0)
        mirrored = (code[..., 1].flatten() < 0) & (self.spec.channels == COLOUR)
        moves = _place(code[..., 2:], 2 * self.spec.shift + 1) - self.spec.shift
        return _laid(images, mirrored, moves.flatten(0, 1)).reshape(*code.shape[:2], -1)

    def _shown(self, waves: Tensor) -> Tensor:
        """Coefficients (b, channels, side, side) to pixels, not bound to 0..1."""
        scale, directions, cosine = _transform(
            self.spec.side, self.spec.channels, waves.dtype, waves.device
        )
        return _MIDDLE + torch.einsum(
            "bchw,cd->bdhw", cosine.T @ (scale * waves) @ cosine, directions
        )


def _place(code: Tensor, count: int) -> Tensor:
    """A standard normal number to one of 0..count-1, each as probable as the others."""
    place: Tensor = (torch.special.ndtr(code) * count).long().clamp(max=count - 1)
    return place


def _laid(images: Tensor, mirrored: Tensor, moves: Tensor) -> Tensor:
    """Images (b, channels, side, side), mirrored or not, and moved by pixels (b, 2) up and left.

    What comes from beyond an edge is reflected.
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

    A card is sent them once, and not at every step.
    """
    colours = _colours(channels)
    amplitudes = _amplitudes(side) * math.sqrt(channels / np.square(colours).sum())
    scale, directions, cosine = (
        torch.from_numpy(numbers).to(device, dtype)
        for numbers in (amplitudes, colours, cosines(side))
    )
    return scale, directions, cosine


def _amplitudes(side: int) -> NDArray[np.float64]:
    """Of waves by their frequencies, (side, side); together they make pixels vary as they do."""
    along = np.arange(side)
    frequency = np.hypot(along[:, None], along[None]).clip(min=1)  # an even image is like a slope
    falling = (1 + frequency) ** -_FALLING
    amplitudes: NDArray[np.float64] = falling * (_DEVIATION * side / np.linalg.norm(falling))
    return amplitudes


def _colours(channels: int) -> NDArray[np.float64]:
    """Brightness, and in colour what stands beside it, in terms of channels."""
    if channels != COLOUR:
        return np.ones((1, 1))
    opponents = np.array(_OPPONENTS)
    lengths = np.linalg.norm(opponents, axis=1, keepdims=True)
    colours: NDArray[np.float64] = np.array(_VIVID)[:, None] * opponents / lengths
    return colours
