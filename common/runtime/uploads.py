"""Copying arrays to a GPU while it computes."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import torch
from numpy.typing import NDArray
from torch import Tensor

_AHEAD: Final = 2
"""The most sets of arrays that may wait on the GPU: reading may be much faster than computing, and
would otherwise fill the GPU's memory."""


class Uploads:
    """Copies arrays to a device, one set at a time.

    For a GPU it copies from pinned memory on its own stream: the caller does not wait for a copy,
    and a copy does not wait for the GPU's computation.

    Args:
        device: the target device.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._copying = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._before: deque[torch.cuda.Event] = deque()

    def __call__(self, *arrays: NDArray[Any]) -> list[Tensor]:
        """Copy arrays to the device; on a CPU, use the arrays themselves."""
        # torch warns of read-only memory, although nothing writes to it.
        here = [torch.from_numpy(each if each.flags.writeable else each.copy()) for each in arrays]
        if self._copying is None:
            return [each.to(self._device) for each in here]
        computing = torch.cuda.current_stream(self._device)
        self._before.append(computing.record_event())
        if len(self._before) > _AHEAD:
            self._before.popleft().synchronize()
        with torch.cuda.stream(self._copying):
            there = [each.pin_memory().to(self._device, non_blocking=True) for each in here]
        computing.wait_stream(self._copying)
        for each in there:
            each.record_stream(computing)
        return there
