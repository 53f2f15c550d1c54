"""Every hostile file is refused, with the right words, whoever signed it."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dpntk.common.errors import FormatError
from dpntk.release import Acceptance, Release, make_key, open_release, own_key
from dpntk.release.file.parser import read_in_child
from dpntk.release.file.user_block import sign_file
from dpntk.release.file.writer import serialise
from dpntk.release.signing.trust import add
from tests.attacks.attacks import SECRET
from tests.attacks.releases.hostile import ATTACKS

CANNOT_BE_SIGNED = {"superblock_at_0", "first_line_of_the_future"}


@pytest.fixture
def hostile(request: pytest.FixtureRequest, small_release: Release, tmp_path: Path) -> bytearray:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(SECRET)
    return bytearray(ATTACKS[request.param].make(bytes(serialise(small_release)), secret))


@pytest.mark.parametrize("signer", ["a stranger", "nobody", "this machine"])
@pytest.mark.parametrize(
    ("hostile", "name"), [(name, name) for name in ATTACKS], indirect=["hostile"]
)
def test_the_attack_is_refused(hostile: bytearray, name: str, signer: str, tmp_path: Path) -> None:
    """By a child process, or in this one where this machine has signed (which it never would)."""
    if signer != "nobody" and name not in CANNOT_BE_SIGNED:
        key = own_key() if signer == "this machine" else make_key(tmp_path / "stranger")
        if signer == "a stranger":
            add("stranger", key.public)
        sign_file(memoryview(hostile), key)
    path = tmp_path / "release.h5"
    path.write_bytes(hostile)
    start = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FormatError) as caught:
        open_release(path, Acceptance(allow_unsigned=signer == "nobody"))
    assert ATTACKS[name].words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert time.monotonic() - start < 30
    # in KiB: neither a bomb nor a declared size was made room for
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 18


def in_a_limited_process(program: str) -> subprocess.CompletedProcess[str]:
    prelude = (
        "import os, resource, sys, numpy, h5py\nfrom dpntk.common.storage.sandbox import limit\n"
    )
    return subprocess.run(
        [sys.executable, "-c", f"{prelude}limit()\n{program}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("os.open('/etc/hostname', os.O_RDONLY)", "Too many open files"),
        ("os.open('.', os.O_RDONLY)", "Too many open files"),
        ("numpy.ones(1 << 30)", "MemoryError"),
        ("os.pipe()", "Too many open files"),
        ("resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))", "ValueError"),
        ("assert resource.getrlimit(resource.RLIMIT_CPU)[0] > 10", "AssertionError"),
    ],
)
def test_the_limited_process_cannot_open_files_or_use_much_memory(program: str, words: str) -> None:
    refused = in_a_limited_process(program)
    assert refused.returncode == 1
    assert words in refused.stderr


def test_an_honest_file_does_not_need_more(small_release: Release) -> None:
    body = read_in_child(bytes(serialise(small_release)))
    assert (body.arrays["embedding"] == small_release.embedding).all()
