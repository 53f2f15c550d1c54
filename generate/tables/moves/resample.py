"""Rows of a low-signal class: values are replaced by those of other rows.

Of such a class the noise hides every single column, but not its mean feature as a whole. As in
`reweighting` its law P is one that is known, P_0, tilted:

    P(x)  ~  P_0(x) exp <theta, phi(x)>.

P_0 has the columns of all classes, moved and widened as the mean feature of the class says
(`columns.tilts`). They go together along a tree, as tables of columns of all classes say
(`counts`), if there are any: those of a low-signal class by itself are lost in noise. Only a tree,
because a row of the class may be far out in many columns at once, where what hundreds of pairs say
would add up, each of them little and learnt where rows are frequent. The mean feature of all
classes has no part in P_0: it would leave little of what is particular to the class. Nor have
products of numbers: the farther out a row is, the more they say, and so does the noise on them.

theta is where <theta, mu> - log E_0 exp <theta, phi> - ridge / 2 ||theta||^2 is largest, with mu
the released mean feature. Choosing among rows that were drawn from P_0 beforehand is not enough: a
rare class lies where P_0 has next to nothing, and rows with a few of its traits are far more
frequent than rows with all of them. So rows move: a row's value of a column is replaced by that of
some other row with probability min(1, exp(gain)), where the gain is by how much <theta, phi(x)> and
the energy of P_0 grow (Metropolis et al. 1953, "Equation of state calculations by fast computing
machines"), and theta is found on the way, as in `swap`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from torch import Tensor

from ....common.display.console import Advance
from ....common.runtime.threads import Each
from .counts import Counts
from .energy import Energy
from .goal import Goal

CAUTION: Final = 0.07
"""The ridge is so many standard deviations of the noise on an entry of mu. Chosen on held-out rows
(docs/design/table-generator.md)."""
_HIDES_ALL: Final = 0.5
"""Above about this noise the ridge grows with its square: mu has length 1 at most, so next to
nothing of it is signal if a single entry has that much noise."""
_RATE: Final = 6.0
_ROUNDS: Final = 150
_LATER_ROUNDS: Final = 30
"""How many rounds follow each doubling of the rows."""
_WINDOW: Final = 10


class ResamplingMoves:
    """Rows of a class whose values are replaced.

    Args:
        goal: what their mean feature should be.
        others: rows that values are taken from, (k, record size).
        tables: of all classes, whose law these rows follow; None if columns are independent.
        random: of the draws.
        each: shares the work.

    Attributes:
        others: as above.
    """

    def __init__(
        self,
        goal: Goal,
        others: Tensor,
        tables: Counts | None,
        random: np.random.Generator,
        each: Each = map,
    ) -> None:
        self.others, self._tables = others, tables
        self._goal, self._random, self._each = goal, random, each
        self._theta = torch.zeros_like(goal.mean)

    def begin(self, records: Tensor, advance: Advance) -> None:
        """Find theta, and rows that follow the law that it makes.

        Args:
            records: (n, record size), values 0..1, changed in place.
            advance: is told how many rounds there were.
        """
        goal, noise = self._goal, self._goal.noise
        ridge = CAUTION * noise * (1 + noise / _HIDES_ALL)
        for done in range(_ROUNDS):
            if done % _WINDOW == 0:
                advance(0, f"round {done} of {_ROUNDS}")
            missing = goal.mean - goal.tangents.mean(records, self._each)
            # The ridge counts at the new theta: else a large one would make the steps diverge.
            self._theta = (self._theta + _RATE * missing) / (1 + _RATE * ridge)
            self._replace(records)

    def go_on(self, records: Tensor) -> None:
        """Tell rows apart that are there twice, in place; theta stays."""
        for _ in range(_LATER_ROUNDS):
            self._replace(records)

    def lend(self, records: Tensor, others: Tensor, given: Energy) -> None:
        """See `conditioned`."""
        columns = self._goal.some_columns(self._random)
        energies = [given] if self._tables is None else [self._tables, given]
        self._goal.tangents.lend(
            records, others, self._theta, columns, self._random, energies, self._each
        )

    def _replace(self, records: Tensor) -> None:
        goal, random = self._goal, self._random
        columns = goal.some_columns(random)
        goal.tangents.resample(
            records, self.others, self._theta, columns, random, self._tables, self._each
        )
