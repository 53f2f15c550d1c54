"""Arrays on their way to a card, which goes on computing meanwhile."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import torch
from numpy.typing import NDArray
from torch import Tensor

_AHEAD: Final = 2
"""So many arrays are copied before what is computed of the first one is done: no more wait on the
card, however much faster they are read than computed with."""


class Uploads:
    """Copies arrays to a device, one after the other.

    To a card from pinned memory, on a stream of its own: the caller does not wait for a copy, nor
    a copy for what the card is computing.

    Args:
        device: where to.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._copying = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._before: deque[torch.cuda.Event] = deque()

    def __call__(self, array: NDArray[Any]) -> Tensor:
        """A copy there; on a processor, the array itself."""
        here = torch.from_numpy(array)
        if self._copying is None:
            return here.to(self._device)
        computing = torch.cuda.current_stream(self._device)
        self._before.append(computing.record_event())
        if len(self._before) > _AHEAD:
            self._before.popleft().synchronize()
        with torch.cuda.stream(self._copying):
            there = here.pin_memory().to(self._device, non_blocking=True)
        computing.wait_stream(self._copying)
        there.record_stream(computing)
        return there
