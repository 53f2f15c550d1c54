"""Reading and decoding in threads while the caller computes.

No queue can block for ever: work is handed out only when a result is fetched. So the number of
finished results is bounded, and a caller who stops early leaves only the pieces in progress, which
are waited for.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Final, TypeVar

from ..runtime.ranks import Ranks

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST_WORKERS: Final = 8
_END: Final = object()


def decoding_workers() -> int:
    """The number of decoding threads: one for each core available to this process, at most 8.

    Raises:
        RunError: the environment describes an impossible set of processes.
    """
    return min(_MOST_WORKERS, Ranks.from_environment().share_of_cores)


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], *, workers: int, ahead: int
) -> Generator[Result, None, None]:
    """Apply a function to items in threads, and yield the results in the order of the items.

    Args:
        function: must release the GIL most of the time for several threads to be useful.
        items: taken in the caller's thread, `ahead` of the results that have been yielded.
        workers: number of threads.
        ahead: how many results may be finished or in progress while the caller does something else.

    Raises:
        Exception: whatever `function` or `items` raised, after all earlier results.
    """
    waiting: deque[Future[Result]] = deque()
    iterator = iter(items)
    failure: Exception | None = None
    pool = ThreadPoolExecutor(workers, thread_name_prefix="dpntk-read")
    try:
        while failure is None:
            try:
                item = next(iterator)
            except StopIteration:
                break
            except Exception as error:
                failure = error
                break
            # Threads start without the context, which says how errors name arguments.
            waiting.append(pool.submit(copy_context().run, function, item))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
        if failure is not None:
            raise failure
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def read_ahead(
    stream: Generator[Result, None, None], ahead: int = 2
) -> Generator[Result, None, None]:
    """Run a generator in its own thread, `ahead` items before the caller; close it at the end.

    Raises:
        Exception: whatever the generator raised, after all earlier items.
    """

    def take(_: None) -> object:
        return next(stream, _END)

    items = in_order(take, itertools.repeat(None), workers=1, ahead=ahead)
    try:
        with contextlib.closing(items) as taken:
            for item in taken:
                if item is _END:
                    return
                yield item  # type: ignore[misc]
    finally:
        # It still runs in its thread if the wait for it was interrupted.
        if inspect.getgeneratorstate(stream) != inspect.GEN_RUNNING:
            stream.close()
