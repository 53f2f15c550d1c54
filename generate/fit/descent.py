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


class _StopAtNoise:
    """Stops at the first loss that noise alone explains, and takes back the steps after it.

    This is the discrepancy principle (Morozov 1966, "On the Solution of Functional Equations by the
    Method of Regularization"). Losses may be read several steps at a time, so the parameters after
    each unread step are kept.

    Args:
        generator: the generator in training.
        noise_floor: see `descend`.

    Attributes:
        reached: whether there has been such a loss.
    """

    def __init__(self, generator: nn.Module, noise_floor: Callable[[], float]) -> None:
        self.reached = False
        self._generator, self._noise_floor = generator, noise_floor
        self._earlier: list[dict[str, Tensor]] = []

    def keep(self) -> None:
        """Keep the parameters after a step whose loss is read later."""
        self._earlier.append({n: each.clone() for n, each in self._generator.state_dict().items()})

    def observe(self, losses: Tensor) -> Tensor:
        """Return the losses up to the first one that noise explains, all of them if none is.

        If it is not the last step's, the generator gets the parameters after its step again.

        Args:
            losses: of all steps kept since the last call, and of the step after them, (n,).
        """
        floor, earlier = self._noise_floor(), self._earlier
        first = next((n for n, each in enumerate(losses.tolist()) if each <= floor), None)
        if first is not None:
            self.reached = True
            losses = losses[: first + 1]
            if first < len(earlier):
                self._generator.load_state_dict(earlier[first])
        earlier.clear()
        return losses


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
        stop_at_noise: whether to stop once noise alone explains the loss (`_StopAtNoise`).

    Raises:
        GeneratorError: the training diverged.
    """
    steps = settings.steps
    optimiser = torch.optim.Adam(generator.parameters(), lr=settings.learning_rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, settings.rate)
    parameters = list(generator.parameters())
    course = _Course(parameters[0].device)
    stop = _StopAtNoise(generator, noise_floor) if stop_at_noise else None
    per_point = 1 if stop_at_noise else max(1, min(AT_ONCE, steps // 10))
    every = _unread(parameters[0].device) if stop_at_noise else per_point
    points: list[LossPoint] = []
    remark = ""
    with progress("training", steps, "steps") as advance:
        for step in range(1, steps + 1):
            loss = loss_at(step)
            optimiser.zero_grad()
            loss.minimised.backward()
            course.note(step, loss, parameters)
            optimiser.step()
            schedule.step()
            if step % every == 0 or step == steps:
                diverged, losses = course.read()
                before = step - len(losses)
                if stop is not None:
                    losses = stop.observe(losses)
                if 0 < diverged <= before + len(losses):
                    rate = argument("learning_rate", option="--lr")
                    raise GeneratorError(f"the training diverged at step {diverged}: lower {rate}")
                points += _means(losses, per_point, before)
                remark = f"loss {points[-1].loss:.4f}, noise floor {noise_floor():.4f}"
            elif stop is not None:
                stop.keep()
            advance(1, remark)
            if stop is not None and stop.reached:
                break
    return Training(generator.cpu().eval(), tuple(points), noise_floor())


def _means(losses: Tensor, count: int, before: int) -> list[LossPoint]:
    """The mean of each `count` losses, of the steps after `before`; a remainder is left out."""
    parts = [part for part in losses.split(count) if len(part) == count]
    return [LossPoint(before + n * count, part.mean().item()) for n, part in enumerate(parts, 1)]


def _unread(device: torch.device) -> int:
    """Number of steps between checks whether training may stop.

    A CPU checks every step: it has nothing to wait for, and further steps would be wasted.
    """
    return 1 if device.type == "cpu" else AT_ONCE


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
