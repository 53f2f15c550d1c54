"""Swap moves: rows of a class swap values, which leaves marginals as they are.

The released marginals determine how frequent each value is in the class; the other released
features determine how columns depend on each other. So the rows are arranged: two of them swap
their values of a column with probability min(1, exp(gain)), where the gain is the increase of
<theta, phi(x)>, summed over the two rows (Metropolis et al. 1953, "Equation of state calculations
by fast computing machines"). For a fixed theta, the probability of an arrangement becomes
proportional to exp of the sum over all rows: the maximum entropy distribution with the same
marginals and mean feature. Meanwhile theta is fitted by gradient ascent on the likelihood of mu,
the released mean feature of the class:

    change of theta  ~  mu - mean phi - ridge theta,

with the mean over the current rows (Tieleman 2008, "Training restricted Boltzmann machines using
approximations to the likelihood gradient", section 3). The steps are long, because rows mix faster
under a theta that keeps reacting to what they lack than under a fixed one (Tieleman and Hinton
2009, "Using fast weights to improve persistent contrastive divergence", section 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from torch import Tensor

from ....common.display.console import Advance
from ....common.runtime.threads import Each, finish
from ..copulas.attenuation import ProductEvidence
from ..energies.correlation import CorrelationEnergy
from ..energies.count import CountEnergy
from ..energies.goal import Departures, Goal
from ..energies.interaction import InteractionEnergy
from ..energies.interactions import find_interactions
from .base import Moves
from .metropolis import try_swaps

_WINDOW: Final = 10
"""Rounds between checks whether the distance of the mean features still falls."""
_FALLS: Final = 0.99
"""The distance has to fall below this fraction of the last one. Otherwise the steps are halved."""
_RATE: Final = 200.0
_LEAST_RATE: Final = 5.0
_MOMENTUM: Final = 0.8
_MOST_ROUNDS: Final = 300
_LATER_ROUNDS: Final = 8
"""Rounds after each doubling of the rows."""


class SwapMoves(Moves):
    """The chain that swaps values between a class's rows.

    Args:
        goal: targets of the rows.
        random: pairs rows, and decides.
        each: distributes the work.
        others: departures of the other classes.
    """

    def __init__(
        self,
        goal: Goal,
        random: np.random.Generator,
        each: Each = map,
        others: Sequence[Departures] = (),
    ) -> None:
        super().__init__(goal, random, each)
        self._others, self._rate, self._ridge = others, _RATE, 0.0
        self._step = torch.zeros_like(goal.mean)

    def fit(self, records: Tensor, advance: Advance) -> None:
        """Swap values until the mean feature gets no closer to its target.

        Args:
            records: (n, record size), values 0..1, of independent columns; changed in place.
            advance: reports the distance of the mean features.
        """
        self._ridge = self._goal.ridge(records, self._each)
        # First of all products: what they depart from is independent rows, not arranged ones.
        evidence = correlations = None
        if self._goal.moments is not None:
            products = [other.products for other in self._others if other.products is not None]
            correlations = CorrelationEnergy(self._goal.moments, records, products)
            self._energies.append(correlations)
            evidence = ProductEvidence(self._goal.moments, correlations.departure, records)
        if self._goal.counts is not None:
            tables = [other.tables for other in self._others if other.tables is not None]
            counts = CountEnergy(
                self._goal.counts,
                records,
                tables,
                beside_copula=True,
                products=evidence,
                combine=self._goal.only_class,
            )
            misfit = None if counts.copula is None else counts.copula.misfit
            if correlations is not None and misfit is not None:
                correlations.leave_to_copula(misfit)
            counts.initialise(records, self._goal.blocks, self._random)
            self._energies += [counts] if counts.copula is None else [counts, counts.copula]
        if self._goal.only_class and self._energies:
            self._ridge = max(self._ridge, self._ridge_of_rest(records, advance))
        self._match(records, advance)
        found = find_interactions(self._goal, records, self._random, self._each)
        if found is not None:
            self._energies.append(InteractionEnergy(found))
            self._match(records, advance)

    def _ridge_of_rest(self, records: Tensor, advance: Advance) -> float:
        """The ridge on theta, by how far rows with the energies alone are from the mean feature.

        Products and tables say most of how columns depend on each other. Theta would believe noise
        if its ridge followed from all of that. With classes it does: the features are best at
        telling them apart, which rows lose sooner than they come to believe noise.
        """
        self._ridge, usual = math.inf, self._ridge
        self._match(records, advance)
        self._ridge = usual
        return self._goal.ridge(records, self._each)

    def _match(self, records: Tensor, advance: Advance) -> None:
        """Do rounds until the mean feature gets no closer to its target."""
        self._rate, before = _RATE, math.inf
        for _ in range(_MOST_ROUNDS // _WINDOW):
            distance = sum(self._round(records) for _ in range(_WINDOW)) / _WINDOW
            advance(0, f"distance {distance:.5f}, noise floor {self._goal.floor:.5f}")
            if distance > _FALLS * before:
                self._rate /= 2
            if self._rate < _LEAST_RATE:
                break
            before = distance

    def continue_chain(self, records: Tensor) -> None:
        """See `Moves`."""
        for _ in range(_LATER_ROUNDS):
            self._round(records)

    def _round(self, records: Tensor) -> float:
        """Do one round; return the squared distance of the mean features before it."""
        goal = self._goal
        residual = goal.mean - goal.tangents.mean(records, self._each)
        self._step = _MOMENTUM * self._step + residual
        # The ridge is implicit, at the new theta: else a large one would make steps diverge.
        held = 1 + self._rate * self._ridge / (1 - _MOMENTUM)
        self._theta = (self._theta + self._rate * self._step) / held
        finish(self._each(lambda energy: energy.learn(records), self._energies))
        columns = goal.some_columns(self._random)
        form = goal.tangents.linear_form(self._theta)
        try_swaps(form, records, columns, self._random, self._energies, self._each)
        return float(residual.square().sum())
