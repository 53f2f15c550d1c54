"""Gradient descent on a distance to a release: the same for images and for tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import torch
from torch import Tensor, nn

from ...common.console import progress
from ...common.errors import GeneratorError
from .settings import TrainingSettings

G = TypeVar("G", bound=nn.Module)
G_co = TypeVar("G_co", bound=nn.Module, covariant=True)
_AVERAGED: Final = 20
"""Steps over which the reported loss is averaged."""


@dataclass(frozen=True)
class LossPoint:
    """The mean loss over some steps, up to and including `step`."""

    step: int
    loss: float


@dataclass(frozen=True)
class Loss:
    """What one step found.

    Attributes:
        minimised: a scalar that gradients flow from.
        reported: a scalar to compare with the noise floor; often the same.
    """

    minimised: Tensor
    reported: Tensor


@dataclass(frozen=True, eq=False)
class Training(Generic[G_co]):
    """A trained generator and how it came about.

    Attributes:
        generator: in evaluation mode, on the CPU.
        losses: the mean reported loss over every few steps.
        noise_floor: what the release's noise alone adds to it, in expectation.
    """

    generator: G_co
    losses: tuple[LossPoint, ...]
    noise_floor: float


def untrained(make: Callable[[], G], seed: int) -> G:
    """A generator with the random weights of a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def descend(
    generator: G,
    loss_at: Callable[[int], Loss],
    noise_floor: Callable[[], float],
    settings: TrainingSettings,
    *,
    as_near_as_noise: bool = False,
) -> Training[G]:
    """Adam, with the learning rate of the settings.

    Args:
        generator: whose parameters are trained, in place.
        loss_at: the loss of a fresh batch at a step, counted from 1.
        noise_floor: what the release's noise alone adds to the reported loss, in expectation.
        settings: how many steps, and how long.
        as_near_as_noise: whether to stop where the loss is what noise alone explains, by the
            discrepancy principle (Morozov 1966, "On the Solution of Functional Equations by
            the Method of Regularization").

    Raises:
        GeneratorError: the training diverged.
    """
    steps = settings.steps
    optimiser = torch.optim.Adam(generator.parameters(), lr=settings.learning_rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, settings.rate)
    every = 1 if as_near_as_noise else max(1, min(_AVERAGED, steps // 10))
    recent: list[Tensor] = []
    losses: list[LossPoint] = []
    remark = ""
    parameters = list(generator.parameters())
    with progress("training", steps, "steps") as advance:
        for step in range(1, steps + 1):
            diverged = f"the training diverged at step {step}: lower --lr"
            loss = loss_at(step)
            require_finite([loss.minimised, loss.reported], diverged)
            optimiser.zero_grad()
            loss.minimised.backward()
            require_finite((p.grad for p in parameters if p.grad is not None), diverged)
            optimiser.step()
            schedule.step()
            recent.append(loss.reported.detach())
            if step % every == 0:
                mean = torch.stack(recent).mean().item()
                recent.clear()
                losses.append(LossPoint(step, mean))
                remark = f"loss {mean:.4f}, noise floor {noise_floor():.4f}"
            advance(1, remark)
            if as_near_as_noise and losses[-1].loss <= noise_floor():
                break
    return Training(generator.cpu().eval(), tuple(losses), noise_floor())


def require_finite(values: Iterable[Tensor], otherwise: str) -> None:
    """Stop where numbers have overflowed, before anything goes through them backwards.

    What comes out is no worse than useless, but torch's `grid_sample` reads and writes anywhere in
    memory when it is to fetch a pixel from a place that is no number.

    Args:
        values: whatever is computed with next.
        otherwise: what to say if one of them is infinite or not a number.

    Raises:
        GeneratorError: one is.
    """
    if not torch.stack([value.isfinite().all() for value in values]).all():
        raise GeneratorError(otherwise)


def finite(made: Tensor) -> Tensor:
    """What a generator has made, if it is numbers; weights from a file can be too large for that.

    Raises:
        GeneratorError: it is not.
    """
    require_finite([made], "the generator makes no numbers: its weights are too large")
    return made
