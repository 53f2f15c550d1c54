"""How many threads a process computes with, so that several on a machine do not crowd it."""

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
    """What `map` is."""

    def __call__(self, function: Callable[[T], R], things: Iterable[T], /) -> Iterator[R]:
        """Apply a function to some things, and give what it returns in their order."""
        ...


def use_threads(count: int | None = None) -> int:
    """Set the number of threads that torch computes with.

    Args:
        count: as many; if None, `OMP_NUM_THREADS` where the user has set it, and else this
            process's share of the cores that it may run on.

    Returns:
        The number set.

    Raises:
        RunError: the environment describes no set of processes.
    """
    ranks = Ranks.from_environment()
    if count is None and "OMP_NUM_THREADS" in os.environ and not _set_by_torchrun(ranks):
        return torch.get_num_threads()
    if count is None and ranks.local_count == 1:
        return torch.get_num_threads()
    count = count or ranks.share_of_cores
    torch.set_num_threads(count)
    return count


def finish(work: Iterable[None]) -> None:
    """Wait until all of what `Each` was given is done."""
    for _ in work:
        pass


@contextmanager
def one_core_each() -> Iterator[Each]:
    """A pool of as many threads as torch computes with, each of which uses one core.

    For many small steps that do not need one another: where torch divides each of them among
    threads, these wait for one another rather than work.

    Yields:
        `map`, but several at a time.
    """
    count = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPool(count, torch.set_num_threads, (1,)) as pool:
            yield pool.imap
    finally:
        torch.set_num_threads(count)


def _set_by_torchrun(ranks: Ranks) -> bool:
    """Torchrun sets 1 for several processes where nothing was set, and leaves cores idle."""
    torchrun = "TORCHELASTIC_RUN_ID" in os.environ and ranks.local_count > 1
    return torchrun and os.environ["OMP_NUM_THREADS"] == "1"
