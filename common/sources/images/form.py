"""What form images have, had, and may have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ...arguments import argument
from ...errors import SchemaError
from ...schema.image import ImageSchema
from ...schema.origin import Origin
from ..base import Source
from ..options import SourceOptions

MOST_PIXELS: Final = 1 << 26
"""No image of at most 64 pixels a side begins as one of more than 64 million pixels."""


@dataclass(frozen=True)
class Form:
    """What the records of a source are: squares of so many channels, and who says so.

    Attributes:
        side: height and width.
        channels: 1 or 3.
        side_origin: where `side` came from; images are resized where it is declared.
        channels_origin: where `channels` came from; images are converted where it is declared.
    """

    side: int
    channels: int
    side_origin: Origin
    channels_origin: Origin

    @classmethod
    def of(cls, height: int, width: int, channels: int, options: SourceOptions, where: str) -> Form:
        """The form of records that are made of images of a size and of channels.

        Raises:
            SchemaError: the images are not square and no size to resize them to was given.
        """
        side, side_origin = options.image_size, Origin.DECLARED
        if side is None:
            side, side_origin = height, Origin.FORMAT
            if height != width:
                least = min(height, width)
                raise SchemaError(
                    f"{where}: images of {height}x{width} pixels are not square: "
                    f"{argument('image_size', least)} resizes every image to {least}x{least}"
                )
        channels_origin = Origin.FORMAT if options.channels is None else Origin.DECLARED
        return cls(side, options.channels or channels, side_origin, channels_origin)

    def schema(self, classes: tuple[str, ...], origin: Origin) -> ImageSchema:
        """What is known of such records of some classes.

        Args:
            classes: their names.
            origin: where these came from.
        """
        return ImageSchema(
            self.side, classes, self.side_origin, origin, self.channels, self.channels_origin
        )


def resize(images: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Resize images (b, height, width) to (b, side, side), one by one, each from itself alone."""
    if images.shape[1:] == (side, side):
        return images
    resized = [
        np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.BILINEAR))
        for image in images
    ]
    return np.stack(resized) if resized else np.empty((0, side, side), dtype=np.uint8)


def require_public_form(source: Source) -> None:
    """Refuse a single image whose size or channels are known from nothing but itself.

    Two images have one form, or are refused, so exchanging one of them does not change it.

    Raises:
        SchemaError: one of them was not declared.
    """
    schema = source.schema
    if not isinstance(schema, ImageSchema) or len(source) > 1:
        return
    if {schema.side_origin, schema.channels_origin} != {Origin.DECLARED}:
        raise SchemaError(
            "there is a single image, so that its size and channels are known from nothing but "
            f"itself: declare them with {argument('image_size')}, and "
            f"{argument('channels', option='--grey or --colour')}"
        )


def require_image(height: int, width: int, where: str) -> None:
    """Refuse images that cannot be, or are too large to be read one by one.

    Raises:
        SchemaError: no pixels, or more than 64 million.
    """
    if height < 1 or width < 1 or height * width > MOST_PIXELS:
        raise SchemaError(
            f"{where}: images of {height}x{width} pixels: 1 to {MOST_PIXELS} are read"
        )
