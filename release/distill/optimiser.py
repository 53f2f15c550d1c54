"""The optimiser: post-processes noisy gradients into support points, at no privacy cost.

It is Shampoo (Gupta, Koren, Singer 2018) on the side of the support points, with momentum.
Gradients of points of one class are nearly equal, so that together they move far and apart hardly
at all. Multiplied by C^-1/2, C the covariance of recent gradients over their coordinates, they have
the same size in all directions of R^m. So the scale of the gradients does not matter, and neither
does the number of records, which is not public.

The first steps give class sums (`class_means`), where the descent starts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from ...common.display.representations import RedactedRepr
from ..file.distilled import FARTHEST
from .mechanism import PLACES
from .settings import Settings

_MOMENTUM: Final = 0.9
_SPREAD: Final = 0.95
_LAST_RATE: Final = 0.1
_DAMPING: Final = 1e-6
"""The least eigenvalue of the gradients' covariance, relative to the largest."""
_BRIGHTNESS: Final = 0.25
"""The root mean square of a class mean's values at the start."""
_STEPS_EACH: Final = 30
"""One of so many steps gives class means."""
_WIDTH_OF_START: Final = 1.5
"""The width in pixels of the Gaussian that smooths images before the first step."""

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class State(RedactedRepr):
    """The state of a descent. It follows from the settings and noisy gradients alone.

    Attributes:
        points: support points, float64 (m, D), multiples of 2^-16.
        momentum: mean of recent gradients, float64 (m, D). In the first steps, which give class
            means, it is their sum.
        spread: mean covariance of recent gradients, float64 (m, m); 0 in the first steps.
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


def gives_means(state: State, settings: Settings) -> bool:
    """Whether the step that was begun last gives class means: the first ones do.

    All others give gradients.
    """
    return state.begun <= max(1, settings.steps // _STEPS_EACH)


def begin(settings: Settings, classes: int, inputs: int, side: int | None) -> State:
    """Support points drawn from N(0, start^2) with a public seed, never from records.

    Args:
        settings: how to descend.
        classes: the number of classes.
        inputs: the number of values in a record.
        side: the side of square images, which are smoothed; None for tables.
    """
    random = torch.Generator().manual_seed(settings.seed)
    shape = (settings.per_class * classes, inputs)
    drawn = torch.randn(shape, generator=random, dtype=torch.float64).numpy()
    if side is not None:
        drawn = _smooth(drawn, side, _WIDTH_OF_START)
        drawn /= np.sqrt(np.mean(drawn**2))
    points = _on_grid(drawn * settings.start)
    return State(points, np.zeros(shape), np.zeros((len(points), len(points))), points)


def descend(state: State, gradient: Matrix, settings: Settings, side: int | None) -> State:
    """Take the step that was begun last.

    Args:
        state: the state before the step.
        gradient: noisy gradient, float64 (m, D), of any scale; or for each point its class's sum.
        settings: how to descend.
        side: the side of square images; None for tables, whose values have no neighbours.
    """
    if settings.smoothing and side is not None:
        gradient = _smooth(gradient, side, settings.smoothing)
    if gives_means(state, settings):
        return _at_means(state, state.momentum + gradient, settings, side)
    covariance = gradient @ gradient.T / gradient.shape[1]
    momentum, spread, mean = gradient, covariance, None
    if state.spread.any():
        momentum = _MOMENTUM * state.momentum + (1 - _MOMENTUM) * gradient
        spread = _SPREAD * state.spread + (1 - _SPREAD) * covariance
        mean = state.mean
    fallen = (1 + math.cos(math.pi * state.begun / (settings.steps + 1))) / 2
    rate = settings.learning_rate * (_LAST_RATE + (1 - _LAST_RATE) * fallen)
    points = _on_grid(state.points - rate * _even(momentum, spread))
    averaging = settings.averaging
    mean = points if mean is None else averaging * mean + (1 - averaging) * points
    return State(points, momentum, spread, mean, state.begun, state.taken + 1)


def _at_means(state: State, sums: Matrix, settings: Settings, side: int | None) -> State:
    """The start, moved to class means; their length is public."""
    size, inputs = sums.shape
    start = begin(settings, size // settings.per_class, inputs, side).points
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    means = sums / np.maximum(lengths, np.finfo(float).tiny) * (_BRIGHTNESS * math.sqrt(inputs))
    points = _on_grid(start + means)
    return replace(state, points=points, momentum=sums, mean=points, taken=state.taken + 1)


def _even(momentum: Matrix, spread: Matrix) -> Matrix:
    """C^-1/2 times the momentum."""
    values, vectors = torch.linalg.eigh(torch.from_numpy(spread))
    least = max(_DAMPING * float(values[-1]), np.finfo(float).tiny)
    roots = values.clamp_min(least).sqrt()[:, None]
    even: Matrix = (vectors @ (vectors.T @ torch.from_numpy(momentum) / roots)).numpy()
    return even


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
