"""Training steps on a card, recorded once and played again."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dpntk.common.runtime.replay import WARM_UP, Replay

Step = Callable[[Tensor, Tensor], None]


class RecordedStep:
    """A step that is the same for each batch, but for the batch.

    The first steps warm up. Batches of another size, the last ones of an epoch, take the step as it
    is.

    Args:
        step: trains on images and labels; whatever else it reads and changes lies on the card.
        batch: images that a recorded step takes.
    """

    def __init__(self, step: Step, batch: int) -> None:
        self._step, self._batch = step, batch
        self._replay: Replay[None] | None = None
        self._beside = torch.cuda.Stream()
        self._taken = 0

    def __call__(self, images: Tensor, labels: Tensor) -> None:
        """Take a step by a batch."""
        if len(labels) != self._batch:
            self._step(images, labels)
        elif self._taken < WARM_UP:
            self._taken += 1
            self._beside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._beside):
                self._step(images, labels)
            torch.cuda.current_stream().wait_stream(self._beside)
        else:
            if self._replay is None:
                self._replay = Replay(self._step, images, labels, warm_up=0)
            self._replay(images, labels)
