"""An energy that matches the released products of columns, for rows that swap values.

Swaps leave the marginal of every column as it is, so only the dependence between columns is left to
match. Beside the energies of the other features, rows get a quadratic form in the standardised
numbers and the indicators of categories. Each coefficient has a ridge penalty
(`dependence.product_pooling`), so that products lost in noise are left to the other features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from ....common.schema.encoding import Block
from ..copulas.correlation_matrix import as_correlations
from ..dependence.product_departures import EXACT, Departure, ReleasedMoments
from ..dependence.product_pooling import pooled_products
from .learning_rates import LearningRates

_SQUARES: Final = 0.3
"""Prior standard deviation of a number's mean square around that of independent rows."""
_LEAST_SQUARE: Final = 0.2
"""Floor for the mean square of a standardised number."""


class CorrelationEnergy:
    """The energy y^T A y / 2 of pairwise dependence, with A learnt as rows move.

    Args:
        released: products of the class.
        records: rows with the columns that all rows will have, (n, record size).
        others: departures of the other classes.

    Attributes:
        departure: of the class's products from independent columns.
    """

    def __init__(
        self, released: ReleasedMoments, records: Tensor, others: Sequence[Departure] = ()
    ) -> None:
        self._released, self.departure = released, Departure.of(released, records)
        own = self.departure
        here = own.products(released.factors(records).double())
        found = pooled_products(own, others)
        difference, ridge = found.difference, found.ridge
        self._seen = here + difference
        # If the numbers were jointly Gaussian, this start would be exact. The released squares
        # rescale it: outlying rows weigh less, and show more dependence.
        doubt = own.noise.diagonal() / _SQUARES**2
        squares = here.diagonal() + own.difference.diagonal() / (1 + doubt)
        scale = squares.clamp(min=_LEAST_SQUARE).rsqrt()
        posterior_mean = (self._seen * torch.outer(scale, scale)).clamp(-1, 1) / (1 + ridge)
        among = own.changeable & own.is_number[:, None] & own.is_number
        start = as_correlations(torch.where(among, posterior_mean, 0.0).fill_diagonal_(1.0))
        self._theta = torch.where(among, -torch.linalg.inv(start), 0.0)
        self._ridge = ridge
        self._rates = LearningRates(ridge)

    def leave_to_copula(self, misfit: Tensor) -> None:
        """Leave products of numbers to the energy of a copula, which has been told of them.

        What is left to match is what no copula explains, with its own prior variance.

        Args:
            misfit: that variance, float64 (k, k); 0 for other products.
        """
        own, left = self.departure, misfit > 0
        held = own.projection_factor * own.noise / misfit.clamp(min=EXACT)
        self._ridge = torch.where(left & self._ridge.isfinite(), held, self._ridge)
        self._theta = torch.where(left, 0.0, self._theta)
        self._rates = LearningRates(self._ridge)

    def learn(self, records: Tensor) -> None:
        """Update the energy by what the products of the current rows still lack."""
        here = self.departure.products(self._released.factors(records))
        residual = torch.where(self.departure.changeable, self._seen - here.double(), 0.0)
        self._theta = self._rates.step(self._theta, residual)

    def swap_gains(self, records: Tensor) -> ProductGains:
        """The gains of swaps between the first half of the rows and the second."""
        numbers = self.departure.standardised(self._released.factors(records))
        theta = (self._theta + self._rates.lead).float()
        return ProductGains(numbers, theta, self._released.features.places)


class ProductGains:
    """The energy gains of swaps between pairs of rows.

    Args:
        numbers: standardised, (2 n, k); row i may swap values with row n + i.
        coefficients: symmetric, 0 for two entries of the same column, (k, k).
        places: the slice of each column, by where its part of a record begins.

    Attributes:
        coefficients: as above.
    """

    def __init__(self, numbers: Tensor, coefficients: Tensor, places: dict[int, slice]) -> None:
        half = len(numbers) // 2
        self.coefficients = coefficients
        self._places = places
        self._apart = numbers[:half] - numbers[half:]
        self._towards = self._apart @ coefficients

    def gain(self, block: Block, pairs: Tensor) -> Tensor | float:
        """The gain for each of some pairs, (m,), that swap their values of a column, (m,).

        Rows x and y have the energy x^T A x / 2 + y^T A y / 2, without squares of x_j and y_j, so
        it changes by (y_j - x_j) (A (x - y))_j.
        """
        if (place := self._places.get(block.first)) is None:
            return 0.0
        apart, towards = (
            each[:, place].index_select(0, pairs) for each in (self._apart, self._towards)
        )
        gain: Tensor = -torch.linalg.vecdot(apart, towards)
        return gain

    def accept(self, block: Block, chosen: Tensor) -> None:
        """Record that some pairs, int64 (m,), have swapped their values of a column."""
        if (place := self._places.get(block.first)) is None:
            return
        apart = self._apart[:, place]
        before = apart.index_select(0, chosen)
        apart.index_copy_(0, chosen, -before)
        towards = self._towards.index_select(0, chosen)
        towards.addmm_(before, self.coefficients[place], alpha=-2.0)
        self._towards.index_copy_(0, chosen, towards)
