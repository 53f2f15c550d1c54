"""Coefficients are learnt without swinging, however strongly and late rows answer them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from dpntk.common.features.marginals.map import MarginalFeatures
from dpntk.common.features.moments import MomentFeatures
from dpntk.common.schema.encoding import blocks_of
from dpntk.generate.tables.copulas.copula import NoisyTable, PairCopulas
from dpntk.generate.tables.dependence.product_departures import ReleasedMoments
from dpntk.generate.tables.dependence.table_departures import ReleasedCounts
from dpntk.generate.tables.energies.contrasts import Contrasts
from dpntk.generate.tables.energies.copula import CopulaEnergy
from dpntk.generate.tables.energies.correlation import CorrelationEnergy
from dpntk.generate.tables.energies.count import CountEnergy
from dpntk.generate.tables.energies.interaction import InteractionEnergy
from dpntk.generate.tables.energies.interactions import Interactions
from dpntk.generate.tables.energies.learning_rates import LearningRates
from tests.helpers.tables import PEOPLE, encoded_people

TARGET = torch.tensor([0.3, -0.5, 0.7], dtype=torch.float64)


def answers(gains: torch.Tensor, ridge: torch.Tensor, late: int, rounds: int) -> torch.Tensor:
    """What rows have of the target after each round, if they answer so strongly and so late."""
    coefficients = torch.zeros_like(TARGET)
    rates, before, found = LearningRates(ridge), [coefficients] * late, []
    for _ in range(rounds):
        found.append(torch.tanh(gains * before[-late]))
        coefficients = rates.step(coefficients, TARGET - found[-1])
        before.append(coefficients + rates.lead)
    return torch.stack(found)


@pytest.mark.parametrize("gain", [0.5, 2.0, 4.0])
@pytest.mark.parametrize("late", [1, 4, 6])
def test_strong_and_late_answers_do_not_make_coefficients_swing(gain: float, late: int) -> None:
    """At a constant rate the strongest would swing for ever, by more than the target."""
    found = answers(torch.full_like(TARGET, gain), torch.zeros_like(TARGET), late, 400)
    assert float((found[-50:] - TARGET).abs().max()) < 0.01


def test_coefficients_that_are_answered_together_do_not_swing_together() -> None:
    """As of a number with five others that are nearly the same, where rows take their time.

    Without a lead they are still off by .05 after thirty rounds.
    """
    alike = torch.full((5, 5), 0.95, dtype=torch.float64) + 0.05 * torch.eye(5)
    target, coefficients = torch.full((5,), 0.3, dtype=torch.float64), torch.zeros(5).double()
    rates, rows, off = LearningRates(coefficients), coefficients, []
    for _ in range(100):
        rows = rows + (alike @ (coefficients + rates.lead) - rows) / 8
        off.append(float((rows - target).abs().max()))
        coefficients = rates.step(coefficients, target - rows)
    assert max(off[30:]) < 0.01


def test_a_coefficient_that_is_answered_weakly_is_not_held_back_by_others() -> None:
    """It needs as many rounds as at a constant rate, several hundred."""
    found = answers(torch.tensor([4.0, 4.0, 0.05], dtype=torch.float64), TARGET * 0, 4, 600)
    assert float((found[-50:] - TARGET)[:, :2].abs().max()) < 0.01
    assert float(found[-1, 2]) == pytest.approx(0.7, abs=0.02)


def test_a_ridge_leaves_some_of_it_missing() -> None:
    """Coefficients stay where what is missing is the ridge times them, at any rate."""
    ridge, gains = torch.tensor([0.5, 2.0, 1e3], dtype=torch.float64), torch.full_like(TARGET, 2.0)
    found = answers(gains, ridge, 4, 600)[-1]
    coefficients = found.atanh() / gains
    assert torch.allclose(TARGET - found, ridge * coefficients, atol=0.005)


ROWS = encoded_people(60, np.random.default_rng(0))
HALVES = np.full(2, 0.5)


def of_copula() -> CopulaEnergy:
    """Of age and pay, which may be missing."""
    age, pay = (block.place for block in blocks_of(PEOPLE)[:2])
    shares = np.array([[0.4, 0.1], [0.1, 0.4]])
    pairs = PairCopulas.of([NoisyTable(shares, 0.01, HALVES, HALVES, (age.start, pay.start))])
    return CopulaEnergy(pairs, {age.start: -1, pay.start: pay.stop - 1}, ROWS)


def of_tables() -> CountEnergy:
    """Of age and pay, where everybody is in one cell."""
    tables = MarginalFeatures.of(PEOPLE, groups=[("age", "pay")], fine=True).groups
    shares = np.zeros(tables[0].dimension)
    shares[5] = 1.0
    return CountEnergy(ReleasedCounts(tables, 255, shares, np.array([1e-3])), ROWS)


def of_products() -> CorrelationEnergy:
    """Of products that are much larger than those of the rows."""
    features = MomentFeatures.of(PEOPLE)
    assert features is not None
    count = features.factors
    return CorrelationEnergy(ReleasedMoments(features, np.full((count, count), 0.9), 1e-3), ROWS)


def of_triples() -> InteractionEnergy:
    """Of three contrasts, which are to have a mean product of a half."""
    contrasts = Contrasts(blocks_of(PEOPLE), ROWS)
    wanted, variance = torch.tensor([0.5]), torch.tensor([0.1])
    return InteractionEnergy(Interactions(contrasts, contrasts.triples()[:1], wanted, variance))


@pytest.mark.parametrize("made", [of_copula, of_tables, of_products, of_triples])
def test_rows_move_by_coefficients_with_their_lead(
    made: Callable[[], CopulaEnergy | CountEnergy | CorrelationEnergy | InteractionEnergy],
) -> None:
    """With one that takes all of them away, no swap gains anything."""
    energy, pairs = made(), torch.arange(len(ROWS) // 2)

    def gains() -> float:
        found = energy.swap_gains(ROWS)
        each = [torch.as_tensor(found.gain(block, pairs)) for block in blocks_of(PEOPLE)]
        return max(float(gain.abs().max()) for gain in each)

    energy.learn(ROWS)
    assert gains() > 1e-3
    energy._rates.lead = -energy._theta
    assert gains() < 1e-6
