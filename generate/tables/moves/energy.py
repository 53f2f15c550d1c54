"""What makes values of rows go together, beside their mean feature: parts of an energy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from ....common.schema.encoding import Block


class Pull(Protocol):
    """What exchanges between the first half of some rows and the other one change."""

    def gain(self, block: Block) -> Tensor | float:
        """By how much the energy of two rows grows if they exchange a column's values, (n,)."""
        ...

    def exchanged(self, block: Block, chosen: Tensor) -> None:
        """Some of them, int64 (m,), have done so."""
        ...


class Energy(Protocol):
    """A function of rows that is looked for until they have what a release says."""

    def learn(self, records: Tensor) -> None:
        """Change it by what rows (n, record size), as they stand, still lack."""
        ...

    def pull(self, records: Tensor) -> Pull:
        """What exchanges among some rows change."""
        ...


@dataclass(frozen=True)
class Pulls:
    """Several, added up."""

    parts: Sequence[Pull]

    def gain(self, block: Block) -> Tensor | float:
        """See `Pull`."""
        return sum(part.gain(block) for part in self.parts)

    def exchanged(self, block: Block, chosen: Tensor) -> None:
        """See `Pull`."""
        for part in self.parts:
            part.exchanged(block, chosen)
