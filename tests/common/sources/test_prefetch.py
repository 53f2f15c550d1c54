"""Reading ahead keeps the order, fails at the right place, and never hangs."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from dpntk.common.sources.prefetch import decoding_workers, in_order, read_ahead


class Broken(Exception):
    """What goes wrong in these tests."""


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("dpntk-read")]


def test_results_come_in_the_order_of_the_items_even_if_later_ones_are_done_first() -> None:
    done = [threading.Event() for _ in range(10)]

    def slow_first(item: int) -> int:
        if item % 3 == 0:  # waits for the two items after it, which other threads work on
            assert done[item + 1].wait(60)
            assert done[item + 2].wait(60)
        done[item].set()
        return item

    assert list(in_order(slow_first, range(9), workers=3, ahead=3)) == list(range(9))


def test_no_more_lies_ready_than_was_asked_for() -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        while True:
            taken += 1
            yield taken

    results = in_order(lambda item: item, items(), workers=2, ahead=5)
    for yielded in range(1, 50):
        assert next(results) == yielded
        assert taken == yielded + 5
    results.close()


def test_work_goes_on_while_the_caller_does_something_else() -> None:
    begun = [threading.Event() for _ in range(4)]
    results = in_order(lambda item: begun[item].set(), range(4), workers=1, ahead=3)
    next(results)
    assert all(event.wait(60) for event in begun)
    results.close()


def test_an_error_is_raised_after_what_comes_before_it() -> None:
    def function(item: int) -> int:
        if item == 3:
            raise Broken("three")
        return item

    results = in_order(function, range(100), workers=4, ahead=8)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(Broken, match="three"):
        next(results)
    assert threads() == []


def failing_after(count: int) -> Generator[int, None, None]:
    yield from range(count)
    raise Broken("the source")


def test_an_error_of_the_items_is_raised_after_the_results_of_those_before_it() -> None:
    for results in (
        in_order(lambda item: item, failing_after(3), workers=2, ahead=10),
        read_ahead(failing_after(3), ahead=10),
    ):
        assert [next(results) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(Broken, match="the source"):
            next(results)
        assert threads() == []


def test_stopping_early_closes_the_stream_and_leaves_no_thread() -> None:
    closed = threading.Event()

    def stream() -> Generator[int, None, None]:
        try:
            yield from itertools.count()
        finally:
            closed.set()

    results = read_ahead(in_order(lambda item: item + 1, stream(), workers=2, ahead=4), ahead=2)
    assert [next(results) for _ in range(20)] == list(range(1, 21))
    results.close()
    assert threads() == []

    closed.clear()
    inner = stream()  # which is still referred to here when it is closed
    direct = read_ahead(inner)
    assert next(direct) == 0
    direct.close()
    assert closed.is_set()
    assert threads() == []


def test_interrupted_while_it_waits_for_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by somebody who presses the keys twice; the stream is still running in its thread."""
    begun, may_end = threading.Event(), threading.Event()

    def slow() -> Generator[int, None, None]:
        yield 1
        begun.set()
        may_end.wait(60)
        yield 2

    pools: list[ThreadPoolExecutor] = []

    def interrupted(pool: ThreadPoolExecutor, **_: object) -> None:
        pools.append(pool)
        raise KeyboardInterrupt

    taken = read_ahead(slow())
    assert next(taken) == 1
    assert begun.wait(60)
    with monkeypatch.context() as patch:
        patch.setattr(ThreadPoolExecutor, "shutdown", interrupted)
        with pytest.raises(KeyboardInterrupt):
            taken.close()
    may_end.set()
    pools[0].shutdown()
    assert not threads()


def test_nothing_is_read_before_the_first_item_is_asked_for() -> None:
    results = read_ahead(failing_after(0))
    results.close()
    assert threads() == []


def test_an_empty_stream() -> None:
    assert list(read_ahead(iter_nothing())) == []
    assert list(in_order(str, [], workers=2, ahead=2)) == []


def iter_nothing() -> Generator[int, None, None]:
    yield from ()


INTERRUPTED = """
import itertools, signal, threading
from contextlib import closing
from dpntk.common.sources.prefetch import in_order, read_ahead

# Where the tests run in the background, interrupts are ignored by all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

def stream():
    yield from itertools.count()

entered = threading.Event()

def slow(item):
    if item == 7:
        print("waiting", flush=True)
        entered.wait(1)  # a long piece
    return item

try:
    with (
        closing(read_ahead(stream())) as read,
        closing(in_order(slow, read, workers=2, ahead=4)) as results,
    ):
        for result in results:
            pass
except KeyboardInterrupt:
    print("interrupted", threading.active_count())
"""


def test_an_interrupted_process_ends() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted 1\n"
        assert process.wait(60) == 0


def test_processes_on_one_machine_share_its_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpntk.common.runtime.ranks.usable_cores", lambda: 6)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    assert decoding_workers() == 6
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert decoding_workers() == 3
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "64")
    assert decoding_workers() == 1
    monkeypatch.setattr("dpntk.common.runtime.ranks.usable_cores", lambda: 500)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    assert decoding_workers() == 8
