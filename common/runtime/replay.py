"""What a GPU computes again and again, recorded once.

A step of training is hundreds of kernels that compute for microseconds each; to launch them one by
one takes several times as long as they do. A CUDA graph launches all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
WARM_UP: Final = 3
"""Calls before one is recorded: libraries choose their kernels and set up their memory in these."""


class Replay(Generic[T]):
    """A function of tensors on a GPU, recorded by a first call.

    A graph reads and writes the memory that it was recorded with. So whatever else the function
    reads has to stay where it is, and what it gives back lies where the next result will lie.

    Args:
        function: of tensors of the same shapes at every call. It neither waits for the GPU nor
            draws numbers on the processor, and leaves no gradient behind.
        arguments: to record with.
        warm_up: number of calls before, on a stream of their own.
    """

    def __init__(
        self, function: Callable[..., T], *arguments: Tensor, warm_up: int = WARM_UP
    ) -> None:
        self._arguments = [each.clone() for each in arguments]
        beside = torch.cuda.Stream()  # torch asks for one other than the usual
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(warm_up):
                function(*self._arguments)
        torch.cuda.current_stream().wait_stream(beside)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):  # notes the kernels, and launches none
            self._found = function(*self._arguments)

    def __call__(self, *arguments: Tensor) -> T:
        """What the function gives back for arguments; the next call overwrites it."""
        for place, each in zip(self._arguments, arguments, strict=True):
            place.copy_(each)
        self._graph.replay()
        return self._found
