"""Parsing a stranger's bytes in a process of its own, which has little to lose.

Libraries can be crashed by hostile bytes. So another Python gets them on its standard input, takes
the rights to open and write files and to use much memory or time away from itself, parses, and
hands plain JSON back on its standard output. The parent checks that again as if it came from
anywhere.
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
from typing import Any, Final

_SECONDS: Final = 5
"""Processor time; an honest file takes a tenth of a second."""
_TIMEOUT: Final = 60
"""Seconds until the child is ended, on a machine that has much else to do."""
_SPARE_MEMORY: Final = 1 << 28
_PROGRAM: Final = f"from {__name__} import main; raise SystemExit(main())"
_REFUSED: Final = 3

Parser = Callable[[bytes, Any], Any]
"""A function at the top of a module of ours: from the content and something that JSON can say to
something that JSON can say. Its module ought to import little: that is most of the time it takes.
"""


class Refused(ValueError):
    """Content that is not what it should be. The message, a line, is for the user."""


def parse_in_child(parser: Parser, content: bytes, argument: Any) -> Any:  # noqa: ANN401 - JSON
    """Call `parser(content, argument)` in a child process with limits on memory, time and files.

    Raises:
        Refused: the parser raised it, or parsing went wrong in any way.
    """
    with subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-P", "-c", _PROGRAM, parser.__module__, parser.__qualname__,
         json.dumps(argument)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "HDF5_PLUGIN_PATH": "::", "OMP_NUM_THREADS": "1"},
    ) as child:  # fmt: skip
        assert child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            # In one piece, not in many small ones as `communicate` would; and without a limit on
            # time, for the child takes all of it before it looks at any.
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


def limit() -> None:
    """Give up what parsing does not need; this cannot be taken back.

    No further file can be opened or written; memory is limited to what the process has already and
    a little more, and time to what a slow machine needs.
    """
    limits = [
        (resource.RLIMIT_CPU, _SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 0),
    ]
    if sys.platform == "linux":  # macOS takes no limit on the address space
        limits.append((resource.RLIMIT_AS, _address_space() + _SPARE_MEMORY))
    for what, most in limits:
        hard = resource.getrlimit(what)[1]
        lower = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (lower, lower))


def _address_space() -> int:
    """Bytes of memory that the process has mapped already."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def main() -> int:
    """Read from standard input, write to standard output; the exit code of the process."""
    module, name, argument = sys.argv[1:]
    parser: Parser = getattr(importlib.import_module(module), name)
    content = sys.stdin.buffer.read()
    limit()
    try:
        result = json.dumps(parser(content, json.loads(argument)))
    except Refused as error:
        sys.stdout.buffer.write(str(error).encode())
        return _REFUSED
    sys.stdout.buffer.write(result.encode())
    return 0
