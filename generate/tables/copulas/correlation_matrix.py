"""Correlation matrices near noisy ones."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

LEAST_EIGENVALUE: Final = 0.03
"""The usual floor for eigenvalues: no combination of numbers is nearly constant."""


def as_correlations(noisy: Tensor, least: float = LEAST_EIGENVALUE) -> Tensor:
    """A positive definite correlation matrix near a noisy one, which need not be one at all.

    Args:
        noisy: symmetric, float64 (k, k).
        least: floor for eigenvalues.
    """
    values, vectors = torch.linalg.eigh(noisy)
    matrix = vectors @ torch.diag(values.clamp(min=least)) @ vectors.T
    scale = matrix.diagonal().rsqrt()
    found: Tensor = matrix * torch.outer(scale, scale)
    return found
