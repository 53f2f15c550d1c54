"""Parsing a stranger's bytes in a sandboxed process, which has little to lose.

Hostile bytes can crash libraries. So another Python process gets them on its standard input. It
gives up its rights to open and write files and to use much memory or time, parses, and returns
plain JSON on its standard output. The parent does not trust that output and checks it again.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any, Final

_TIMEOUT: Final = 60
"""Seconds until the child is killed; generous, because the machine may be busy."""
_PROGRAM: Final = f"from {__name__} import main; raise SystemExit(main())"
_REFUSED: Final = 3

Parser = Callable[[bytes, Any], Any]
"""A module-level function of ours, which maps the content and a JSON value to a JSON value. Its
module should import little, because imports take most of the time."""


@dataclass(frozen=True)
class Limits:
    """What the child may use.

    Attributes:
        memory: bytes beside those that it has when it begins to parse.
        seconds: of processor time; an honest release takes a tenth of a second.
    """

    memory: int
    seconds: int


LIMITS: Final = Limits(1 << 28, 5)
"""The usual limits, for small files."""


class Refused(ValueError):
    """Content that is not as it should be. The one-line message is for the user."""


def parse_in_child(
    parser: Parser,
    content: bytes,
    argument: Any,  # noqa: ANN401 - JSON
    limits: Limits = LIMITS,
) -> Any:  # noqa: ANN401 - JSON
    """Call `parser(content, argument)` in a child process with limits on memory, time and files.

    Raises:
        Refused: the parser raised it, or parsing failed in any way.
    """
    with subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-P", "-c", _PROGRAM, parser.__module__, parser.__qualname__,
         json.dumps(argument), json.dumps(astuple(limits))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "HDF5_PLUGIN_PATH": "::", "OMP_NUM_THREADS": "1"},
    ) as child:  # fmt: skip
        assert child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            # In one piece, not in many small ones as `communicate` would. No time limit is needed,
            # because the child reads everything before it parses anything.
            child.stdin.write(content)
        try:
            result, _ = child.communicate(timeout=_TIMEOUT)
        except subprocess.TimeoutExpired as error:
            child.kill()
            raise Refused("damaged: reading it takes too long") from error
    if child.returncode < 0:
        raise Refused(f"damaged: reading it ended with signal {-child.returncode}")
    if child.returncode not in (0, _REFUSED):
        raise Refused(f"damaged: reading it failed with exit code {child.returncode}")
    if child.returncode:
        raise Refused(result.decode("utf-8", "replace"))
    try:
        return json.loads(result)
    except (ValueError, RecursionError) as error:
        raise Refused("damaged: reading it gave no result") from error


def limit(most: Limits = LIMITS) -> None:
    """Irrevocably give up rights that parsing does not need.

    No further file can be opened or written. Memory is limited to slightly more than the process
    has already, and time to what a slow machine needs.
    """
    limits = [
        (resource.RLIMIT_CPU, most.seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 0),
    ]
    if sys.platform == "linux":  # macOS does not support a limit on the address space
        limits.append((resource.RLIMIT_AS, _address_space() + most.memory))
    for what, wanted in limits:
        hard = resource.getrlimit(what)[1]
        lower = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(what, (lower, lower))


def _address_space() -> int:
    """The bytes of memory that the process has mapped already."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def main() -> int:
    """Read from standard input, write to standard output; returns the exit code."""
    module, name, argument, limits = sys.argv[1:]
    parser: Parser = getattr(importlib.import_module(module), name)
    content = sys.stdin.buffer.read()
    limit(Limits(*json.loads(limits)))
    try:
        result = json.dumps(parser(content, json.loads(argument)))
    except Refused as error:
        sys.stdout.buffer.write(str(error).encode())
        return _REFUSED
    sys.stdout.buffer.write(result.encode())
    return 0
