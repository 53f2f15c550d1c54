"""Arrays on their way to a card, which goes on computing meanwhile."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import torch
from numpy.typing import NDArray
from torch import Tensor

_AHEAD: Final = 2
"""How many sets of arrays may wait on the card for the computation to catch up: reading may be much
faster, and would otherwise fill the card's memory."""


class Uploads:
    """Copies arrays to a device, some at a time.

    To a card from pinned memory, on a stream of its own: the caller does not wait for a copy, nor
    a copy for what the card is computing.

    Args:
        device: where to.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._copying = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._before: deque[torch.cuda.Event] = deque()

    def __call__(self, *arrays: NDArray[Any]) -> list[Tensor]:
        """Copies there; on a processor, the arrays themselves."""
        # Torch warns of memory that it may not write to, though nobody does.
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
