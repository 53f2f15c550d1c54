"""A few labelled points that teach as much as all records of a generator.

These are kernel inducing points (Nguyen, Chen, Lee 2021, "Dataset Meta-Learning from Kernel
Ridge-Regression"): points from which kernel ridge regression best predicts the classes of records.
`dpntk distill` finds them with noisy gradients of sensitive records (DP-KIP). Here fresh records
come from a generator at every step, so gradients need no noise and there may be any number of
steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...common.arguments import MOST_SEED, argument, positive_number, set_plain, whole_number
from ...common.display.console import progress
from ...common.errors import GeneratorError
from ...common.features.infinite_ntk import ReluKernel, Slopes
from ...common.features.kernel_ridge import class_targets
from ...common.schema.image import PIXEL_LEVELS, pictures
from ...release.file.distilled import LARGEST_BIAS, LARGEST_RIDGE
from ..fit.descent import require_finite
from .generators.registry import ImageGenerator

_MOST_POINTS: Final = 5000
"""Most points over all classes: each step solves a system of that many equations."""
_DIVERGED: Final = "points: the search diverged: nothing can be learnt from this generator"


@dataclass(frozen=True)
class PointSettings:
    """How inducing points are found.

    Attributes:
        per_class: number of points of each class.
        steps: steps of gradient descent.
        batch: records in a step, over all classes.
        learning_rate: initial learning rate of Adam; it falls to 0 along a cosine.
        ridge: ridge of the regression, relative to the mean of the kernel's diagonal.
        bias_variance: variance of the biases in the kernel's network.
        seed: of the initial points and the batches.

    Raises:
        GeneratorError: a number is out of range.
    """

    per_class: int
    steps: int = 400
    batch: int = 1000
    learning_rate: float = 0.01
    ridge: float = 1e-3
    bias_variance: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        set_plain(
            self,
            per_class=whole_number("per_class", self.per_class, least=1, refusal=GeneratorError),
            steps=whole_number("steps", self.steps, least=1, refusal=GeneratorError),
            batch=whole_number("batch", self.batch, least=1, refusal=GeneratorError),
            seed=whole_number("seed", self.seed, most=MOST_SEED, refusal=GeneratorError),
            learning_rate=positive_number(
                "learning_rate", self.learning_rate, refusal=GeneratorError
            ),
            ridge=positive_number("ridge", self.ridge, most=LARGEST_RIDGE, refusal=GeneratorError),
            bias_variance=positive_number(
                "bias_variance", self.bias_variance, most=LARGEST_BIAS, refusal=GeneratorError
            ),
        )

    def require_usable(self, classes: int) -> None:
        """Check that there can be so many points for this number of classes.

        Raises:
            GeneratorError: there is one class only, or there are too many points.
        """
        if classes < 2:
            raise GeneratorError("points: all records are of one class: nothing to tell apart")
        if self.per_class * classes > _MOST_POINTS:
            raise GeneratorError(
                f"{argument('per_class', self.per_class, option='--points')}: "
                f"{self.per_class * classes:,} in all classes; at most {_MOST_POINTS:,}"
            )


@dataclass(frozen=True, eq=False)
class InducingPoints:
    """Points with their classes.

    Attributes:
        values: float32 (m, D), on the scale of a record's values 0..1 but not confined to it.
        labels: int64 (m,), equally many of each class.
        settings: how they were found.
    """

    values: NDArray[np.float32]
    labels: NDArray[np.int64]
    settings: PointSettings

    @property
    def kernel(self) -> dict[str, Any]:
        """The kernel regression that they were made for, as plain JSON; as for a distilled set."""
        return {
            "bias_variance": self.settings.bias_variance,
            "centre": 0,
            "ridge": self.settings.ridge,
            "levels": PIXEL_LEVELS,
        }

    def images(self, channels: int) -> NDArray[np.uint8]:
        """The points as pixels, clipped: uint8 (m, side, side), or (m, side, side, 3)."""
        return pictures(np.rint(self.values.clip(0, 1) * PIXEL_LEVELS).astype(np.uint8), channels)


def find_points(generator: ImageGenerator, settings: PointSettings) -> InducingPoints:
    """Find points from which kernel regression learns what it would from a generator's records.

    They start as generated records. The loss is 1/2 mean || y - k_x A^-1 Y ||^2 over fresh records,
    equally many of each class, with A = K + ridge tr(K) / m I and one-hot targets minus 1 /
    classes.

    Guarantee:
        Post-processing: only the generator is read. (docs/privacy/proofs.md, statement 10.)

    Args:
        generator: in evaluation mode, on the CPU.
        settings: how to find the points.

    Raises:
        GeneratorError: there is one class only, or there are too many points.
    """
    classes = generator.spec.classes
    settings.require_usable(classes)
    random = torch.Generator().manual_seed(settings.seed)
    points = _records(generator, settings.per_class, random)
    labels = torch.arange(classes).repeat_interleave(settings.per_class)
    kernel = ReluKernel(points.shape[1], settings.bias_variance)
    targets = class_targets(labels, classes)
    each = max(1, settings.batch // classes)
    wanted = class_targets(torch.arange(classes).repeat_interleave(each), classes)
    optimiser = torch.optim.Adam([points], lr=settings.learning_rate)
    falling = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: 0.5 * (1 + math.cos(math.pi * step / settings.steps))
    )
    with progress("distilling", settings.steps, "steps") as advance:
        for _ in range(settings.steps):
            batch = _records(generator, each, random)
            require_finite([batch, points], _DIVERGED)
            loss, points.grad = loss_and_slope(
                kernel, points, targets, batch, wanted, settings.ridge
            )
            require_finite([points.grad], _DIVERGED)
            optimiser.step()
            falling.step()
            advance(1, f"loss {loss:.4f}")
    return InducingPoints(points.float().numpy(), labels.numpy(), settings)


def loss_and_slope(
    kernel: ReluKernel,
    points: Tensor,
    targets: Tensor,
    records: Tensor,
    wanted: Tensor,
    ridge: float,
) -> tuple[float, Tensor]:
    """The loss of kernel ridge regression on a batch, and its gradient.

    Args:
        kernel: the kernel.
        points: X, float64 (m, D).
        targets: Y, float64 (m, c).
        records: float64 (b, D).
        wanted: their targets, float64 (b, c).
        ridge: relative to the mean of the kernel's diagonal.

    Returns:
        The mean over the batch of half the squared errors, and its gradient with respect to X.
    """
    squares = (points * points).sum(1)
    towards = kernel.slopes(records @ points.T, (records * records).sum(1), squares)
    among = kernel.slopes(points @ points.T, squares, squares)
    own = kernel.own(squares)
    # Automatic differentiation does the part that depends on the kernel matrices alone.
    system = among.values.clone()
    system.diagonal().copy_(own + ridge * own.mean())
    matrices = towards.values.requires_grad_(), system.requires_grad_()
    predicted = matrices[0] @ torch.cholesky_solve(targets, torch.linalg.cholesky(matrices[1]))
    loss = 0.5 * (predicted - wanted).square().sum(1).mean()
    of_towards, of_system = torch.autograd.grad(loss, matrices)
    of_own = of_system.diagonal() + ridge * of_system.diagonal().mean()
    of_among = (of_system + of_system.T).fill_diagonal_(0.0)
    slope = kernel.own_slope() * of_own[:, None] * points
    slope += _pulled_back(of_towards, towards, records, points)
    slope += _pulled_back(of_among, among, points, points)
    return float(loss.detach()), slope


def _pulled_back(given: Tensor, slopes: Slopes, records: Tensor, points: Tensor) -> Tensor:
    """Turn the gradient with respect to k(records, points) into that with respect to points."""
    return (given * slopes.first).T @ records + (given * slopes.second).sum(0)[:, None] * points


@torch.no_grad()
def _records(generator: ImageGenerator, each: int, random: torch.Generator) -> Tensor:
    """Records of all classes, one class after the other, float64 (classes each, D)."""
    code = torch.randn(generator.spec.classes, each, generator.spec.code, generator=random)
    made: Tensor = generator(code, torch.arange(generator.spec.classes))
    return made.flatten(0, 1).double()
