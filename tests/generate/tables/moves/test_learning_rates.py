"""Coefficients are learnt without swinging, however strongly and late rows answer them."""

from __future__ import annotations

import pytest
import torch

from dpntk.generate.tables.moves.learning_rates import LearningRates

TARGET = torch.tensor([0.3, -0.5, 0.7], dtype=torch.float64)


def answers(gains: torch.Tensor, ridge: torch.Tensor, late: int, rounds: int) -> torch.Tensor:
    """What rows have of the target after each round, if they answer so strongly and so late."""
    coefficients = torch.zeros_like(TARGET)
    rates, before, found = LearningRates(ridge), [coefficients] * late, []
    for _ in range(rounds):
        found.append(torch.tanh(gains * before[-late]))
        coefficients = rates.step(coefficients, TARGET - found[-1])
        before.append(coefficients)
    return torch.stack(found)


@pytest.mark.parametrize("gain", [0.5, 2.0, 4.0])
@pytest.mark.parametrize("late", [1, 4, 6])
def test_strong_and_late_answers_do_not_make_coefficients_swing(gain: float, late: int) -> None:
    """At a constant rate the strongest would swing for ever, by more than the target."""
    found = answers(torch.full_like(TARGET, gain), torch.zeros_like(TARGET), late, 400)
    assert float((found[-50:] - TARGET).abs().max()) < 0.01


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
