"""A small regression problem with records as they are sampled, and plain gradients of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpntk.common.features.infinite_ntk import ReluKernel
from dpntk.common.features.kernel_ridge import class_targets
from dpntk.release.distill.gradients import Contributions, SupportLoss
from dpntk.release.distill.mechanism import PLACES
from dpntk.release.file.distilled import VALUE_LEVELS

BIAS, RIDGE = 0.01, 1e-3


@dataclass(frozen=True, eq=False)
class Problem:
    """Support points and records.

    Attributes:
        points: float64 (m, D), on the grid.
        targets: float64 (m, c).
        records: uint8 (b, D).
        record_targets: float64 (b, c).
        centre: of the records.
    """

    points: Tensor
    targets: Tensor
    records: NDArray[np.uint8]
    record_targets: Tensor
    centre: int = 40

    @property
    def loss(self) -> SupportLoss:
        return self.loss_of()

    def loss_of(self, directions: int | None = None, whitened: int | None = None) -> SupportLoss:
        kernel = ReluKernel(self.points.shape[1], BIAS)
        return SupportLoss(kernel, self.points, self.targets, RIDGE, directions, whitened)

    @property
    def values(self) -> Tensor:
        return (torch.from_numpy(self.records).double() - self.centre) / VALUE_LEVELS


def draw_problem(
    records: int = 40, points: int = 9, inputs: int = 30, classes: int = 3, seed: int = 0
) -> Problem:
    """A random problem; the first records are black, white, and equal."""
    random = np.random.default_rng(seed)
    drawn = random.integers(0, 256, (records, inputs), dtype=np.uint8)
    drawn[0], drawn[1] = 0, 255
    drawn[2] = drawn[3]
    support = np.rint(random.normal(0, 0.3, (points, inputs)) * PLACES) / PLACES
    return Problem(
        torch.from_numpy(support),
        class_targets(torch.arange(points) % classes, classes),
        drawn,
        class_targets(torch.from_numpy(random.integers(0, classes, records)), classes),
    )


def beside_records(problem: Problem) -> Problem:
    """Support points on records or a step of the grid beside them, where slopes are largest."""
    random = torch.Generator().manual_seed(0)
    near = problem.values[4 : 4 + len(problem.points)]
    steps = torch.randint(-1, 2, near.shape, generator=random)
    return replace(problem, points=near + steps / PLACES)


def plain_kernel(x: Tensor, z: Tensor, *, same: bool = False) -> Tensor:
    """The kernel by torch's own functions; where x is z its diagonal is put in by hand."""
    inputs = x.shape[1]
    h_xx, h_zz = (2 * (a * a).sum(1) / inputs + BIAS for a in (x, z))
    h_xz = 2 * x @ z.T / inputs + BIAS
    geometric = (h_xx[:, None] * h_zz).sqrt()
    own = torch.eye(len(x), dtype=torch.bool) if same else torch.zeros(h_xz.shape, dtype=torch.bool)
    theta = torch.where(own, 0.5, h_xz / geometric).arccos()  # its slope at 1 is infinite
    rest = (math.pi - theta) / math.pi
    values = geometric * (theta.sin() / math.pi + rest * theta.cos()) + BIAS + h_xz * rest
    return torch.where(own, 2 * h_xx[:, None] + BIAS, values)


def parts_of(found: Contributions) -> tuple[Tensor, Tensor, Tensor]:
    """What each record adds to the three sums, (b, k, D), (b, m) and (b, l, C)."""
    of_records = found.of_record[:, :, None] * found.record[:, None]
    of_records += found.of_rest[:, :, None] * found.rest[:, None]
    return of_records, found.own, found.seen[:, :, None] * found.direction[:, None]


def written_out(found: Contributions) -> Tensor:
    """The same, one after the other, (b, all)."""
    return torch.cat([part.flatten(1) for part in parts_of(found)], dim=1)


def plain_gradients(problem: Problem) -> Tensor:
    """Gradients of each record's loss, (b, m, D), by automatic differentiation."""

    def loss(points: Tensor, record: Tensor, target: Tensor) -> Tensor:
        system = plain_kernel(points, points, same=True)
        ridge = RIDGE * system.trace() / len(points)
        system = system + ridge * torch.eye(len(points), dtype=torch.float64)
        solution = torch.linalg.solve(system, problem.targets)
        wrong = (plain_kernel(record[None], points) @ solution)[0] - target
        half: Tensor = wrong.square().sum() / 2
        return half

    every = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))
    gradients: Tensor = every(problem.points, problem.values, problem.record_targets)
    return gradients
