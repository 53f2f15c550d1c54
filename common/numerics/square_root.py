"""Square roots whose every bit is defined."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def square_root(values: Tensor) -> Tensor:
    """Square roots, each the nearest number to the true one, as IEEE 754 asks.

    On a processor torch takes them from a mathematics library that may be a unit in the last place
    away, and not the same on every kind of processor. NumPy takes the processor's own, which are
    right, as are those of CUDA. (Where gradients are asked for, torch's do.)

    Args:
        values: (b, ...), not negative.
    """
    if values.device.type != "cpu" or values.requires_grad:
        return values.sqrt()
    return torch.from_numpy(np.sqrt(values.numpy()))
