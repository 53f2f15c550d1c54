"""How large images are, were, and may be."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ...errors import SchemaError
from ...schema.image import ImageSchema
from ...schema.origin import Origin
from ..base import Source

MOST_PIXELS: Final = 1 << 26
"""No image of at most 64 pixels a side begins as one of more than 64 million pixels."""


def square_side(height: int, width: int, image_size: int | None, where: str) -> tuple[int, Origin]:
    """The side of the images of a source, and where it came from.

    Raises:
        SchemaError: the images are not square and no size to resize them to was given.
    """
    if image_size is not None:
        return image_size, Origin.DECLARED
    if height != width:
        raise SchemaError(
            f"{where}: images of {height}x{width} pixels are not square: "
            f"--image-size {min(height, width)} resizes every image to "
            f"{min(height, width)}x{min(height, width)}"
        )
    return height, Origin.FORMAT


def resize(images: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Resize images (b, height, width) to (b, side, side), one by one, each from itself alone."""
    if images.shape[1:] == (side, side):
        return images
    resized = [
        np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.BILINEAR))
        for image in images
    ]
    return np.stack(resized) if resized else np.empty((0, side, side), dtype=np.uint8)


def require_public_side(source: Source) -> None:
    """Refuse a single image whose size is known from nothing but itself.

    Two images have one size, or are refused, so exchanging one of them does not change it.

    Raises:
        SchemaError: its size was not declared.
    """
    schema = source.schema
    undeclared = isinstance(schema, ImageSchema) and schema.side_origin is not Origin.DECLARED
    if undeclared and len(source) == 1:
        raise SchemaError(
            "there is a single image, so that its size is known from nothing but itself: declare "
            "it with --image-size"
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
