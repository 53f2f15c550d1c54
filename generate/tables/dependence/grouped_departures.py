"""Noisy departures from independence, in groups that are expected to be alike.

A group is what a release says of one pair of columns: its products, or the cells of its table. In
both, the unit of a departure is the standard deviation that it would have by chance among
independent rows, so frequent and rare categories can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import torch
from torch import Tensor

_ORDERS: Final = tuple(10.0 ** (power / 4) for power in range(-24, 5))
"""Candidates for a variance: departures are at most about 1, of rare cells some times that."""
_EXPONENTS: Final = (-2, -1, 0, 1)
"""Candidates for the power of frequency that variances are a multiple of."""
_LIKE_OTHERS: Final = 8.0
"""With this many degrees of freedom, a group itself and what is usual weigh equally."""
LEAST: Final = 1e-12
"""Floor for variances and sums of weights."""


@dataclass(frozen=True, eq=False)
class GroupedDepartures:
    """The noisy departures of one class.

    Attributes:
        difference: what is released minus what independent columns have, float64 (n,).
        noise: variance of the noise on each, positive, (n,).
        frequency: how frequent the categories of each are, as a standard deviation, (n,).
        weight: how many degrees of freedom each counts for, (n,); 0 if nothing is known of it.
        group: the group of each, int64 (n,).
        groups: how many groups there are.
    """

    difference: Tensor
    noise: Tensor
    frequency: Tensor
    weight: Tensor
    group: Tensor
    groups: int

    def of_groups(self, values: Tensor) -> Tensor:
        """Sums over each group, (groups,).

        Args:
            values: one of each departure, float64 (n,).
        """
        nothing = torch.zeros(self.groups, dtype=torch.float64)
        return nothing.index_add_(0, self.group, values)

    @cached_property
    def freedom(self) -> Tensor:
        """Degrees of freedom of each group, (groups,)."""
        return self.of_groups(self.weight)

    def averages(self, total: Tensor, weight: Tensor) -> Tensor:
        """The average of each group, for each of its departures, (n,); 0 if nothing is known.

        Args:
            total: weighted values, (n,).
            weight: the weights, (n,).
        """
        return average(self.of_groups(total), self.of_groups(weight))[self.group]

    def shrunk(self, averages: Tensor, usual: Tensor) -> Tensor:
        """The same, the more like a usual value the fewer degrees of freedom a group has, (n,)."""
        like_others = (_LIKE_OTHERS / self.freedom.clamp(min=1))[self.group]
        return (averages + like_others * usual) / (1 + like_others)

    def variances(self) -> Iterator[Tensor]:
        """Candidates for the prior variances of all departures, (n,) each."""
        for exponent in _EXPONENTS:
            usual = self.frequency**exponent
            yield from (order * usual for order in _ORDERS)

    @cached_property
    def likelihoods(self) -> Tensor:
        """`log_likelihoods` under each candidate, float32 (groups, candidates).

        Kept, because each class is compared with all others.
        """
        return torch.stack([self.log_likelihoods(each).float() for each in self.variances()], dim=1)

    def log_likelihoods(self, variance: Tensor) -> Tensor:
        """Log-likelihood of each group, up to a constant, (groups,).

        Args:
            variance: prior variance of each departure, positive, (n,).
        """
        together = self.noise + variance
        logs = -(together.log() + self.difference.square() / together) / 2
        return self.of_groups(self.weight * logs)


def average(total: Tensor, weight: Tensor) -> Tensor:
    """The average of values by their weighted sum and that of the weights; 0 if there is none."""
    return total / weight.clamp(min=LEAST)
