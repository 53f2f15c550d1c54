"""Encoded images: choosing the decoder by their bytes, and refusing unsupported ones."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PIL import Image, features
from PIL.BmpImagePlugin import BmpImageFile
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import (
    BITSPERSAMPLE,
    PHOTOMETRIC_INTERPRETATION,
    SAMPLEFORMAT,
    TiffImageFile,
)
from PIL.WebPImagePlugin import WebPImageFile

from ....errors import DataError
from ....schema.image import COLOUR, GREY
from .form import require_image

# Pillow's warnings about odd files quote their content, which may be sensitive.
warnings.filterwarnings("ignore", module=r"PIL\.")

SUFFIXES: Final = {
    ".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF", ".bmp": "BMP",
    ".webp": "WebP",
}  # fmt: skip
"""The suffixes of image files, and the kind of file for each."""
READ: Final = "PNG, JPEG, TIFF, BMP and WebP"
MOST_BYTES: Final = 1 << 26
CHANNELS: Final = {
    "1": GREY, "L": GREY, "LA": GREY, "I;16": GREY, "I;16B": GREY, "I;16L": GREY, "I": GREY,
    "F": GREY, "P": COLOUR, "PA": COLOUR, "RGB": COLOUR, "RGBA": COLOUR,
}  # fmt: skip
"""The channels of an image, by Pillow's mode."""
DEEP: Final = frozenset({"I;16", "I;16B", "I;16L", "I", "F"})
"""Pillow's modes with more than 8 bits per value."""
FAILURES: Final = (
    OSError, ValueError, SyntaxError, LookupError, TypeError, EOFError,
    Image.DecompressionBombError,
)  # fmt: skip
"""The errors that Pillow raises for invalid files."""

_PNG_END: Final = b"IEND\xaeB`\x82"
_PNG_DEPTH: Final = 24
"""The position in a PNG file of the number of bits per channel."""
_UNSIGNED: Final = 1
_WHITE_IS_ZERO: Final = 0
"""TIFF's mark for inverted values."""


@dataclass(frozen=True)
class _Kind:
    """A kind of image file.

    Attributes:
        name: its usual name.
        starts: such a file begins with one of these.
        decoder: Pillow's decoder. Decoders are called by name, because `Image.open` also looks for
            several images in a JPEG file, and prints a warning for large ones.
    """

    name: str
    starts: tuple[bytes, ...]
    decoder: Callable[[io.BytesIO], ImageFile]


_KINDS: Final = (
    _Kind("PNG", (b"\x89PNG\r\n\x1a\n",), PngImageFile),
    _Kind("JPEG", (b"\xff\xd8\xff",), JpegImageFile),
    _Kind("TIFF", (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"), TiffImageFile),
    _Kind("BMP", (b"BM",), BmpImageFile),
    _Kind("WebP", (b"RIFF",), WebPImageFile),
)


def require_size(size: int, where: str) -> None:
    """Refuse an encoded image that is too large, before it is read into memory.

    Raises:
        DataError: it is larger than any image that dpntk reads.
    """
    if size > MOST_BYTES:
        raise DataError(f"{where}: {size} bytes: an image of at most {MOST_BYTES} bytes is read")


def opened(content: bytes, where: str) -> ImageFile:
    """Read an image's header.

    Args:
        content: the bytes of the file.
        where: its name in messages.

    Raises:
        DataError: it is not an image, or is truncated or of an unsupported kind.
        SchemaError: it is too large.
    """
    require_size(len(content), where)
    kind = next((kind for kind in _KINDS if content.startswith(kind.starts)), None)
    if kind is None:
        raise DataError(f"{where}: not a whole image: {READ} are read; replace or remove it")
    if kind.name == "WebP" and not features.check("webp"):
        raise DataError(f"{where}: the Pillow that is installed reads no WebP: save it as PNG")
    try:
        image = kind.decoder(io.BytesIO(content))
    except FAILURES:
        raise DataError(
            f"{where}: not a whole {kind.name} image, or of a kind that is not read; replace or "
            "remove it"
        ) from None  # the decoder may quote bytes of the image
    # The decoder accepts a file once it has all pixels, even if the rest of the file is missing.
    if kind.name == "PNG" and _PNG_END not in content:
        raise DataError(f"{where}: damaged: cut short; replace or remove it")
    _require_known_pixels(image, content, where)
    if getattr(image, "is_animated", False):
        several = "several pages" if kind.name == "TIFF" else "animated"
        raise DataError(f"{where}: {several}: a record is one image: save its pictures one by one")
    require_image(image.height, image.width, where)  # a small file can claim to be large
    return image


def _require_known_pixels(image: ImageFile, content: bytes, where: str) -> None:
    """Refuse pixels that Pillow does not support, or would silently truncate or invert.

    Raises:
        DataError: the image has such pixels.
    """
    tags = image.tag_v2 if isinstance(image, TiffImageFile) else {}
    bits = max(tags.get(BITSPERSAMPLE, (1,)))
    if isinstance(image, PngImageFile):
        bits = content[_PNG_DEPTH]
    deep = image.mode in DEEP
    if bits > 8 and not deep:
        raise DataError(f"{where}: {bits} bits a channel: save it with 8")
    if image.mode not in CHANNELS:
        raise DataError(
            f"{where}: pixels of kind {image.mode}: save it as RGB, or as shades of grey"
        )
    if deep and image.has_transparency_data:
        raise DataError(f"{where}: {bits} bits a channel, and transparent: save it without")
    if deep and tags.get(PHOTOMETRIC_INTERPRETATION) == _WHITE_IS_ZERO:
        raise DataError(f"{where}: its smallest value is white: save it with 0 for black")
    if bits > 16 and tags.get(SAMPLEFORMAT, (_UNSIGNED,))[0] == _UNSIGNED:
        raise DataError(f"{where}: {bits} bits without a sign: save it with 16, or as floats")
