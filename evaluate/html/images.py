"""The images in a report: a few of each class, with their nearest real ones."""

from __future__ import annotations

import io
from base64 import b64encode
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.neighbors import NearestNeighbors

from ...common.schema.image import pictures
from ..images.records import LabelledImages

_MOST_CLASSES: Final = 20
_A_CLASS: Final = 10
_LARGEST: Final = 48
"""Largest side in pixels: larger images are shrunk, so that the file stays small."""
_APART: Final = 2
"""Pixels between two images."""
_BETWEEN: Final = "grey"


@dataclass(frozen=True)
class Strip:
    """Some images of a class in a row, as PNG in base 64.

    Attributes:
        name: of the class.
        count: number of its synthetic images.
        shown: number of images in the row.
        synthetic: the row of images.
        nearest: a row of the nearest real image to each in pixels, of any class; None if there are
            no real images.
    """

    name: str
    count: int
    shown: int
    synthetic: str
    nearest: str | None


def view_images(synthetic: LabelledImages, real: LabelledImages | None) -> list[Strip]:
    """The first images of the first classes; a class without images is left out."""
    strips = []
    search = None
    if real is not None:
        search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(real.images())
    for index, name in enumerate(synthetic.class_names[:_MOST_CLASSES]):
        of_class = np.flatnonzero(synthetic.labels == index)
        chosen = of_class[:_A_CLASS]
        if not len(chosen):
            continue
        nearest = None
        if real is not None and search is not None:
            places = search.kneighbors(synthetic.images(chosen), return_distance=False)[:, 0]
            nearest = _png(real.pixels[places], real.channels)
        shown = _png(synthetic.pixels[chosen], synthetic.channels)
        strips.append(Strip(name, len(of_class), len(chosen), shown, nearest))
    return strips


def _png(records: NDArray[np.uint8], channels: int) -> str:
    """Put images side by side.

    Args:
        records: uint8 (n, channels * side * side).
        channels: of an image.
    """
    images = [Image.fromarray(one) for one in pictures(records, channels)]
    side = min(images[0].width, _LARGEST)
    row = Image.new(images[0].mode, (len(images) * (side + _APART) - _APART, side), _BETWEEN)
    for place, image in enumerate(images):
        row.paste(image.resize((side, side)), (place * (side + _APART), 0))
    file = io.BytesIO()
    row.save(file, "PNG", optimize=True)
    return b64encode(file.getvalue()).decode("ascii")
