"""Rows that are held to a condition, and exchange values with rows that are not.

The rows of a class follow a law P in which two of them exchange their values of a column with
probability min(1, exp(gain)): see `swap`. Rows that are held to a condition
should follow P given the condition. So a row x that fulfils it is put beside a row z that was drawn
from P, and the two exchange values as rows of a class do, except that no exchange may make x break
the condition. This leaves their joint law, P given the condition times P, as it is (Metropolis et
al. 1953). Then z is put back as it was, and the next z is drawn. So x takes a value as often as it
goes with what the condition asks for, by the released pairs and products of columns and by the mean
feature.
"""

from __future__ import annotations

import math
from typing import Final, Protocol

import numpy as np
import torch
from torch import Tensor

from ....common.display.console import Advance
from ....common.schema.encoding import Block
from ....common.schema.rules.condition import Condition
from ....common.schema.table import TableSchema
from ..rows.repair import repair
from ..rows.values import records_of, values_of
from .energy import Energy

_LOOKS: Final = 10
"""How often the rows of a class move on and those that fulfil the condition are collected."""
_TURNS: Final = 8
"""How often the rows of the class move on and then lend values to rows under the condition."""
_LOANS: Final = 8
"""How many rounds of lending follow on one another."""


class Moves(Protocol):
    """What puts the rows of a class together."""

    def begin(self, records: Tensor, advance: Advance) -> None:
        """Find the law of rows (n, record size), and make them follow it, in place."""
        ...

    def go_on(self, records: Tensor) -> None:
        """Move rows that follow it a little further, in place."""
        ...

    def lend(self, records: Tensor, others: Tensor, given: Energy) -> None:
        """Rows take values of others by exchanges, after which the others are as they were.

        Args:
            records: (n, record size), values 0..1, changed in place.
            others: rows that follow the law, (k, record size).
            given: a further part of the energy, of the rows of the first kind.
        """
        ...


class Given:
    """The part of an energy that holds rows to a condition.

    It is 0 where they fulfil it, and minus infinity elsewhere.

    Args:
        condition: on rows of the class.
        schema: of the table.
        label: of the class.
    """

    def __init__(self, condition: Condition, schema: TableSchema, label: int) -> None:
        self._condition, self._schema, self._label = condition, schema, label

    def holds(self, records: Tensor) -> Tensor:
        """Which rows (n, record size) fulfil it as they would be written, bool (n,)."""
        labels, names = np.full(len(records), self._label), self._condition.names
        values = values_of(self._schema, records.numpy(), labels, names)
        return torch.from_numpy(self._condition.truth(values).holds)

    def nearest(self, records: Tensor, seed: int) -> Tensor:
        """Rows that are changed to fulfil it, those of which as few columns are as possible.

        Args:
            records: (n, record size), none of which does; they stay as they are.
            seed: of what is left to chance.
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
        """There is nothing to be learnt."""

    def pull(self, records: Tensor) -> GivenPull:
        """What exchanges between the first half of some rows and the other one change."""
        return GivenPull(self, records, self._condition.names)


class GivenPull:
    """By how much the energy grows if two rows exchange their values of a column.

    Args:
        given: the energy, of which the rows of the first half have a part, and the others none.
        records: the rows, (2 n, record size); they are looked at as they stand.
        names: of the columns that the condition is about.
    """

    def __init__(self, given: Given, records: Tensor, names: frozenset[str]) -> None:
        self._given, self._names = given, names
        self._one, self._other = records.split(len(records) // 2)

    def gain(self, block: Block) -> Tensor | float:
        """The growth for each pair of rows, (n,)."""
        if block.column.name not in self._names:
            return 0.0
        after = self._one.clone()
        after[:, block.place] = self._other[:, block.place]
        gain = torch.zeros(len(after))
        gain[~self._given.holds(after)] = -math.inf
        return gain

    def exchanged(self, block: Block, chosen: Tensor) -> None:
        """Nothing is remembered."""


class Pool:
    """Rows of a class, and what is drawn of it under a condition.

    Args:
        moves: have put the rows together.
        records: the rows, (n, record size), changed in place.
        given: the condition.
        random: of all draws.

    Attributes:
        share: of the rows that fulfil the condition, 0..1.
    """

    def __init__(
        self, moves: Moves, records: Tensor, given: Given, random: np.random.Generator
    ) -> None:
        self._moves, self._records, self._given, self._random = moves, records, given, random
        found = []
        for _ in range(_LOOKS):
            moves.go_on(records)
            found.append(records[given.holds(records)])
        self._found = torch.cat(found)
        self.share = len(self._found) / (_LOOKS * len(records))

    def draw(self, count: int) -> Tensor:
        """Rows under the condition, (count, record size); fewer if no value fulfils it."""
        found = self._found
        if not len(found):
            found = self._given.nearest(self._records, int(self._random.integers(1 << 32)))
        if not len(found):
            return found
        order = self._random.permutation(max(count, len(found)))[:count] % len(found)
        made = found[torch.from_numpy(order)]
        for _ in range(_TURNS):
            self._moves.go_on(self._records)
            for _ in range(_LOANS):
                self._moves.lend(made, self._records, self._given)
        return made
