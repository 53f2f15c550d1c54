"""Decoding PNG and JPEG images, wherever their bytes come from."""

from __future__ import annotations

import contextlib
import io
import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile

from ...arguments import argument
from ...console import notice
from ...errors import DataError, SchemaError
from ...schema.image import COLOUR, GREY
from ...schema.origin import Origin
from ..options import SourceOptions
from .form import Form, require_image

# Pillow warns of what it finds odd in a file, and quotes it: what the file holds is its owner's.
warnings.filterwarnings("ignore", module=r"PIL\.")

SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg"})
MOST_BYTES: Final = 1 << 26

_CHANNELS: Final = {
    "1": GREY, "L": GREY, "LA": GREY,
    "P": COLOUR, "PA": COLOUR, "RGB": COLOUR, "RGBA": COLOUR,
}  # fmt: skip
"""Channels of an image by what Pillow calls the kind of its pixels."""
_MODES: Final = {GREY: "L", COLOUR: "RGB"}
_IN_WORDS: Final = {GREY: "grey", COLOUR: "in colour"}
_TURNS: Final = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What sets an image upright, by its orientation (Exif 2.3, tag 0x0112); 1 is upright."""
_PNG_START: Final = b"\x89PNG\r\n\x1a\n"
_PNG_END: Final = b"IEND\xaeB`\x82"
_JPEG_START: Final = b"\xff\xd8\xff"
_PNG_DEPTH: Final = 24
"""Where a PNG file says how many bits a channel has."""
_FAILURES: Final = (OSError, ValueError, SyntaxError, LookupError, TypeError, EOFError)


@dataclass(frozen=True)
class ImageDecoder:
    """Turns encoded images into pixels of one size, each from its own bytes alone.

    Attributes:
        form: of the result.
        height: of the data set's first image before resizing.
        width: of the same.
        first: what that image is called in messages.
    """

    form: Form
    height: int
    width: int
    first: str
    _said: set[str] = field(default_factory=set, repr=False, compare=False)

    @classmethod
    def of_first(cls, content: bytes, where: str, options: SourceOptions) -> ImageDecoder:
        """A decoder for images like this one.

        Args:
            content: the data set's first image, encoded.
            where: what to call it in messages.
            options: the size and the channels that are wanted.

        Raises:
            DataError: it is no image, or not a whole one.
            SchemaError: it is not square and would not be resized.
        """
        image, _ = _upright(content, where)
        form = Form.of(image.height, image.width, _CHANNELS[image.mode], options, where)
        return cls(form, image.height, image.width, where)

    def decode(self, content: bytes, where: str) -> NDArray[np.uint8]:
        """Pixels uint8 (channels * side * side,) of one encoded image.

        Args:
            content: the bytes of a PNG or JPEG file.
            where: what to call it in messages.

        Raises:
            DataError: it is no image, damaged, cut short, too large, or of an unsupported kind.
            SchemaError: its size or channels are not those of the first one and are not to be
                changed.
        """
        image, turned = _upright(content, where)
        form, channels = self.form, _CHANNELS[image.mode]
        if form.channels_origin is not Origin.DECLARED and channels != form.channels:
            raise SchemaError(
                f"{where} is {_IN_WORDS[channels]} but {self.first} is "
                f"{_IN_WORDS[form.channels]}: declare with "
                f"{argument('channels', option='--grey or --colour')} how to read them all"
            )
        resized = form.side_origin is Origin.DECLARED
        if not resized and image.size != (self.width, self.height):
            raise SchemaError(
                f"{where} is {image.height}x{image.width} pixels but {self.first} is "
                f"{self.height}x{self.width}: {argument('image_size', form.side)} resizes every "
                f"image to {form.side}x{form.side}"
            )
        with _sound(where):
            pixels, transparent = _on_white(image)
            pixels = pixels.convert(_MODES[form.channels])
            if resized:
                pixels = pixels.resize((form.side, form.side), Image.Resampling.BILINEAR)
        if turned:
            self._say_once(where, "marked as turned: such images are set upright")
        if transparent:
            self._say_once(where, "transparent in places: such images are laid on white")
        values = np.frombuffer(pixels.tobytes(), dtype=np.uint8)
        return values.reshape(-1, form.channels).T.ravel()

    def _say_once(self, where: str, what: str) -> None:
        """Say something of the first image that it is true of."""
        if what not in self._said:
            self._said.add(what)
            notice(f"{where} is {what}")


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
    if png and content[_PNG_DEPTH] > 8:
        raise DataError(f"{where}: {content[_PNG_DEPTH]} bits a channel: save it with 8")
    if image.mode not in _CHANNELS:
        raise DataError(
            f"{where}: pixels of kind {image.mode}: save it as RGB, or as shades of grey"
        )
    if getattr(image, "is_animated", False):
        raise DataError(f"{where}: animated: a record is one image: save its pictures one by one")
    require_image(image.height, image.width, where)  # a small file can claim to be large
    return image


def _upright(content: bytes, where: str) -> tuple[Image.Image, bool]:
    """An image as its camera held it, and whether it had to be turned for that.

    Raises:
        DataError: no image, damaged, cut short, or one of a kind that is not supported.
    """
    image = _opened(content, where)
    with _sound(where):
        image.load()
    if "exif" not in image.info:  # looking for it takes as long as all the rest
        return image, False
    try:
        turn = _TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    except (*_FAILURES, struct.error):  # marks that cannot be read mark nothing
        turn = None
    return (image, False) if turn is None else (image.transpose(turn), True)


def _on_white(image: Image.Image) -> tuple[Image.Image, bool]:
    """An image before a white ground, and whether any of that can be seen."""
    if not image.has_transparency_data:
        return image, False
    layer = image.convert("RGBA")
    if layer.getchannel("A").getextrema() == (255, 255):
        return layer, False
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), layer), True


@contextlib.contextmanager
def _sound(where: str) -> Iterator[None]:
    """Turn the decoder's refusals into one clear line."""
    try:
        yield
    except _FAILURES as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{where}: damaged: {reason}; replace or remove it") from error
