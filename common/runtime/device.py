"""Choosing the device to compute on, which never affects the guarantee."""

from __future__ import annotations

import torch

from ..arguments import argument, require_kind
from ..errors import DeviceError
from .ranks import Ranks

AUTO = "auto"


def choose_device(name: str | torch.device = AUTO) -> torch.device:
    """The device of a given name; "auto" takes a CUDA device if there is one.

    If several processes run on a machine, "auto" and "cuda" give each its own CUDA device, by its
    local rank; processes share devices if there are not enough.

    Raises:
        DeviceError: there is no such device here.
        RunError: the environment describes an impossible set of processes.
    """
    require_kind("device", name, (str, torch.device), "auto, cpu or cuda", refusal=DeviceError)
    ranks = Ranks.from_environment()
    if name in {AUTO, "cuda"} and torch.cuda.is_available():
        # With one process, torch and its user choose the current device.
        own = None if ranks.local_count == 1 else ranks.local_rank % torch.cuda.device_count()
        return torch.device("cuda") if own is None else torch.device("cuda", own)
    if name == AUTO:
        return torch.device("cpu")
    named = argument("device", str(name))
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise DeviceError(f"{named}: no such device here; try cpu") from error
    if device.type not in {"cpu", "cuda"}:
        raise DeviceError(f"{named}: cpu and cuda are supported")
    return device
