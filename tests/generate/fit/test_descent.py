"""Gradient descent stops where noise alone explains the loss, if it is asked to."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dpntk.generate.fit.descent import Loss, Training, descend
from dpntk.generate.fit.settings import TrainingSettings


class Number(nn.Module):
    """One number, which begins at 1."""

    def __init__(self) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.ones(()))


def descended(floor: float, *, as_near_as_noise: bool) -> Training[Number]:
    """Down a square."""
    number = Number()

    def loss_at(step: int) -> Loss:
        square = number.value.square()
        return Loss(square, square)

    settings = TrainingSettings(steps=100, learning_rate=0.1)
    return descend(number, loss_at, lambda: floor, settings, as_near_as_noise=as_near_as_noise)


@pytest.mark.parametrize("floor", [0.7, 0.2])
def test_it_stops_at_the_first_loss_that_noise_explains(floor: float) -> None:
    losses = [point.loss for point in descended(floor, as_near_as_noise=True).losses]
    assert len(losses) < 20
    assert losses[-1] <= floor < min(losses[:-1])


def test_it_takes_all_steps_otherwise() -> None:
    assert descended(0.2, as_near_as_noise=False).losses[-1].step == 100
    below_any = descended(-1.0, as_near_as_noise=True).losses
    assert [point.step for point in below_any] == list(range(1, 101))
