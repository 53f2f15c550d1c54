"""The energy of interactions: a coefficient for the product of each triple of contrasts."""

from __future__ import annotations

import torch
from torch import Tensor

from ....common.schema.encoding import Block
from .contrasts import Contrasts
from .interactions import Interactions
from .learning_rates import LearningRates
from .row_copies import exchange_rows


class InteractionEnergy:
    """The energy of triples, whose coefficients are learnt as rows move.

    Args:
        found: the triples.
    """

    def __init__(self, found: Interactions) -> None:
        self._found = found
        # To first order, a coefficient is the mean product it brings about.
        self._theta = found.wanted.clamp(-1, 1)
        self._rates = LearningRates(found.variances)

    def learn(self, records: Tensor) -> None:
        """Update the energy by what mean products still lack."""
        here = self._found.contrasts.products(records, self._found.triples)
        self._theta = self._rates.step(self._theta, self._found.wanted - here)

    def swap_gains(self, records: Tensor) -> InteractionGains:
        """The gains of swaps between the first half of the rows and the second."""
        found = self._found
        theta = self._theta + self._rates.lead
        return InteractionGains(found.contrasts, found.triples, theta, records)


class InteractionGains:
    """The energy gains of swaps between pairs of rows.

    Args:
        contrasts: of the columns.
        triples: of contrasts, int64 (t, 3).
        coefficients: of their products, (t,).
        records: (2 n, record size); row i may swap values with row n + i.
    """

    def __init__(
        self, contrasts: Contrasts, triples: Tensor, coefficients: Tensor, records: Tensor
    ) -> None:
        self._contrasts, self._triples, self._coefficients = contrasts, triples, coefficients
        self._one, self._other = contrasts(records).chunk(2)

    def gain(self, block: Block, pairs: Tensor) -> Tensor | float:
        """The gain for each of some pairs, (m,), that swap their values of a column, (m,).

        With v the contrast of that column and r the product of the other two, the rows' products
        change by (v_y - v_x) (r_x - r_y) together.
        """
        own = self._contrasts.of(block)
        among = torch.isin(self._triples, torch.tensor(own))
        gain: Tensor | float = 0.0
        if not among.any():
            return gain
        x, y = (values.index_select(0, pairs) for values in (self._one, self._other))
        for triple, place, coefficient in zip(
            self._triples, among, self._coefficients, strict=True
        ):
            for contrast in triple[place].tolist():
                rest = triple[triple != contrast]
                apart = y[:, contrast] - x[:, contrast]
                gain = gain + coefficient * apart * (x[:, rest].prod(1) - y[:, rest].prod(1))
        return gain

    def accept(self, block: Block, chosen: Tensor) -> None:
        """Record that some pairs, int64 (m,), have swapped their values of a column."""
        for contrast in self._contrasts.of(block):
            exchange_rows(self._one[:, contrast], self._other[:, contrast], chosen)
