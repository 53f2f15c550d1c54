"""Gradient descent stops where noise alone explains the loss, if it is asked to.

On a card that is found out some steps later, and the result is the same.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dpntk.common.errors import GeneratorError
from dpntk.generate.fit import descent
from dpntk.generate.fit.descent import Loss, Training, descend
from dpntk.generate.fit.settings import TrainingSettings
from tests.helpers.devices import every_device

CPU = torch.device("cpu")


class Number(nn.Module):
    """One number, which begins at 1."""

    def __init__(self) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.ones(()))


def down_a_square(
    floor: float,
    settings: TrainingSettings,
    *,
    stop_at_noise: bool = True,
    bad: int = 0,
    device: torch.device = CPU,
) -> Training[Number]:
    number = Number().to(device)

    def loss_at(step: int) -> Loss:
        square = number.value.square() * (torch.nan if step == bad else 1.0)
        return Loss(square, square)

    return descend(number, loss_at, lambda: floor, settings, stop_at_noise=stop_at_noise)


LONG = TrainingSettings(steps=100, learning_rate=0.1)


@every_device
@pytest.mark.parametrize("floor", [0.7, 0.2])
def test_it_stops_at_the_first_loss_that_noise_explains(floor: float, device: torch.device) -> None:
    found = down_a_square(floor, LONG, device=device)
    losses = [point.loss for point in found.losses]
    assert len(losses) < 20
    assert losses[-1] <= floor < min(losses[:-1])
    short = [point.step for point in down_a_square(floor, LONG).losses]
    assert [point.step for point in found.losses] == short


@every_device
def test_it_takes_all_steps_otherwise(device: torch.device) -> None:
    assert down_a_square(0.2, LONG, stop_at_noise=False, device=device).losses[-1].step == 100
    below_any = down_a_square(-1.0, LONG, device=device).losses
    assert [point.step for point in below_any] == list(range(1, 101))


@every_device
@pytest.mark.parametrize("stop_at_noise", [False, True])
def test_it_says_at_which_step_it_diverged(stop_at_noise: bool, device: torch.device) -> None:
    said = r"^the training diverged at step 33: lower learning_rate$"
    with pytest.raises(GeneratorError, match=said):
        down_a_square(-1.0, LONG, stop_at_noise=stop_at_noise, bad=33, device=device)


@pytest.mark.parametrize("floor", [0.95, 0.7, 0.2, 1e-9, -1.0])
@pytest.mark.parametrize("steps", [100, 13, 1])
@pytest.mark.parametrize("at_once", [2, 3, descent.AT_ONCE])
def test_steps_beyond_that_loss_are_taken_back(
    monkeypatch: pytest.MonkeyPatch, floor: float, steps: int, at_once: int
) -> None:
    settings = TrainingSettings(steps=steps, learning_rate=0.1)
    begun = down_a_square(floor, settings)
    monkeypatch.setattr(descent, "_unread", lambda device: at_once)
    late = down_a_square(floor, settings)
    assert late.losses == begun.losses
    assert torch.equal(late.generator.value, begun.generator.value)


@pytest.mark.parametrize("bad", [2, 30])
def test_divergence_matters_before_that_loss_alone(
    monkeypatch: pytest.MonkeyPatch, bad: int
) -> None:
    """Of steps that were taken in vain nobody hears."""
    monkeypatch.setattr(descent, "_unread", lambda device: 50)
    settings = TrainingSettings(steps=50, learning_rate=0.1)
    if bad == 30:
        assert down_a_square(0.2, settings, bad=bad).losses[-1].step < bad
    else:
        with pytest.raises(GeneratorError, match="diverged at step 2"):
            down_a_square(0.2, settings, bad=bad)
