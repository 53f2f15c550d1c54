"""Rows under a condition, which swap values with unconditioned rows.

The rows of a class follow a distribution P, under which two of them swap their values of a column
with probability min(1, exp(gain)): see `swap`. Rows under a condition should follow P given the
condition. So a row x that fulfils it is paired with a row z drawn from P, and the two swap values
as rows of a class do, except that no swap may make x break the condition. This leaves their joint
distribution, P given the condition times P, invariant (Metropolis et al. 1953). Then z is restored,
and the next z is drawn. So x takes values as they go with the condition, according to the released
pairs and products of columns and the mean feature.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import torch
from torch import Tensor

from ....common.schema.encoding import Block
from ....common.schema.rules.condition import Condition
from ....common.schema.table import TableSchema
from ..rows.repair import repair
from ..rows.values import records_of, values_of
from .base import Moves

_SAMPLES: Final = 10
"""How many times the rows of a class are moved and those that fulfil the condition collected."""
_ROUNDS: Final = 8
"""How many times the rows of the class are moved and then lend values to rows under the
condition."""
_SWAPS_A_ROUND: Final = 8
"""Rounds of lending in each turn."""


class ConditionEnergy:
    """The part of the energy that enforces a condition.

    It is 0 where rows fulfil the condition, and minus infinity elsewhere.

    Args:
        condition: on rows of the class.
        schema: of the table.
        label: of the class.
    """

    def __init__(self, condition: Condition, schema: TableSchema, label: int) -> None:
        self._condition, self._schema, self._label = condition, schema, label

    def holds(self, records: Tensor) -> Tensor:
        """Which rows (n, record size) fulfil the condition once written out, bool (n,)."""
        labels, names = np.full(len(records), self._label), self._condition.names
        values = values_of(self._schema, records.numpy(), labels, names)
        return torch.from_numpy(self._condition.truth(values).holds)

    def nearest(self, records: Tensor, seed: int) -> Tensor:
        """Rows changed to fulfil the condition: those that need the fewest changed columns.

        Args:
            records: (n, record size), none of which fulfils it; they are not modified.
            seed: of random choices.
        """
        labels = np.full(len(records), self._label)
        before = values_of(self._schema, records.numpy(), labels)
        after = {name: column.copy() for name, column in before.items()}
        repair(after, self._schema, seed, (self._condition,))
        changed = np.sum([after[name] != before[name] for name in self._condition.names], axis=0)
        fine = self._condition.truth(after).holds
        if not fine.any():
            return records[:0]
        rows = np.flatnonzero(fine & (changed == changed[fine].min()))
        return torch.from_numpy(
            records_of(self._schema, {name: column[rows] for name, column in after.items()})
        )

    def learn(self, records: Tensor) -> None:
        """Do nothing: the condition is fixed."""

    def swap_gains(self, records: Tensor) -> ConditionGains:
        """The gains of swaps between the first half of the rows and the second."""
        return ConditionGains(self, records, self._condition.names)


class ConditionGains:
    """The energy gains of swaps between pairs of rows.

    Args:
        condition: the energy, which applies to the first half of the rows alone.
        records: the rows, (2 n, record size); later changes to them are seen.
        names: of the columns in the condition.
    """

    def __init__(self, condition: ConditionEnergy, records: Tensor, names: frozenset[str]) -> None:
        self._condition, self._names = condition, names
        self._one, self._other = records.split(len(records) // 2)

    def gain(self, block: Block, pairs: Tensor) -> Tensor | float:
        """The gain for each of some pairs of rows, (m,)."""
        if block.column.name not in self._names:
            return 0.0
        after = self._one.index_select(0, pairs)
        after[:, block.place] = self._other[:, block.place].index_select(0, pairs)
        gain = torch.zeros(len(after))
        gain[~self._condition.holds(after)] = -math.inf
        return gain

    def accept(self, block: Block, chosen: Tensor) -> None:
        """Do nothing: there is no state to update."""


class Pool:
    """Rows of a class, from which rows under a condition are drawn.

    Args:
        moves: the chain that has arranged the rows.
        records: the rows, (n, record size), changed in place.
        condition: the condition.
        random: of all draws.

    Attributes:
        share: share of the rows that fulfil the condition, 0..1.
    """

    def __init__(
        self, moves: Moves, records: Tensor, condition: ConditionEnergy, random: np.random.Generator
    ) -> None:
        self._moves, self._records, self._condition, self._random = (
            moves,
            records,
            condition,
            random,
        )
        found = []
        for _ in range(_SAMPLES):
            moves.continue_chain(records)
            found.append(records[condition.holds(records)])
        self._found = torch.cat(found)
        self.share = len(self._found) / (_SAMPLES * len(records))

    def draw(self, count: int) -> Tensor:
        """Draw rows under the condition, (count, record size); none if no values fulfil it."""
        found = self._found
        if not len(found):
            found = self._condition.nearest(self._records, int(self._random.integers(1 << 32)))
        if not len(found):
            return found
        order = self._random.permutation(max(count, len(found)))[:count] % len(found)
        made = found[torch.from_numpy(order)]
        for _ in range(_ROUNDS):
            self._moves.continue_chain(self._records)
            for _ in range(_SWAPS_A_ROUND):
                self._moves.swap_with(made, self._records, self._condition)
        return made
