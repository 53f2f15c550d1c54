"""The Markov chains that arrange the rows of a class, as those who run them see them."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor

from ....common.display.console import Advance
from ....common.runtime.threads import Each
from ..energies.base import Energy
from ..energies.goal import Goal
from .metropolis import try_swaps_with


class Moves(ABC):
    """The Markov chain that arranges the rows of a class.

    Args:
        goal: targets of the rows.
        random: of all draws.
        each: distributes the work.
    """

    def __init__(self, goal: Goal, random: np.random.Generator, each: Each = map) -> None:
        self._goal, self._random, self._each = goal, random, each
        self._theta = torch.zeros_like(goal.mean)
        self._energies: list[Energy] = []

    @abstractmethod
    def fit(self, records: Tensor, advance: Advance) -> None:
        """Fit the distribution of rows (n, record size), and move them to it, in place."""

    @abstractmethod
    def continue_chain(self, records: Tensor) -> None:
        """Move rows that already follow it a little further, in place; they may be duplicates."""

    def swap_with(self, records: Tensor, others: Tensor, condition: Energy) -> None:
        """Rows swap values with others, which are restored afterwards.

        Args:
            records: (n, record size), values 0..1, changed in place.
            others: rows that follow the distribution, (k, record size).
            condition: a further part of the energy, for `records` alone.
        """
        columns = self._goal.some_columns(self._random)
        energies = [*self._energies, condition]
        form = self._goal.tangents.linear_form(self._theta)
        try_swaps_with(form, records, others, columns, self._random, energies, self._each)
