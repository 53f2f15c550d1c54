"""Training steps on a card, recorded once and played again.

A step of a deep network of few channels is hundreds of kernels that compute for microseconds each:
to launch them one by one takes longer than they do. A CUDA graph launches all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor

Step = Callable[[Tensor, Tensor], None]
_BEFORE: Final = 3
"""Steps before one is recorded: libraries choose their kernels and optimisers set up in these."""


class RecordedStep:
    """A step that is the same for each batch, but for the batch.

    Batches of another size, the last ones of an epoch, take the step as it is.

    Args:
        step: trains on images and labels; whatever else it reads and changes lies on the card.
        batch: images that a recorded step takes.
    """

    def __init__(self, step: Step, batch: int) -> None:
        self._step, self._batch = step, batch
        self._graph: torch.cuda.CUDAGraph | None = None
        self._beside = torch.cuda.Stream()  # torch asks for one other than the usual
        self._taken = 0

    def __call__(self, images: Tensor, labels: Tensor) -> None:
        """Take a step by a batch."""
        if len(labels) != self._batch:
            self._step(images, labels)
            return
        if self._taken < _BEFORE:
            self._taken += 1
            self._beside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._beside):
                self._step(images, labels)
            torch.cuda.current_stream().wait_stream(self._beside)
            return
        if self._graph is None:
            self._images, self._labels = images.clone(), labels.clone()
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):  # notes the kernels, and launches none
                self._step(self._images, self._labels)
        self._images.copy_(images)
        self._labels.copy_(labels)
        self._graph.replay()
