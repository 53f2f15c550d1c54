"""Thousands of random mutations: no crash of the main process, no error but dpntk's own.

DPNTK_MUTATIONS says how many of each kind.
"""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpntk.common.errors import ReleaseError
from dpntk.common.storage.container import USER_BLOCK
from dpntk.release import Release, open_release, own_key
from dpntk.release.publishing.pipeline import write_release
from tests.attacks.files.fuzz import KINDS
from tests.attacks.files.mutations import of_bytes
from tests.helpers.processes import overwrite

MUTATIONS = int(os.environ.get("DPNTK_MUTATIONS", "2000"))
ROOT = Path(__file__).parents[3]


def test_mutations_of_a_signed_file_are_refused(small_release: Release, tmp_path: Path) -> None:
    path = tmp_path / "release.h5"
    write_release(small_release, path, own_key())
    content = path.read_bytes()
    random = np.random.default_rng(0)
    for _ in range(MUTATIONS):
        changed = of_bytes(content, random, USER_BLOCK)
        if changed != content:
            overwrite(path, changed)
            with pytest.raises(ReleaseError):
                open_release(path)


def test_mutations_do_no_harm() -> None:
    """Of releases and distilled sets, as if a trusted stranger had signed them afterwards.

    Some mutations change nothing that matters, such as a bit of the matrix: they are opened.
    """
    # one process for all kinds: to load what reads them takes as long as thousands of mutations
    command = [sys.executable, "-m", "tests.attacks.files.fuzz", str(MUTATIONS), "0"]
    finished = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert finished.returncode == 0
    found_of = json.loads(finished.stdout)
    assert set(found_of) == set(KINDS)
    for kind, found in found_of.items():
        # in KiB, what a process needs that has loaded everything included
        assert found.pop("peak") < 1 << 20, kind
        outcomes: collections.Counter[str] = collections.Counter(found)
        assert outcomes.total() == MUTATIONS, kind
        assert outcomes["LEAKED"] == 0, kind
        assert outcomes["refused"] + outcomes["refused by the child"] > MUTATIONS / 4, kind
        assert outcomes["opened"] > 0, kind
        if kind in ("release", "distilled", "embedding"):
            assert outcomes["refused by the child"] > MUTATIONS / 4, kind
