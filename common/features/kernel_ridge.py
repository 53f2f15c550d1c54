"""Kernel ridge regression for classification."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from .infinite_ntk import ReluKernel

_ROWS: Final = 1000


def class_targets(labels: Tensor, classes: int) -> Tensor:
    """The targets of the regression: one-hot labels minus 1 / classes, float64 (n, classes).

    Args:
        labels: int64 (n,).
        classes: the number of classes.
    """
    return torch.nn.functional.one_hot(labels, classes).double() - 1 / classes


class KernelRidge:
    """Kernel ridge regression, solved by Cholesky.

    Args:
        kernel: the kernel.
        points: the training points, float64 (m, D).
        targets: float64 (m, c).
        ridge: the ridge, relative to the mean of the kernel's diagonal.
    """

    def __init__(self, kernel: ReluKernel, points: Tensor, targets: Tensor, ridge: float) -> None:
        self._kernel, self._points = kernel, points
        system = torch.empty(len(points), len(points), dtype=points.dtype)
        for part, rows in zip(points.split(_ROWS), system.split(_ROWS), strict=True):
            rows.copy_(kernel(part, points))  # in parts: this takes ten times the memory
        own = kernel.own((points * points).sum(1))
        system.diagonal().copy_(own + ridge * own.mean())
        self._solution = torch.cholesky_solve(targets, torch.linalg.cholesky(system))

    def predict(self, records: Tensor) -> Tensor:
        """Predicted targets, float64 (n, c), of records (n, D)."""
        return self._kernel(records, self._points) @ self._solution
