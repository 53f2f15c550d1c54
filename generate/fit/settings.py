"""How to train a generator. No choice here affects privacy."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

from ...common.arguments import MOST_SEED, positive, whole
from ...common.display.representations import BriefRepr
from ...common.errors import GeneratorError

MARGINALS_LOSS: Final = 30.0
"""Weight of the marginals' distance, and of that of pairs, beside that of the other features."""


@dataclass(frozen=True, repr=False)
class TrainingSettings(BriefRepr):
    """Choices of stage three. None of them affects privacy.

    Attributes:
        steps: optimisation steps.
        batch: records in a step, the same number of every class.
        seed: of the generator's weights, latent codes and draws.
        learning_rate: of Adam at the start; see `rate`.

    Raises:
        GeneratorError: one of them is not a number, or out of range.
    """

    steps: int = 1500
    batch: int = 400
    seed: int = 0
    learning_rate: float = 0.01

    def __post_init__(self) -> None:
        vars(self).update(  # with plain numbers: NumPy's are no JSON
            steps=whole(self.steps, "steps", GeneratorError, least=1),
            batch=whole(self.batch, "batch", GeneratorError, least=2),
            seed=whole(self.seed, "seed", GeneratorError, most=MOST_SEED),
            learning_rate=positive(self.learning_rate, "learning_rate", GeneratorError),
        )

    def to_json(self) -> dict[str, Any]:
        """The settings as a plain mapping."""
        return asdict(self)

    def rate(self, step: int) -> float:
        """The learning rate after some steps, relative to the first: it falls along a cosine."""
        return 0.5 * (1 + math.cos(math.pi * step / self.steps))


@dataclass(frozen=True, repr=False)
class TableSettings(TrainingSettings):
    """Choices of stage three for tables: those for images, and one more.

    Where a release holds columns beside tangent features, as it does by default, rows are put
    together from these, and of all choices only the seed counts.

    Attributes:
        marginals_loss: weight of the marginals' distance, where the release holds marginals.
    """

    learning_rate: float = 0.003
    marginals_loss: float = MARGINALS_LOSS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.marginals_loss != 0:
            vars(self)["marginals_loss"] = positive(
                self.marginals_loss, "marginals_loss", GeneratorError
            )
