"""Resampling moves, for rows of a low-signal class: values are replaced by those of other rows.

Noise hides every single column of such a class, but not its mean feature as a whole. As in
`reweighting`, its distribution P is a known one, P_0, exponentially tilted:

    P(x)  ~  P_0(x) exp <theta, phi(x)>.

P_0 has the columns of all classes, shifted and widened according to the mean feature of the class
(`columns.tilts`). Their dependence follows a tree of the tables of all classes (`energies.count`),
if there are any, because the class's own tables are lost in noise. It is only a tree, because a row
of the class may be an outlier in many columns at once: there, the small effects of hundreds of
pairs, learnt where rows are frequent, would add up. The mean feature of all classes is left out of
P_0, as it would suppress what is particular to the class. So are products of numbers: they matter
most for outliers, and so does their noise.

theta maximises <theta, mu> - log E_0 exp <theta, phi> - ridge / 2 ||theta||^2, with mu the released
mean feature. Choosing among rows drawn from P_0 in advance is not enough: a rare class lies where
P_0 has next to no mass, and rows with a few of its traits are far more frequent than rows with all
of them. So rows move: a row's value of a column is replaced by that of some other row with
probability min(1, exp(gain)), where the gain is the increase of <theta, phi(x)> plus the energy of
P_0 (Metropolis et al. 1953, "Equation of state calculations by fast computing machines"), and theta
is learnt as rows move, as in `swap`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from torch import Tensor

from ....common.display.console import Advance
from ....common.runtime.threads import Each
from ..energies.count import CountEnergy
from ..energies.goal import Goal
from .base import Moves
from .metropolis import try_replacements

RIDGE: Final = 0.07
"""The ridge, in standard deviations of the noise on an entry of mu. Chosen on held-out rows
(docs/design/table-generator.md)."""
_SATURATING_NOISE: Final = 0.5
"""Above about this noise the ridge grows with its square: mu has length 1 at most, so hardly any
signal is left if a single entry has that much noise."""
_RATE: Final = 6.0
_ROUNDS: Final = 150
_LATER_ROUNDS: Final = 30
"""Rounds after each doubling of the rows."""
_WINDOW: Final = 10


class ResamplingMoves(Moves):
    """The chain that replaces values of a class's rows.

    Args:
        goal: targets of the rows.
        others: rows that values are taken from, (k, record size).
        tables: energy of all classes' tables, which these rows follow; None if columns are
            independent.
        random: of the draws.
        each: distributes the work.

    Attributes:
        others: as above.
    """

    def __init__(
        self,
        goal: Goal,
        others: Tensor,
        tables: CountEnergy | None,
        random: np.random.Generator,
        each: Each = map,
    ) -> None:
        super().__init__(goal, random, each)
        self.others, self._tables = others, tables
        self._energies += [] if tables is None else [tables]

    def fit(self, records: Tensor, advance: Advance) -> None:
        """Fit theta, and move rows to the tilted distribution.

        Args:
            records: (n, record size), values 0..1, changed in place.
            advance: reports the rounds done.
        """
        goal, noise = self._goal, self._goal.noise
        ridge = RIDGE * noise * (1 + noise / _SATURATING_NOISE)
        for done in range(_ROUNDS):
            if done % _WINDOW == 0:
                advance(0, f"round {done} of {_ROUNDS}")
            residual = goal.mean - goal.tangents.mean(records, self._each)
            # The ridge is implicit, at the new theta: else a large one would make steps diverge.
            self._theta = (self._theta + _RATE * residual) / (1 + _RATE * ridge)
            self._replace(records)

    def continue_chain(self, records: Tensor) -> None:
        """See `Moves`; theta stays fixed."""
        for _ in range(_LATER_ROUNDS):
            self._replace(records)

    def _replace(self, records: Tensor) -> None:
        goal, random = self._goal, self._random
        columns = goal.some_columns(random)
        form = goal.tangents.linear_form(self._theta)
        try_replacements(form, records, self.others, columns, random, self._tables, self._each)
