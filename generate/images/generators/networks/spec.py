"""The description of an image generator, which is stored with its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .....common.errors import GeneratorError
from .....common.schema.classes import MOST_CLASSES
from .....common.schema.image import COLOUR, GREY, LARGEST_SIDE, SMALLEST_SIDE
from ....output.generator_file import Spec

_MOST_CODE: Final = 1000


def require_form(side: int, classes: int, channels: int, *codes: int) -> None:
    """Check the form of the images and the lengths of latent codes.

    Raises:
        GeneratorError: a number is out of its range.
    """
    if not (
        SMALLEST_SIDE <= side <= LARGEST_SIDE
        and 1 <= classes <= MOST_CLASSES
        and all(1 <= code <= _MOST_CODE for code in codes)
        and channels in (GREY, COLOUR)
    ):
        raise GeneratorError("the generator's description is out of range")


@dataclass(frozen=True)
class NetworkSpec(Spec):
    """Everything needed to rebuild a network, except its weights.

    Attributes:
        side: height and width of an image.
        classes: number of classes.
        code: length of the latent code.
        channels: of an image, 1 or 3.

    Raises:
        GeneratorError: a number is out of its range.
    """

    side: int
    classes: int
    code: int
    channels: int = GREY

    def __post_init__(self) -> None:
        require_form(self.side, self.classes, self.channels, self.code)
