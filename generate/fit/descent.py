"""Gradient descent on a distance to a release, for images and tables alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import torch
from torch import Tensor, nn

from ...common.arguments import argument
from ...common.display.console import progress
from ...common.errors import GeneratorError
from .settings import TrainingSettings

G = TypeVar("G", bound=nn.Module)
G_co = TypeVar("G_co", bound=nn.Module, covariant=True)
AT_ONCE: Final = 20
"""Largest number of steps over which the reported loss is averaged, and between waits for a GPU.
"""


@dataclass(frozen=True)
class LossPoint:
    """The mean loss over some steps, up to and including `step`."""

    step: int
    loss: float


@dataclass(frozen=True)
class Loss:
    """The loss of one step.

    Attributes:
        minimised: a scalar that gradients flow from.
        reported: a scalar to compare with the noise floor; often the same.
    """

    minimised: Tensor
    reported: Tensor


@dataclass(frozen=True, eq=False)
class Training(Generic[G_co]):
    """A trained generator and the course of its training.

    Attributes:
        generator: in evaluation mode, on the CPU.
        losses: the mean reported loss over every few steps.
        noise_floor: expected contribution of the release's noise to the loss.
    """

    generator: G_co
    losses: tuple[LossPoint, ...]
    noise_floor: float


def untrained(make: Callable[[], G], seed: int) -> G:
    """A generator with random weights from a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


class _Course:
    """The course of a training, recorded on the device; only reading it waits for a GPU.

    If a value of a step is not finite, its gradients and all later ones are set to 0, so that the
    parameters stay finite.
    """

    def __init__(self, device: torch.device) -> None:
        self._diverged = torch.zeros((), dtype=torch.int64, device=device)
        self._losses: list[Tensor] = []

    def note(self, step: int, loss: Loss, parameters: Sequence[Tensor]) -> None:
        """Record a step after its backward pass, before the parameters are updated."""
        slopes = [each.grad for each in parameters if each.grad is not None]
        well = _finite([loss.minimised, loss.reported, *slopes])
        self._diverged = torch.where(well | (self._diverged > 0), self._diverged, step)
        over = self._diverged > 0
        for slope in slopes:
            slope.masked_fill_(over, 0.0)
        self._losses.append(loss.reported.detach())

    def read(self) -> tuple[int, Tensor]:
        """The first step that diverged, or 0, and the losses since the last call."""
        losses = torch.stack(self._losses)
        self._losses.clear()
        both = torch.cat([self._diverged.view(1).double(), losses.double()]).cpu()
        return int(both[0]), both[1:].to(losses.dtype)


def descend(
    generator: G,
    loss_at: Callable[[int], Loss],
    noise_floor: Callable[[], float],
    settings: TrainingSettings,
    *,
    stop_at_noise: bool = False,
) -> Training[G]:
    """Train by Adam, with the learning rate of the settings.

    A GPU is waited for only when losses are read, at most every `AT_ONCE` steps.

    Args:
        generator: the generator, trained in place.
        loss_at: the loss of a fresh batch at a step, counted from 1.
        noise_floor: gives the expected contribution of the release's noise to the reported loss. It
            may change after multiples of `AT_ONCE` steps.
        settings: number of steps and learning rate.
        stop_at_noise: whether to stop once noise alone explains the loss, by the discrepancy
            principle (Morozov 1966, "On the Solution of Functional Equations by the Method of
            Regularization").

    Raises:
        GeneratorError: the training diverged.
    """
    steps = settings.steps
    optimiser = torch.optim.Adam(generator.parameters(), lr=settings.learning_rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, settings.rate)
    parameters = list(generator.parameters())
    device = parameters[0].device
    every = _unread(device) if stop_at_noise else max(1, min(AT_ONCE, steps // 10))
    course = _Course(device)
    earlier: list[dict[str, Tensor]] = []
    losses: list[LossPoint] = []
    remark, near = "", None
    with progress("training", steps, "steps") as advance:
        for step in range(1, steps + 1):
            loss = loss_at(step)
            optimiser.zero_grad()
            loss.minimised.backward()
            course.note(step, loss, parameters)
            optimiser.step()
            schedule.step()
            if step % every == 0 or step == steps:
                diverged, recent = course.read()
                before = step - len(recent)
                if stop_at_noise:
                    near = _first_at_most(noise_floor(), recent)
                    recent = recent[:near]
                    noted = [LossPoint(*it) for it in enumerate(recent.tolist(), before + 1)]
                else:
                    noted = [LossPoint(step, recent.mean().item())] if step % every == 0 else []
                if 0 < diverged <= before + len(recent):
                    rate = argument("learning_rate", option="--lr")
                    raise GeneratorError(f"the training diverged at step {diverged}: lower {rate}")
                losses += noted
                remark = f"loss {losses[-1].loss:.4f}, noise floor {noise_floor():.4f}"
                if near is not None and near <= len(earlier):
                    generator.load_state_dict(earlier[near - 1])
                earlier.clear()
            elif stop_at_noise:
                earlier.append({n: each.clone() for n, each in generator.state_dict().items()})
            advance(1, remark)
            if near is not None:
                break
    return Training(generator.cpu().eval(), tuple(losses), noise_floor())


def _unread(device: torch.device) -> int:
    """Number of steps between checks whether training may stop.

    A CPU checks every step: it has nothing to wait for, and further steps would be wasted.
    """
    return 1 if device.type == "cpu" else AT_ONCE


def _first_at_most(most: float, losses: Tensor) -> int | None:
    """The number, from 1, of the first loss that is at most `most`; None if there is none."""
    return next((n for n, each in enumerate(losses.tolist(), 1) if each <= most), None)


def _finite(values: Iterable[Tensor]) -> Tensor:
    """Whether all values are finite, a bool tensor on their device."""
    return torch.stack([value.isfinite().all() for value in values]).all()


def require_finite(values: Iterable[Tensor], otherwise: str) -> None:
    """Check that values are finite, which waits for a GPU.

    Args:
        values: the values that are used next.
        otherwise: the message if one of them is infinite or NaN.

    Raises:
        GeneratorError: one is.
    """
    if not _finite(values):
        raise GeneratorError(otherwise)


def finite(made: Tensor) -> Tensor:
    """Check that a generator's output is finite; weights from a file can be too large.

    Raises:
        GeneratorError: it is not.
    """
    require_finite([made], "the generator makes no numbers: its weights are too large")
    return made
