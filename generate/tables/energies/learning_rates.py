"""How fast each coefficient of an energy is learnt from rows that move.

Rows answer a change of coefficients late, because only some columns move in a round. A coefficient
that they answer strongly, because its columns hardly depend on each other, would swing to and fro
at a rate that others need to get anywhere. So each coefficient has its own rate, which falls
whenever it turns back (Kesten 1958, "Accelerated stochastic approximation", section 1).

Coefficients that are answered together swing together: those of a number with several others that
are nearly the same, each of which takes the same share of what is missing. What is learnt sums up
what has been missing, and goes on until the sign changes, which is too late. So rows move by
coefficients that lead those learnt, by a multiple of their last change: a control that is
proportional as well as integral (Åström and Murray 2008, "Feedback Systems", section 10.1). Where
nothing changes any more, both are the same.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

_RATE: Final = 0.2
"""The rate at the beginning."""
_LEAD: Final = 2.0
"""Coefficients lead by this many times their last change."""
_TURNS: Final = 4.0
"""After this many turns the rate is a half of it, after twice as many a third, and so on."""


class LearningRates:
    """The rates of some coefficients.

    Args:
        ridge: what holds each of them back, of any shape: a coefficient stays where the residual is
            this many times itself.

    Attributes:
        lead: by how much the coefficients that rows move by are ahead of those learnt, of the same
            shape; 0 before the first step.
    """

    def __init__(self, ridge: Tensor) -> None:
        self._ridge = ridge
        self._turns = self._change = self.lead = torch.zeros_like(ridge)

    def step(self, coefficients: Tensor, residual: Tensor) -> Tensor:
        """The next coefficients.

        Args:
            coefficients: the last ones, shaped like the ridge.
            residual: what the rows still lack, shaped alike.
        """
        rate = _RATE / (1 + self._turns / _TURNS)
        # The ridge is implicit, at the new coefficients: else a large one would make steps diverge.
        found: Tensor = (coefficients + rate * residual) / (1 + rate * self._ridge)
        change = found - coefficients
        self._turns = self._turns + (change * self._change < 0)
        self._change, self.lead = change, _LEAD * change
        return found
