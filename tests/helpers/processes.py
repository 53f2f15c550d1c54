"""Run `dpntk` in processes that can be killed: forked, so that torch need not be loaded anew."""

from __future__ import annotations

import json
import multiprocessing
import os
import pkgutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpntk.common.cli.app import run
from dpntk.common.storage.sandbox import LIMITS, Limits, Parser

RECORDS = 60_000
CHUNKS = 21
"""How many chunks these records are."""
DEADLINE = 120.0
"""Seconds after which what was to happen never will."""


def write_records(path: Path, count: int = RECORDS, seed: int = 0) -> Path:
    """An archive of random images of 8x8 pixels in 3 classes."""
    random = np.random.default_rng(seed)
    images = random.integers(0, 256, (count, 8, 8), dtype=np.uint8)
    np.savez(path, x=images, y=random.integers(0, 3, count))
    return path


def overwrite(path: Path, content: bytes) -> None:
    """Write a file where it is: a new one, or one that was emptied, would wait for the disk."""
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()


def embed_arguments(data: Path | str, output: Path, *more: object) -> list[str]:
    """A command that checkpoints after every chunk."""
    options = "--front pixels --width 5 --classes 3 --threads 1 --checkpoint-every 0"
    return ["embed", *map(str, [data, "-o", output, *options.split(" "), *more])]


def start(
    arguments: list[str],
    *,
    rank: int = 0,
    ranks: int = 1,
    prepare: Callable[[], object] = lambda: None,
) -> int:
    """Run a command in a child; returns its process id.

    Args:
        arguments: of `dpntk`.
        rank: of the child.
        ranks: how many processes do the job together.
        prepare: called in the child first.
    """
    if (child := os.fork()) == 0:
        code = 99
        try:
            os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(ranks)}
            prepare()
            code = run(arguments)
        finally:
            os._exit(code)
    return child


def finish(child: int) -> int:
    """Wait for a child; returns its exit code, negative if a signal ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def embed_in_a_child(arguments: list[str], *, rank: int = 0, ranks: int = 1) -> int:
    """Run a command in a child to its end; returns its exit code."""
    return finish(start(arguments, rank=rank, ranks=ranks))


def when_called(
    function: str, act: Callable[[], object], call: int = 1, *, after: bool = False
) -> None:
    """Do something in this process when it calls a function.

    Args:
        function: its name where the caller looks it up, such as "os.fsync".
        act: what to do.
        call: which call is meant, from 1.
        after: whether to act once the function has returned, not when it is about to begin.
    """
    really = pkgutil.resolve_name(function)
    calls = 0

    def counted(*arguments: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        meant = calls == call
        if meant and not after:
            act()
        result = really(*arguments, **named)
        if meant and after:
            act()
        return result

    pytest.MonkeyPatch().setattr(function, counted)


def kill_at(function: str, call: int = 1, *, after: bool = False) -> Callable[[], None]:
    """Makes a child die of SIGKILL when it calls a function: `when_called`."""

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    return lambda: when_called(function, die, call, after=after)


class Gate:
    """Where a child waits, about to call a function, until its parent lets it go on.

    Args:
        function: see `when_called`.
        call: likewise.
    """

    def __init__(self, function: str, call: int = 1) -> None:
        processes = multiprocessing.get_context("fork")
        self._function, self._call = function, call
        self._reached, self._opened = processes.Event(), processes.Event()

    def prepare(self) -> None:
        """Put the gate up; called in the child."""
        when_called(self._function, self._pass, self._call)

    def wait(self) -> None:
        """Wait in the parent until the child has come to the gate."""
        assert self._reached.wait(DEADLINE), f"nobody has called {self._function}"

    def open(self) -> None:
        """Let the child go on."""
        self._opened.set()

    def _pass(self) -> None:
        self._reached.set()
        assert self._opened.wait(DEADLINE), f"nobody has opened the gate at {self._function}"


def run_anew(program: str) -> int:
    """Run Python in a child that has nothing of dpntk loaded; returns its exit code.

    What dpntk stands on is loaded there, because that takes seconds: for programs that ask what of
    dpntk itself is loaded.
    """
    if (child := os.fork()) == 0:
        code = 1
        try:
            for name in [name for name in sys.modules if name.partition(".")[0] == "dpntk"]:
                del sys.modules[name]
            exec(program, {})  # noqa: S102 - a test's own
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return finish(child)


def parse_here(
    parser: Parser,
    content: bytes,
    argument: Any,  # noqa: ANN401 - JSON
    limits: Limits = LIMITS,
) -> Any:  # noqa: ANN401 - JSON
    """`sandbox.parse_in_child` without a child, and so without limits."""
    return json.loads(json.dumps(parser(content, argument)))
