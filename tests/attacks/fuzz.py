"""Random mutations of a release, read as a stranger's file would be, but by fast forks.

`python -m tests.attacks.fuzz RELEASE COUNT SEED` reads COUNT mutations of an unsigned release and
prints what became of them as JSON. `open_release` starts a new Python for each stranger's file;
here a process that has loaded everything forks for each, takes the same rights away from itself
and reads in the same way, which is a hundred times faster. The main process then does with the
outcome what it always does. Nobody signs: a signature over mutated bytes would change nothing of
what is read.
"""

from __future__ import annotations

import collections
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import numpy as np

from dpntk.common.errors import FormatError, ReleaseError
from dpntk.release.body import read_body
from dpntk.release.child import decode, encode, limit
from dpntk.release.reader import understand
from dpntk.release.user_block import read_user_block
from tests.attacks.attacks import SECRET
from tests.attacks.hostile import ATTACKS

EXTREMES = [0, 1, 0x7F, 0x80, 0xFF]
SECONDS = 1


def mutate(content: bytes, random: np.random.Generator) -> bytes:
    """Change some bytes after the user block, or their number."""
    changed = bytearray(content)
    for _ in range(int(random.integers(1, 6))):
        place = int(random.integers(512, len(changed)))
        match int(random.integers(0, 6)):
            case 0:
                changed[place] ^= 1 << int(random.integers(0, 8))
            case 1:
                changed[place] = EXTREMES[int(random.integers(0, 5))]
            case 2:  # an aligned number gets an extreme value
                size = 1 << int(random.integers(1, 4))
                place -= place % size
                changed[place : place + size] = bytes([EXTREMES[int(random.integers(0, 5))]]) * size
            case 3:  # something from elsewhere
                size = int(random.integers(1, 64))
                source = int(random.integers(512, len(changed)))
                changed[place : place + size] = changed[source : source + size]
            case 4:
                del changed[place : place + int(random.integers(1, 32))]
            case 5:
                changed[place:place] = random.bytes(int(random.integers(1, 32)))
    return bytes(changed)


def read_in_fork(content: bytes) -> tuple[int, bytes]:
    """What `read_in_child` would get: the status of the process, and what it wrote."""
    receiving, sending = os.pipe()
    if (child := os.fork()) == 0:
        os.close(receiving)
        status = 1
        try:
            signal.alarm(SECONDS)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            limit(len(content))
            try:
                result, status = encode(read_body(content)), 0
            except FormatError as error:
                result, status = str(error).encode(), 3
            with os.fdopen(sending, "wb") as pipe:
                pipe.write(result)
        finally:
            os._exit(status)
    os.close(sending)
    with os.fdopen(receiving, "rb") as pipe:
        result = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), result


def outcome_of(content: bytes) -> str:
    """In one word, what became of a file; anything but a `ReleaseError` is raised."""
    try:
        block = read_user_block(content)
        status, result = read_in_fork(content)
        if SECRET[:64] in result:
            return "LEAKED"
        if status < 0:
            return f"the child ended with signal {-status}"
        if status == 3:
            return "refused by the child"
        if status:
            return f"the child ended with exit code {status}"
        understand(decode(result), block)
    except ReleaseError:
        return "refused"
    return "opened"


def main(release: Path, count: int, seed: int) -> dict[str, int]:
    """Read that many mutated files."""
    random = np.random.default_rng(seed)
    honest = release.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        secret = Path(folder) / "secret.bin"
        secret.write_bytes(SECRET)
        reaching_out = ["external_storage", "virtual_data_set", "external_link"]
        seeds = [honest, honest, honest, *(ATTACKS[n].make(honest, secret) for n in reaching_out)]
        outcomes = collections.Counter(
            outcome_of(mutate(seeds[number % len(seeds)], random)) for number in range(count)
        )
    return dict(outcomes)


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
