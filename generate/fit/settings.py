"""How to train a generator. No choice here affects privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ...common.arguments import MOST_SEED, positive_number, set_plain, whole_number
from ...common.display.representations import BriefRepr
from ...common.errors import GeneratorError

MARGINALS_LOSS: Final = 30.0
"""Weight of the distances of marginals and of pairs, relative to that of the other features."""
STEPS_IN_COLOUR: Final = 400
"""Most steps for colour images by default. Their classes differ little compared with the noise:
more steps bring images closer to the release but farther from the records' own mean embedding."""


@dataclass(frozen=True, repr=False)
class TrainingSettings(BriefRepr):
    """All choices of stage three for images. None of them affects privacy.

    What is not given here is as below, whatever the release; `Choices` leaves it to the release.

    Attributes:
        steps: optimisation steps.
        batch: records in a step, the same number of every class.
        seed: seeds the generator's weights, latent codes and draws.
        learning_rate: initial learning rate of Adam; see `rate`.

    Raises:
        GeneratorError: one of them is not a number, or out of range.
    """

    steps: int = 1500
    batch: int = 400
    seed: int = 0
    learning_rate: float = 0.01

    def __post_init__(self) -> None:
        set_plain(
            self,
            steps=whole_number("steps", self.steps, least=1, refusal=GeneratorError),
            batch=whole_number("batch", self.batch, least=2, refusal=GeneratorError),
            seed=whole_number("seed", self.seed, most=MOST_SEED, refusal=GeneratorError),
            learning_rate=positive_number(
                "learning_rate", self.learning_rate, refusal=GeneratorError
            ),
        )

    def rate(self, step: int) -> float:
        """The learning rate after some steps, relative to the initial one, along a cosine."""
        return 0.5 * (1 + math.cos(math.pi * step / self.steps))


@dataclass(frozen=True, repr=False)
class TableSettings(TrainingSettings):
    """Choices of stage three for tables: those for images, and one more.

    If a release holds marginals beside tangent features, as it does by default, rows are arranged
    without training, and only the seed matters.

    Attributes:
        marginals_loss: weight of the marginals' distance, if the release holds marginals.
    """

    learning_rate: float = 0.003
    marginals_loss: float = MARGINALS_LOSS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.marginals_loss != 0:
            loss = positive_number("marginals_loss", self.marginals_loss, refusal=GeneratorError)
            set_plain(self, marginals_loss=loss)
