"""Reading a stranger's release in a process of its own, which has little to lose.

libhdf5 can be crashed by hostile bytes. So another Python gets the file on its standard input,
takes the rights to open and write files and to use much memory or time away from itself, reads,
and hands plain arrays back on its standard output, as safetensors. The parent checks them again as
if they came from anywhere.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from typing import Any, Final

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from ..common.errors import FormatError
from .body import Body, read_body

_SECONDS: Final = 20
_BYTES_A_SECOND: Final = 1 << 26
_PROGRAM: Final = f"from {__name__} import main; raise SystemExit(main())"
_REFUSED: Final = 3
_SPARE_MEMORY: Final = 1 << 30
_ATTRIBUTES: Final = "attributes"


def read_in_child(content: bytes) -> Body:
    """`read_body` in a child process with limits on memory, time and files.

    Raises:
        FormatError: the content is not that of a release, or reading it went wrong in any way.
    """
    try:
        child = subprocess.run(  # noqa: S603 - our own module
            [sys.executable, "-P", "-c", _PROGRAM],
            input=content,
            capture_output=True,
            timeout=4 * _seconds_for(len(content)),
            check=False,
            env={**os.environ, "HDF5_PLUGIN_PATH": "::", "OMP_NUM_THREADS": "1"},
        )
    except subprocess.TimeoutExpired as error:
        raise FormatError("damaged: reading it takes too long") from error
    if child.returncode == _REFUSED:
        raise FormatError(child.stderr.decode("utf-8", "replace"))
    if child.returncode < 0:
        raise FormatError(f"damaged: reading it ended with signal {-child.returncode}")
    if child.returncode:
        raise FormatError(f"damaged: reading it failed with exit code {child.returncode}")
    try:
        return decode(child.stdout)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise FormatError("damaged: reading it gave no result") from error


def encode(body: Body) -> bytes:
    """A body as bytes that `decode` reads."""
    # JSON has no infinity, but Python's writes and reads one.
    attributes = np.frombuffer(json.dumps(dict(body.attributes)).encode(), dtype=np.uint8)
    arrays = {name: np.ascontiguousarray(values) for name, values in body.arrays.items()}
    content: bytes = save({**arrays, _ATTRIBUTES: attributes})
    return content


def decode(content: bytes) -> Body:
    """What `encode` wrote."""
    arrays: dict[str, Any] = load(content)
    attributes = json.loads(arrays.pop(_ATTRIBUTES).tobytes())
    return Body(attributes, arrays)


def limit(size: int) -> None:
    """Give up what reading a file of this size does not need; this cannot be taken back.

    No further file can be opened or written; memory is limited to a few times the file's size, and
    time to what a slow machine needs for it.
    """
    limits = [
        (resource.RLIMIT_CPU, _seconds_for(size)),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 0),
    ]
    if sys.platform == "linux":  # macOS takes no limit on the address space
        limits.append((resource.RLIMIT_AS, _address_space() + _SPARE_MEMORY + 6 * size))
    for what, most in limits:
        hard = resource.getrlimit(what)[1]
        lower = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (lower, lower))


def _seconds_for(size: int) -> int:
    return _SECONDS + size // _BYTES_A_SECOND


def _address_space() -> int:
    """Bytes of memory that the process has mapped already."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def main() -> int:
    """Read from standard input, write to standard output; the exit code of the process."""
    content = sys.stdin.buffer.read()
    limit(len(content))
    try:
        body = read_body(content)
    except FormatError as error:
        sys.stderr.write(str(error))
        return _REFUSED
    sys.stdout.buffer.write(encode(body))
    return 0
