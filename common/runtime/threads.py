"""The number of threads of a process, so that several processes do not overload a machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.pool import ThreadPool
from typing import Protocol, TypeVar

import torch

from .ranks import Ranks

T = TypeVar("T")
R = TypeVar("R")


class Each(Protocol):
    """A function like `map`."""

    def __call__(self, function: Callable[[T], R], things: Iterable[T], /) -> Iterator[R]:
        """Apply a function to some things, and yield the results in order."""
        ...


def use_threads(count: int | None = None) -> int:
    """Set torch's number of threads.

    Args:
        count: the number; if None, `OMP_NUM_THREADS` if the user has set it, otherwise at most this
            process's share of the cores that it may use. (torch knows nothing of a container's
            quota, and of other processes.)

    Returns:
        The number that was set.

    Raises:
        RunError: the environment describes an impossible set of processes.
    """
    ranks = Ranks.from_environment()
    if count is None and "OMP_NUM_THREADS" in os.environ and not _set_by_torchrun(ranks):
        return torch.get_num_threads()
    if count is None:
        count = ranks.share_of_cores
        if ranks.local_count == 1 and torch.get_num_threads() <= count:
            return torch.get_num_threads()
    torch.set_num_threads(count)
    return count


def finish(work: Iterable[None]) -> None:
    """Wait until all work given to an `Each` is done."""
    for _ in work:
        pass


@contextmanager
def one_core_each() -> Iterator[Each]:
    """A pool with torch's number of threads, each of which uses one core.

    It is for many small independent steps: if torch divides each of them among threads, these
    mostly wait for one another.

    Yields:
        A function like `map` that does several steps at a time; `map` itself if there is one core,
        because handing each step to another thread takes as long as a short step.
    """
    count = torch.get_num_threads()
    if count == 1:
        yield map
        return
    torch.set_num_threads(1)
    try:
        with ThreadPool(count, torch.set_num_threads, (1,)) as pool:
            yield pool.imap
    finally:
        torch.set_num_threads(count)


def _set_by_torchrun(ranks: Ranks) -> bool:
    """Whether torchrun has set 1 by default, as it does for several processes: it idles cores."""
    torchrun = "TORCHELASTIC_RUN_ID" in os.environ and ranks.local_count > 1
    return torchrun and os.environ["OMP_NUM_THREADS"] == "1"
