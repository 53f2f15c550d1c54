"""Square roots whose every bit is defined."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def square_root(values: Tensor) -> Tensor:
    """Square roots, each rounded to the nearest number, as IEEE 754 requires.

    On a CPU, torch uses a mathematics library whose roots may be off by a unit in the last place,
    differently on different processors. NumPy uses the processor's own roots, which are correctly
    rounded, as are those of CUDA. (If gradients are needed, torch's roots are used.)

    Args:
        values: (b, ...), not negative.
    """
    if values.device.type != "cpu" or values.requires_grad:
        return values.sqrt()
    return torch.from_numpy(np.sqrt(values.numpy()))
