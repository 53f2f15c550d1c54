"""Images as ordinary files: an archive with one folder of PNG files for each class."""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

_PLAIN: Final = re.compile(r"[^\W_](?:[\w ,+()-]*[\w+()-])?")
_LONGEST: Final = 80
_OURS_OR_RESERVED: Final = re.compile(r"con|prn|aux|nul|com\d|lpt\d|class \d+", re.IGNORECASE)
"""Names that Windows reserves, and the names that we give to folders of other classes."""
_BEGINNING: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a ZIP archive can hold, so that the same images give the same bytes."""


def zip_of_pictures(
    images: NDArray[np.uint8], labels: NDArray[np.int64], classes: tuple[str, ...]
) -> bytes:
    """A ZIP archive in which an image is named `CLASS/000123.png`, by its place among all images.

    Args:
        images: uint8 (n, side, side), or in colour (n, side, side, 3).
        labels: int64 (n,).
        classes: the name of each class; images of a single class get no folder.
    """
    digits = len(str(len(images) - 1))
    folders = class_folders(classes)
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for place, (image, label) in enumerate(zip(images, labels.tolist(), strict=True)):
            content = io.BytesIO()
            Image.fromarray(image).save(content, "PNG")
            folder = "" if len(classes) == 1 else f"{folders[label]}/"
            name = f"{folder}{place:0{digits}}.png"
            archive.writestr(zipfile.ZipInfo(name, _BEGINNING), content.getvalue())
    return whole.getvalue()


def class_folders(classes: tuple[str, ...]) -> tuple[str, ...]:
    """The folder name of each class: the class's own name, if it is valid on every system.

    Names come from whoever made the release. None may lead out of the folder, be hidden, or clash
    with another one on a file system that ignores case.
    """
    alike = Counter(map(str.casefold, classes))
    return tuple(
        name if _usable(name) and alike[name.casefold()] == 1 else f"class {number}"
        for number, name in enumerate(classes)
    )


def _usable(name: str) -> bool:
    plain = _PLAIN.fullmatch(name) is not None and len(name.encode()) <= _LONGEST
    return plain and _OURS_OR_RESERVED.fullmatch(name) is None
