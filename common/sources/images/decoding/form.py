"""The form of images as embedded, where it comes from, and the limits on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ....arguments import argument
from ....display.console import notice
from ....errors import SchemaError
from ....schema.image import ImageSchema, nearest_side
from ....schema.origin import Origin
from ....schema.preparation import AS_STORED, Fit, Preparation
from ...base import Source
from ...options import SourceOptions
from ..labels import Classes

MOST_PIXELS: Final = 1 << 26
"""The most pixels of a stored image: 64 million are enough for records of 64 pixels a side."""


@dataclass(frozen=True)
class Form:
    """The form of a source's records: their side and channels, and where these come from.

    Attributes:
        side: height and width.
        channels: 1 or 3.
        side_origin: where `side` came from; images are resized if it is declared.
        channels_origin: where `channels` came from; images are converted if it is declared.
        preparation: the other processing of every image.
        only_compared: see `SourceOptions`.
    """

    side: int
    channels: int
    side_origin: Origin
    channels_origin: Origin
    preparation: Preparation = AS_STORED
    only_compared: bool = False
    _noticed: set[str] = field(default_factory=set, repr=False, compare=False)

    @classmethod
    def of(cls, height: int, width: int, channels: int, options: SourceOptions, where: str) -> Form:
        """The form of records made from images of a given size and channels.

        Raises:
            SchemaError: the images are not square, and no size to resize them to was given.
        """
        side, side_origin = options.image_size, Origin.DECLARED
        if side is None:
            side, side_origin = height, Origin.FORMAT
            if height != width:
                square = nearest_side(min(height, width))
                fit = " or ".join(argument("fit", each) for each in (Fit.CROP.value, Fit.PAD.value))
                raise SchemaError(
                    f"{where}: images of {height}x{width} pixels are not square: "
                    f"{argument('image_size', square)} resizes every image to {square}x{square}, "
                    f"{fit} beside it keeps proportions"
                )
        channels_origin = Origin.FORMAT if options.channels is None else Origin.DECLARED
        return cls(
            side,
            options.channels or channels,
            side_origin,
            channels_origin,
            options.preparation,
            options.only_compared,
        )

    def schema(self, classes: Classes) -> ImageSchema:
        """The schema of such records with some classes."""
        return ImageSchema(
            self.side,
            classes.names,
            self.side_origin,
            classes.origin,
            self.channels,
            self.channels_origin,
            self.preparation,
        )

    def notice_once(self, where: str, what: str) -> None:
        """Report something for the first image that it is true of.

        Args:
            where: the image's name in messages.
            what: the text after the name.
        """
        if what not in self._noticed:
            self._noticed.add(what)
            notice(f"{where} {what}")


def require_public_form(source: Source) -> None:
    """Refuse a single image whose size, channels or classes are known only from itself.

    Several images have one form or are refused, and all or none of them have labels, so exchanging
    one of them does not change this.

    Raises:
        SchemaError: size, channels or classes were not declared.
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
    if schema.classes_origin is not Origin.DECLARED:
        raise SchemaError(
            "there is a single image, so that nothing but itself says whether it has a label: "
            f"declare the classes with {argument('classes')} or {argument('class_names')}"
        )


def require_image(height: int, width: int, where: str) -> None:
    """Refuse images of impossible size, or too large to be read one by one.

    Raises:
        SchemaError: the image has no pixels, or more than 64 million.
    """
    if height < 1 or width < 1 or height * width > MOST_PIXELS:
        raise SchemaError(
            f"{where}: images of {height}x{width} pixels: 1 to {MOST_PIXELS} are read"
        )
