"""Layers of the paper's networks, with a purely float32 state."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

_NEW: Final = 0.1
"""Weight of a batch in the running mean and variance."""


class BatchNorm(nn.Module):
    """Batch norm (Ioffe and Szegedy 2015, arXiv 1502.03167), without PyTorch's batch counter.

    Args:
        width: values in a vector, or channels.
    """

    running_mean: Tensor
    running_variance: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_variance", torch.ones(width))

    def forward(self, values: Tensor) -> Tensor:
        """Normalise (b, width) or (b, width, h, w), b >= 2 in training."""
        return nn.functional.batch_norm(
            values, self.running_mean, self.running_variance, self.weight, self.bias,
            training=self.training, momentum=_NEW,
        )  # fmt: skip


def normalised_layer(inputs: int, outputs: int) -> nn.Sequential:
    """A linear layer with batch norm and ReLU."""
    return nn.Sequential(nn.Linear(inputs, outputs), BatchNorm(outputs), nn.ReLU())


def conditioned(code: Tensor, classes: Tensor, count: int) -> Tensor:
    """Append the one-hot class of each group to its latent codes.

    Args:
        code: (k, b, code).
        classes: int64 (k,).
        count: how many classes there are.

    Returns:
        (k, b, code + count).
    """
    one_hot = nn.functional.one_hot(classes, count).to(code)
    return torch.cat([code, one_hot[:, None, :].expand(-1, code.shape[1], -1)], dim=-1)
