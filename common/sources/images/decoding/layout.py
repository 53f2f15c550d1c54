"""The layout of pixels in an array, and making records from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ....errors import SchemaError
from ....schema.image import COLOUR, GREY
from ...options import SourceOptions
from .form import Form, require_image
from .pixels import to_pixels
from .squares import squares

_LUMA: Final = np.array([19595, 38470, 7471], dtype=np.uint32)
"""Weights of red, green and blue in brightness, in units of 2^-16 (ITU-R BT.601), as in Pillow."""


@dataclass(frozen=True)
class PixelLayout:
    """The layout of images in an array, and the form of the records made from them.

    Attributes:
        height: height of a stored image.
        width: width of a stored image.
        stored: channels of a stored image.
        last: whether channels are the last dimension, not the first.
        form: the form of a record.
    """

    height: int
    width: int
    stored: int
    last: bool
    form: Form

    @classmethod
    def of(cls, shape: tuple[int, ...], options: SourceOptions, where: str) -> PixelLayout:
        """The layout of images that are stored in a given shape.

        Args:
            shape: the shape of one image: (height, width), with a dimension of 1 or 3 channels
                after or before, or flat, if it is a square of one channel.
            options: the wanted size and channels.
            where: the data, for the message.

        Raises:
            SchemaError: it is no such shape, or not square and no size is given.
        """
        match shape:
            case (height, width, (1 | 3) as stored):
                last = True
            case ((1 | 3) as stored, height, width):
                last = False
            case (height, width):
                stored, last = GREY, False
            case (values,) if math.isqrt(values) ** 2 == values:
                height = width = math.isqrt(values)
                stored, last = GREY, False
            case _:
                raise SchemaError(
                    f"{where}: images of the shape {shape}: (height, width) is read, or (height, "
                    "width, 3) in colour"
                )
        require_image(height, width, where)
        form = Form.of(height, width, stored, options, where)
        return cls(height, width, stored, last, form)

    @property
    def stored_size(self) -> int:
        """The number of values in a stored image."""
        return self.stored * self.height * self.width

    def records(self, stored: NDArray[Any], first: int, where: str) -> NDArray[np.uint8]:
        """Make records, uint8 (b, channels * side * side), each from its own image alone.

        Args:
            stored: values (b, ...), in this layout.
            first: number of the record that `stored[0]` belongs to, from 0.
            where: the file, for messages.

        Raises:
            DataError: a value is not a pixel's.
        """
        images = to_pixels(stored, where, self.form, first)
        if self.last:
            pixels = images.reshape(-1, self.height, self.width, self.stored)
            planes = pixels.transpose(0, 3, 1, 2)
        else:
            planes = images.reshape(-1, self.stored, self.height, self.width)
        if (self.stored, self.form.channels) == (COLOUR, GREY):
            planes = shades_of_grey(planes)
        elif (self.stored, self.form.channels) == (GREY, COLOUR):
            planes = planes.repeat(COLOUR, axis=1)
        resized = squares(planes.reshape(-1, self.height, self.width), self.form)
        return resized.reshape(len(images), -1)


def shades_of_grey(planes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The brightness of colour images, equal to Pillow's conversion to the bit.

    Args:
        planes: uint8 (b, 3, height, width).

    Returns:
        uint8 (b, 1, height, width).
    """
    shares = planes.astype(np.uint32) * _LUMA[:, None, None]
    grey: NDArray[np.uint8] = ((shares.sum(axis=1) + (1 << 15)) >> 16).astype(np.uint8)
    return grey[:, None]
