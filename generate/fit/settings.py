"""How to train a generator. No choice here touches the privacy of anything."""

from __future__ import annotations

import math
import operator
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Final, SupportsIndex

from ...common.errors import GeneratorError

MOST: Final = 2**31 - 1
"""Of anything that is counted: every library takes it."""
MOST_SEED: Final = 2**32 - 1
MARGINALS_LOSS: Final = 30.0
"""Weight of the marginals' distance, and of that of pairs, beside that of the other features."""


@dataclass(frozen=True)
class TrainingSettings:
    """Choices of stage three. None of them touches the privacy of anything.

    Attributes:
        steps: optimisation steps.
        batch: records a step, the same number of every class.
        seed: of the generator's weights, latent codes and draws.
        learning_rate: of Adam at the start; it falls to 0 along a cosine.

    Raises:
        GeneratorError: one of them is no number that makes sense.
    """

    steps: int = 1500
    batch: int = 400
    seed: int = 0
    learning_rate: float = 0.01

    def __post_init__(self) -> None:
        whole("steps", self.steps, least=1)
        whole("batch", self.batch, least=2)
        whole("seed", self.seed, least=0, most=MOST_SEED)
        positive("learning_rate", self.learning_rate)

    def to_json(self) -> dict[str, Any]:
        """The settings as a plain mapping."""
        return asdict(self)


@dataclass(frozen=True)
class TableSettings(TrainingSettings):
    """Choices of stage three for tables: those for images, and one more.

    Attributes:
        marginals_loss: weight of the marginals' distance, where the release holds marginals.
    """

    learning_rate: float = 0.003
    marginals_loss: float = MARGINALS_LOSS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.marginals_loss != 0:
            positive("marginals_loss", self.marginals_loss)


def whole(name: str, number: SupportsIndex, *, least: int, most: int = MOST) -> int:
    """A whole number, if it is one and in its range.

    Args:
        name: what it is, for the message.
        number: as the user gave it.
        least: that it may be.
        most: that it may be.

    Raises:
        GeneratorError: it is something else.
    """
    try:
        found = operator.index(number)
    except TypeError:
        found = least - 1
    if not least <= found <= most:
        raise GeneratorError(f"{name} {number!r}: a whole number from {least} to {most:,}")
    return found


def positive(name: str, number: float) -> None:
    """Refuse what is no positive number.

    Raises:
        GeneratorError: it is something else.
    """
    if not _is_real(number) or not 0 < number < math.inf:
        raise GeneratorError(f"{name} {number!r}: a number above 0")


def _is_real(number: object) -> bool:
    return isinstance(number, Real)
