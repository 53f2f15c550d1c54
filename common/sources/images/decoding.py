"""Decoding PNG and JPEG images, wherever their bytes come from."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile

from ...console import notice
from ...errors import DataError, SchemaError
from ...schema.origin import Origin
from .sizes import require_image, square_side

SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg"})
MOST_BYTES: Final = 1 << 26

_GREY_MODES: Final = frozenset({"1", "L", "LA"})
_COLOUR_MODES: Final = frozenset({"P", "PA", "RGB", "RGBA", "CMYK", "YCbCr"})
_PNG_START: Final = b"\x89PNG\r\n\x1a\n"
_PNG_END: Final = b"IEND\xaeB`\x82"
_JPEG_START: Final = b"\xff\xd8\xff"
_FAILURES: Final = (OSError, ValueError, SyntaxError, LookupError, TypeError, EOFError)


@dataclass(frozen=True)
class ImageDecoder:
    """Turns encoded images into pixels of one size, each from its own bytes alone.

    Attributes:
        side: height and width of the result.
        height: of the data set's first image before resizing.
        width: of the same.
        resized: whether images of every size are welcome, because they are resized.
        first: what the first image is called in messages.
    """

    side: int
    height: int
    width: int
    resized: bool
    first: str

    @classmethod
    def of_first(
        cls, content: bytes, where: str, image_size: int | None
    ) -> tuple[ImageDecoder, Origin]:
        """A decoder for images like this one, and where their size came from.

        Args:
            content: the data set's first image, encoded.
            where: what to call it in messages.
            image_size: resize every image to this many pixels a side.

        Raises:
            DataError: it is no image, or not a whole one.
            SchemaError: it is not square and would not be resized.
        """
        image = _opened(content, where)
        width, height = image.size
        if image.mode in _COLOUR_MODES:
            notice(f"{where} is in colour; colour images are read as shades of grey")
        side, origin = square_side(height, width, image_size, where)
        return cls(side, height, width, image_size is not None, where), origin

    def decode(self, content: bytes, where: str) -> NDArray[np.uint8]:
        """Pixels uint8 (side * side,) of one encoded image.

        Args:
            content: the bytes of a PNG or JPEG file.
            where: what to call it in messages.

        Raises:
            DataError: it is no image, damaged, cut short, too large, or of an unsupported kind.
            SchemaError: it has another size than the first one and is not to be resized.
        """
        image = _opened(content, where)
        if not self.resized and image.size != (self.width, self.height):
            raise SchemaError(
                f"{where} is {image.height}x{image.width} pixels but {self.first} is "
                f"{self.height}x{self.width}: --image-size {self.side} resizes every image to "
                f"{self.side}x{self.side}"
            )
        image.info.pop("transparency", None)  # means nothing in grey, and Pillow would warn of it
        try:
            grey = image.convert("L")
            if self.resized:
                grey = grey.resize((self.side, self.side), Image.Resampling.BILINEAR)
        except _FAILURES as error:
            reason = " ".join(str(error).split())
            raise DataError(f"{where}: damaged: {reason}; replace or remove it") from error
        return np.frombuffer(grey.tobytes(), dtype=np.uint8)


def require_size(size: int, where: str) -> None:
    """Refuse an encoded image before so much is read into memory.

    Raises:
        DataError: it is empty, or larger than any image that dpntk reads.
    """
    if size > MOST_BYTES:
        raise DataError(f"{where}: {size} bytes: an image of at most {MOST_BYTES} bytes is read")


def _opened(content: bytes, where: str) -> PngImageFile | JpegImageFile:
    """Read an image's header.

    The decoders are called by name, because `Image.open` also looks for several images in a JPEG
    file, and prints a warning for large ones.

    Raises:
        DataError: no image, cut short, or one of a kind that is not supported.
    """
    require_size(len(content), where)
    png = content.startswith(_PNG_START)
    try:
        if not png and not content.startswith(_JPEG_START):
            raise SyntaxError
        image = PngImageFile(io.BytesIO(content)) if png else JpegImageFile(io.BytesIO(content))
    except _FAILURES as error:
        raise DataError(f"{where}: not a whole PNG or JPEG image; replace or remove it") from error
    # The decoder is content once it has all pixels, whether or not the file goes on as it should.
    if png and _PNG_END not in content:
        raise DataError(f"{where}: damaged: cut short; replace or remove it")
    if image.mode not in _GREY_MODES | _COLOUR_MODES:
        raise DataError(f"{where}: pixels of kind {image.mode}: 8 bits a channel are supported")
    require_image(image.height, image.width, where)  # a small file can claim to be large
    return image
