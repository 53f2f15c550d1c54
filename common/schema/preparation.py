"""What is done to every image before it is a record, by public choices alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..errors import SchemaError


class Fit(Enum):
    """How an image that is not square becomes a square."""

    STRETCH = "stretch"
    """Its longer side is shortened more: what is in it changes its proportions."""
    CROP = "crop"
    """What is beyond the largest square in its middle is cut off."""
    PAD = "pad"
    """It lies in the middle of a square that is black once values are inverted, if they are."""


@dataclass(frozen=True)
class Preparation:
    """What is done to every image, and to each by itself, beside giving it its size and channels.

    Guarantee:
        Public choices, which are part of the schema: no record decides one, and each is applied to
        a record without a look at any other. (docs/privacy/proofs.md, statement 3.)

    Attributes:
        fit: how images become squares.
        value_range: which stored values are black and white; what is beyond is cut to these. If
            None, what the format says: 0 and 255, of floats 0 and 1.
        inverted: whether records are negatives, so that what was white is black.

    Raises:
        SchemaError: the range is none.
    """

    fit: Fit = Fit.STRETCH
    value_range: tuple[float, float] | None = None
    inverted: bool = False

    def __post_init__(self) -> None:
        if self.value_range is None:
            return
        low, high = self.value_range
        if not (low < high and math.isfinite(low) and math.isfinite(high - low)):
            raise SchemaError(
                f"a range of values from {low:g} to {high:g}: give the value that is black, and "
                "then a larger one that is white"
            )

    @property
    def keeps_values(self) -> bool:
        """Whether pixels of 8 bits have the values of a record already."""
        return self.value_range is None and not self.inverted

    @property
    def in_words(self) -> str:
        """What is done, for people; empty if it is what is always done."""
        parts = []
        if self.value_range is not None:
            low, high = self.value_range
            parts.append(f"values {low:.12g} to {high:.12g}")
        if self.inverted:
            parts.append("inverted")
        if self.fit is Fit.CROP:
            parts.append("cropped to squares")
        if self.fit is Fit.PAD:
            parts.append("padded to squares")
        return ", ".join(parts)

    def turned_back(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Pixels of records as they are in images, bright where these are; and the reverse."""
        return np.uint8(255) - pixels if self.inverted else pixels

    def to_json(self) -> dict[str, Any]:
        """Plain entries that `from_json` reads back; none for what is always done."""
        document: dict[str, Any] = {}
        if self.fit is not Fit.STRETCH:
            document["fit"] = self.fit.value
        if self.value_range is not None:
            document["value_range"] = list(self.value_range)
        if self.inverted:
            document["inverted"] = True
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Preparation:
        """Read what `to_json` wrote, among other entries.

        Raises:
            SchemaError: the range is none.
            TypeError: an entry is of another type.
            ValueError: there is no such fit, or not two ends of a range.
        """
        if not isinstance(document, Mapping):
            raise TypeError("not a mapping")
        value_range = document.get("value_range")
        if value_range is not None:
            low, high = value_range
            value_range = _number(low), _number(high)
        fit = Fit(document.get("fit", Fit.STRETCH.value))
        return cls(fit, value_range, document.get("inverted") is True)


AS_STORED: Final = Preparation()
"""Nothing but a size and channels is given to images."""


def _number(value: object) -> float:
    if not isinstance(value, float):
        raise TypeError(f"{value!r} is not a number")
    return value
