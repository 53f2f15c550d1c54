"""What rows of a class should have: its mean feature, and what else is released of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from torch import Tensor

from ....common.schema.encoding import Block
from .counts import ReleasedCounts
from .departures import ReleasedMoments
from .relu_features import ReluFeatures

STRENGTH: Final = 0.01
"""How much of the variance of rows with independent columns what goes with what makes up, as far as
nothing is known: on tables of people it is about that (docs/design/table-generator.md)."""
_COLUMNS_A_ROUND: Final = 0.3
_LEAST_COLUMNS: Final = 3


@dataclass(frozen=True, eq=False)
class Goal:
    """What the mean feature of rows should be.

    Attributes:
        tangents: the features.
        blocks: the columns of the rows.
        mean: (d,), noisy.
        noise: standard deviation of the noise on an entry of it.
        moments: what products of their numbers should be; None if that is not known.
        counts: how often cells of several columns should be; None likewise.
    """

    tangents: ReluFeatures
    blocks: tuple[Block, ...]
    mean: Tensor
    noise: float
    moments: ReleasedMoments | None = None
    counts: ReleasedCounts | None = None

    @property
    def floor(self) -> float:
        """What the noise alone adds to a squared distance from the mean, in expectation."""
        return self.noise**2 * len(self.mean)

    @property
    def ridge(self) -> float:
        """What a theta is to be held back by that says what goes with what.

        If rows P are independent ones P_0 weighed anew, with weights of variance `STRENGTH` before
        anything is seen, then the most likely P is P_0 tilted by theta = (mu - E_P phi) / ridge:
        minus the logarithm of its probability is, but for constants and to the second order,
        || mu - E_P phi ||^2 / (2 noise^2) + KL(P || P_0) / STRENGTH.
        """
        return self.noise**2 / STRENGTH

    def some_columns(self, random: np.random.Generator) -> list[Block]:
        """Columns for a round, in random order."""
        taken = max(_LEAST_COLUMNS, round(_COLUMNS_A_ROUND * len(self.blocks)))
        return [self.blocks[column] for column in random.permutation(len(self.blocks))[:taken]]
