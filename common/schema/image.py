"""The schema of images: what is publicly known of sizes, value bounds and class names.

Everything that shapes the computation and is not covered by epsilon must be public knowledge. The
schema states what is taken as known and where each piece comes from, and it is part of the
embedding and the release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..arguments import argument
from ..errors import SchemaError
from ..ledger import Entry
from .classes import MOST_CLASSES, some_classes
from .names import require_name
from .origin import Origin
from .preparation import AS_STORED, Preparation

SMALLEST_SIDE = 8
LARGEST_SIDE = 64
PIXEL_LEVELS = 255
GREY: Final = 1
COLOUR: Final = 3
"""The channels of a colour image: red, green and blue."""

Value = TypeVar("Value", bound=np.generic)


@dataclass(frozen=True)
class ImageSchema:
    """Square images of 8-bit pixels, in grey or colour, each in one of several classes.

    A record is an image's channels one after another, each row by row.

    Attributes:
        side: height and width in pixels, 8 to 64.
        classes: the name of every class; a record's label is an index into it.
        side_origin: where `side` came from.
        classes_origin: where `classes` came from.
        channels: 1 for grey images, 3 for colour images.
        channels_origin: where `channels` came from.
        preparation: the other processing of every image, as declared.
    """

    side: int
    classes: tuple[str, ...]
    side_origin: Origin
    classes_origin: Origin
    channels: int = GREY
    channels_origin: Origin = Origin.FORMAT
    preparation: Preparation = AS_STORED

    def __post_init__(self) -> None:
        if not SMALLEST_SIDE <= self.side <= LARGEST_SIDE:
            raise SchemaError(
                f"images of {self.side}x{self.side} pixels: a side of {SMALLEST_SIDE} to "
                f"{LARGEST_SIDE} is supported: "
                f"{argument('image_size', nearest_side(self.side))} resizes them"
            )
        if self.channels not in (GREY, COLOUR):
            raise SchemaError(f"images of {self.channels} channels: 1 and 3 are supported")
        if not 1 <= len(self.classes) <= MOST_CLASSES:
            raise SchemaError(
                f"{len(self.classes)} classes: between 1 and {MOST_CLASSES} are supported"
            )
        for name in self.classes:
            require_name(name, "a class", empty=True)
        if len(set(self.classes)) != len(self.classes):
            raise SchemaError("two classes have the same name")
        if Origin.PRIVATE in (self.side_origin, self.classes_origin, self.channels_origin):
            raise SchemaError("nothing of images is found with differential privacy")

    @property
    def spent(self) -> tuple[Entry, ...]:
        """Nothing: see `TableSchema.spent`."""
        return ()

    @property
    def privacy_unit(self) -> None:
        """None: an image is protected by itself; see `TableSchema.privacy_unit`."""
        return None

    @property
    def record_size(self) -> int:
        """Number of values in one record."""
        return self.channels * self.side * self.side

    @property
    def levels(self) -> int:
        """Records hold integers 0..levels, which stand for the values 0..1."""
        return PIXEL_LEVELS

    @property
    def from_data(self) -> tuple[str, ...]:
        """The pieces that were looked up in the records, and so are outside the guarantee."""
        pieces = {
            "image size": self.side_origin,
            "image channels": self.channels_origin,
            "number and names of the classes": self.classes_origin,
        }
        return tuple(name for name, origin in pieces.items() if origin is Origin.FROM_DATA)

    @property
    def known(self) -> tuple[str, ...]:
        """What is taken as public, in words."""
        form = "image size" if self.channels == GREY else "image size and channels"
        ranged = () if self.preparation.value_range is None else ("range of values",)
        return form, *ranged, "number and names of the classes"

    @property
    def summary(self) -> str:
        """What the records are, in words."""
        grey = "grey " if self.channels == GREY else ""
        prepared = f" ({how})" if (how := self.preparation.in_words) else ""
        return f"{grey}{self.noun}{prepared} in {some_classes(self.classes)}"

    @property
    def noun(self) -> str:
        """The plural noun for the records."""
        colour = "" if self.channels == GREY else "colour "
        return f"{colour}images of {self.side}x{self.side} pixels"

    def to_json(self) -> dict[str, Any]:
        """A plain mapping that `from_json` reads back."""
        document = {
            "kind": "image",
            "side": self.side,
            "side_origin": self.side_origin.value,
            "channels": self.channels,
            "levels": self.levels,
            "levels_origin": Origin.FORMAT.value,
            "classes": list(self.classes),
            "classes_origin": self.classes_origin.value,
        }
        if self.channels_origin is not Origin.FORMAT:
            document["channels_origin"] = self.channels_origin.value
        return document | self.preparation.to_json()

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> ImageSchema:
        """Read what `to_json` wrote.

        Raises:
            SchemaError: something is missing, of the wrong type, or out of range.
        """
        try:
            schema = cls(
                side=_integer(document["side"]),
                classes=tuple(_text(name) for name in document["classes"]),
                side_origin=Origin(document["side_origin"]),
                classes_origin=Origin(document["classes_origin"]),
                channels=_integer(document["channels"]),
                channels_origin=Origin(document.get("channels_origin", "format")),
                preparation=Preparation.from_json(document),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SchemaError(f"not a schema that this dpntk reads: {error!r}") from error
        if schema.to_json() != dict(document):
            raise SchemaError("not a schema that this dpntk reads: unknown entries")
        return schema


def nearest_side(pixels: int) -> int:
    """The allowed side of images nearest to a number of pixels."""
    return min(max(pixels, SMALLEST_SIDE), LARGEST_SIDE)


def pictures(records: NDArray[Value], channels: int) -> NDArray[Value]:
    """Records in the usual layout of images: a colour image has its channels in every pixel.

    Args:
        records: (n, channels * side * side).
        channels: of an image.

    Returns:
        (n, side, side), or (n, side, side, 3) in colour.
    """
    side = math.isqrt(records.shape[1] // channels)
    planes = records.reshape(-1, channels, side, side)
    return planes[:, 0] if channels == GREY else np.ascontiguousarray(planes.transpose(0, 2, 3, 1))


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not an integer")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value
