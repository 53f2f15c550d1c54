"""Decoding encoded images, wherever their bytes come from."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image
from PIL.TiffImagePlugin import TiffImageFile

from ....arguments import argument
from ....errors import DataError, SchemaError
from ....schema.image import COLOUR, GREY
from ....schema.origin import Origin
from ...options import SourceOptions
from .encoded import CHANNELS, DEEP, FAILURES, opened
from .form import Form
from .pixels import declare_range, to_pixels
from .squares import square

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
"""Maps an orientation (Exif 2.3, tag 0x0112) to the turn that sets an image upright; 1 is
upright."""


@dataclass(frozen=True)
class ImageDecoder:
    """Turns encoded images into pixels of one size, each from its own bytes alone.

    Attributes:
        form: the form of the result.
        height: height of the data set's first image before resizing.
        width: width of the same.
        first: that image's name in messages.
        deep: whether its pixels have more than 8 bits.
    """

    form: Form
    height: int
    width: int
    first: str
    deep: bool

    @classmethod
    def of_first(cls, content: bytes, where: str, options: SourceOptions) -> ImageDecoder:
        """Make a decoder for images like this one.

        Args:
            content: the data set's first image, encoded.
            where: its name in messages.
            options: the wanted size and channels.

        Raises:
            DataError: it is not an image, or is truncated; or it has more than 8 bits a pixel, and
                the values of black and white were not declared.
            SchemaError: it is not square, and no size to resize it to is given.
        """
        image, _ = _upright(content, where)
        deep = image.mode in DEEP
        if deep and options.value_range is None:
            raise DataError(
                f"{where}: more than 8 bits a pixel: {declare_range()} 0,65535 (16 bits) or "
                "0,4095 (12 bits); or save it with 8"
            )
        form = Form.of(image.height, image.width, CHANNELS[image.mode], options, where)
        return cls(form, image.height, image.width, where, deep)

    def decode(self, content: bytes, where: str) -> NDArray[np.uint8]:
        """Decode one image to pixels, uint8 (channels * side * side,).

        Args:
            content: the bytes of an image file.
            where: its name in messages.

        Raises:
            DataError: it is not an image, or is damaged, truncated, too large, or of an unsupported
                kind.
            SchemaError: its size or channels differ from those of the first image and are not to be
                changed.
        """
        image, turned = _upright(content, where)
        form, channels = self.form, CHANNELS[image.mode]
        if form.channels_origin is not Origin.DECLARED and channels != form.channels:
            raise SchemaError(
                f"{where} is {_IN_WORDS[channels]} but {self.first} is "
                f"{_IN_WORDS[form.channels]}: declare with "
                f"{argument('channels', option='--grey or --colour')} how to read them all"
            )
        if (image.mode in DEEP) != self.deep:
            raise SchemaError(
                f"{where} has {'8 bits' if self.deep else 'more than 8 bits'} a pixel, unlike "
                f"{self.first}: save all of them alike, so that one range of values is true of all"
            )
        resized = form.side_origin is Origin.DECLARED
        if not resized and image.size != (self.width, self.height):
            raise SchemaError(
                f"{where} is {image.height}x{image.width} pixels but {self.first} is "
                f"{self.height}x{self.width}: {argument('image_size', form.side)} resizes every "
                f"image to {form.side}x{form.side}"
            )
        with _sound(where):
            image, transparent = _on_white(image)
            pixels = self._pixels(image, where).convert(_MODES[form.channels])
            if resized:
                pixels = square(pixels, form)
        if turned:
            form.notice_once(where, "is marked as turned: such images are set upright")
        if transparent:
            form.notice_once(where, "is transparent in places: such images are laid on white")
        values = np.frombuffer(pixels.tobytes(), dtype=np.uint8)
        return values.reshape(-1, form.channels).T.ravel()

    def _pixels(self, image: Image.Image, where: str) -> Image.Image:
        """The image with 8 bits a channel, with the declared range of values."""
        if self.form.preparation.keeps_values:
            return image
        if not self.deep:
            image = image.convert(_MODES[CHANNELS[image.mode]])
        return Image.fromarray(to_pixels(np.asarray(image)[None], where, self.form)[0])


def _upright(content: bytes, where: str) -> tuple[Image.Image, bool]:
    """The image set upright by its orientation mark, and whether it was turned.

    Raises:
        DataError: it is not an image, or is damaged, truncated, or of an unsupported kind.
    """
    image = opened(content, where)
    if isinstance(image, TiffImageFile):  # Pillow turns these itself
        turned = image.tag_v2.get(ExifTags.Base.Orientation, 1) in _TURNS
        with _sound(where):
            image.load()
        return image, turned
    with _sound(where):
        image.load()
    if "exif" not in image.info:  # parsing marks takes as long as all the rest
        return image, False
    try:
        turn = _TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    except (*FAILURES, struct.error):  # unreadable marks are ignored
        turn = None
    return (image, False) if turn is None else (image.transpose(turn), True)


def _on_white(image: Image.Image) -> tuple[Image.Image, bool]:
    """The image on a white background, and whether any of that is visible."""
    if not image.has_transparency_data:
        return image, False
    layer = image.convert("RGBA")
    if layer.getchannel("A").getextrema() == (255, 255):
        return layer, False
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), layer), True


@contextlib.contextmanager
def _sound(where: str) -> Iterator[None]:
    """Turn the decoder's errors into one clear line."""
    try:
        yield
    except FAILURES as error:
        # The decoder may quote bytes of the image, which no traceback may show beside this one.
        raise DataError(
            f"{where}: damaged: replace or remove it", " ".join(str(error).split())
        ) from None
