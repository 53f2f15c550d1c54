"""Energies of rows, which model the dependence of columns beside the mean feature."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from ....common.schema.encoding import Block


class SwapGains(Protocol):
    """The energy gains of swaps between the first half of the rows and the second."""

    def gain(self, block: Block, pairs: Tensor) -> Tensor | float:
        """The gain for each of some pairs, int64 (m,), that swap a column's values, (m,)."""
        ...

    def accept(self, block: Block, chosen: Tensor) -> None:
        """Record that some pairs, int64 (m,), have swapped."""
        ...


class Energy(Protocol):
    """A function of rows that is fitted until they match the release."""

    def learn(self, records: Tensor) -> None:
        """Update it by what the current rows (n, record size) still lack."""
        ...

    def swap_gains(self, records: Tensor) -> SwapGains:
        """The gains of swaps between the first half of the rows and the second."""
        ...
