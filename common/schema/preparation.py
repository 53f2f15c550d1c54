"""The preparation of images: processing by public choices before they become records."""

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
    """How an image that is not square becomes square."""

    STRETCH = "stretch"
    """The longer side is shortened more, which distorts the proportions."""
    CROP = "crop"
    """Everything outside the largest centred square is cut off."""
    PAD = "pad"
    """The image is centred on a square that is black (after inversion, if any)."""


@dataclass(frozen=True)
class Preparation:
    """The processing of each image by itself, apart from setting its size and channels.

    Guarantee:
        The choices are public and part of the schema: no record decides one, and each is applied to
        a record without looking at any other. (docs/privacy/proofs.md, statement 3.)

    Attributes:
        fit: how images become squares.
        value_range: which stored values are black and white; values beyond are clipped to these. If
            None, the format's own: 0 and 255, or 0 and 1 for floats.
        inverted: whether records are negatives, so that white becomes black.

    Raises:
        SchemaError: the range is invalid.
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
        """Whether 8-bit pixels have a record's values already."""
        return self.value_range is None and not self.inverted

    @property
    def in_words(self) -> str:
        """The processing, for people; empty for the default."""
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
        """Undo, or apply, the inversion of records' pixels, if any."""
        return np.uint8(255) - pixels if self.inverted else pixels

    def to_json(self) -> dict[str, Any]:
        """Plain entries that `from_json` reads back; empty for the default."""
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
            SchemaError: the range is invalid.
            TypeError: an entry has the wrong type.
            ValueError: there is no such fit, or a range does not have two ends.
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
"""The default: only the size and channels of images are set."""


def _number(value: object) -> float:
    if not isinstance(value, float):
        raise TypeError(f"{value!r} is not a number")
    return value
