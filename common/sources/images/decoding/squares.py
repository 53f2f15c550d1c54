"""Resizing images of any size to squares of one size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from ....schema.preparation import Fit
from .form import Form


def square(image: Image.Image, form: Form) -> Image.Image:
    """Make an image a square of the form's side, from its own pixels alone."""
    side = form.side
    if image.size == (side, side):
        return image
    match form.preparation.fit:
        case Fit.STRETCH:
            return image.resize((side, side), Image.Resampling.BILINEAR)
        case Fit.CROP:
            return ImageOps.fit(image, (side, side), Image.Resampling.BILINEAR)
        case Fit.PAD:
            return _padded(image, side)


def squares(images: NDArray[np.uint8], form: Form) -> NDArray[np.uint8]:
    """The same for one channel of images, from uint8 (b, height, width) to (b, side, side)."""
    shape = (form.side, form.side)
    if images.shape[1:] == shape:
        return images
    made = [np.asarray(square(Image.fromarray(image), form)) for image in images]
    return np.stack(made) if made else np.empty((0, *shape), dtype=np.uint8)


def _padded(image: Image.Image, side: int) -> Image.Image:
    """The image centred on a black square; Pillow's own function loses images as thin as a line."""
    longer = max(image.size)
    width, height = (max(1, round(length * side / longer)) for length in image.size)
    whole = Image.new(image.mode, (side, side))
    smaller = image.resize((width, height), Image.Resampling.BILINEAR)
    whole.paste(smaller, ((side - width) // 2, (side - height) // 2))
    return whole
