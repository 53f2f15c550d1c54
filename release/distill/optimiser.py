"""The optimiser: post-processes noisy gradients into support points, at no privacy cost.

It is Adam (Kingma and Ba 2015) without the constant in its denominator. So the scale of the
gradients does not matter, and neither does the number of records, which is not public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from ...common.display.representations import RedactedRepr
from ..file.distilled import FARTHEST
from .mechanism import PLACES
from .settings import Settings

_MOMENTUM: Final = 0.9
_SPREAD: Final = 0.999
_LAST_RATE: Final = 0.1

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class State(RedactedRepr):
    """The state of a descent. It follows from the settings and noisy gradients alone.

    Attributes:
        points: support points, float64 (m, D), multiples of 2^-16.
        momentum: Adam's mean of recent gradients, float64 (m, D).
        spread: the mean of their squares.
        mean: moving average of the support points, which is the result.
        begun: steps whose noise may have been drawn.
        taken: steps that moved the points.
    """

    points: Matrix
    momentum: Matrix
    spread: Matrix
    mean: Matrix
    begun: int = 0
    taken: int = 0


def begin(settings: Settings, classes: int, inputs: int) -> State:
    """Support points drawn from N(0, start^2) with a public seed, never from records."""
    random = torch.Generator().manual_seed(settings.seed)
    shape = (settings.per_class * classes, inputs)
    drawn = torch.randn(shape, generator=random, dtype=torch.float64) * settings.start
    points = _on_grid(drawn.numpy())
    nothing = np.zeros(shape)
    return State(points, nothing, nothing, points)


def descend(state: State, gradient: Matrix, settings: Settings, side: int | None) -> State:
    """Take the step that was begun last.

    Args:
        state: the state before the step.
        gradient: noisy sum of clipped gradients, float64 (m, D), of any scale.
        settings: how to descend.
        side: the side of square images; None for tables, whose values have no neighbours.
    """
    if settings.smoothing and side is not None:
        gradient = _smooth(gradient, side, settings.smoothing)
    taken = state.taken + 1
    momentum = _MOMENTUM * state.momentum + (1 - _MOMENTUM) * gradient
    spread = _SPREAD * state.spread + (1 - _SPREAD) * gradient**2
    unbiased = np.sqrt(spread / (1 - _SPREAD**taken))
    direction = momentum / (1 - _MOMENTUM**taken) / np.maximum(unbiased, np.finfo(float).tiny)
    fallen = (1 + math.cos(math.pi * state.begun / (settings.steps + 1))) / 2
    rate = settings.learning_rate * (_LAST_RATE + (1 - _LAST_RATE) * fallen)
    points = _on_grid(state.points - rate * direction)
    kept = settings.averaging if state.taken else 0.0
    mean = kept * state.mean + (1 - kept) * points
    return State(points, momentum, spread, mean, state.begun, taken)


def _on_grid(points: Matrix) -> Matrix:
    rounded: Matrix = np.rint(np.clip(points, -FARTHEST, FARTHEST) * PLACES) / PLACES
    return rounded


def _smooth(values: Matrix, side: int, width: float) -> Matrix:
    """Convolve images with a Gaussian, cut off at the border."""
    places = np.arange(side)
    weights = np.exp(-((places[:, None] - places) ** 2) / (2 * width**2))
    weights /= weights.sum(axis=1, keepdims=True)
    images = values.reshape(-1, side, side)
    smooth: Matrix = (weights @ images @ weights.T).reshape(values.shape)
    return smooth
