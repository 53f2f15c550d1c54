"""Where to compute: a choice that never changes what is promised."""

from __future__ import annotations

import torch

from .errors import DataError

AUTO = "auto"


def choose_device(name: str = AUTO) -> torch.device:
    """The device of that name; "auto" takes a CUDA device where there is one.

    Raises:
        DataError: there is no such device here.
    """
    if name == AUTO:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise DataError(f"--device {name}: no such device here; try cpu") from error
    if device.type not in {"cpu", "cuda"}:
        raise DataError(f"--device {name}: cpu and cuda are supported")
    return device
