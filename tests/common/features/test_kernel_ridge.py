"""Kernel ridge regression solves its equations."""

from __future__ import annotations

import torch

from dpntk.common.features.infinite_ntk import ReluKernel
from dpntk.common.features.kernel_ridge import KernelRidge, class_targets
from tests.common.features.test_infinite_ntk import BIAS, INPUTS, draw


def test_the_regression_solves_its_equations() -> None:
    kernel, points = ReluKernel(INPUTS, BIAS), draw(8, seed=5)
    targets = class_targets(torch.arange(8) % 4, 4)
    system = kernel(points, points)
    system += 0.1 * system.diagonal().mean() * torch.eye(8, dtype=torch.float64)
    expected = kernel(draw(3, seed=6), points) @ torch.linalg.solve(system, targets)
    found = KernelRidge(kernel, points, targets, 0.1).predict(draw(3, seed=6))
    assert (found - expected).abs().max() < 1e-7
    assert targets.sum(1).abs().max() < 1e-15
