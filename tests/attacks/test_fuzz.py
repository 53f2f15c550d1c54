"""Thousands of random mutations: no crash of the main process, no other error than a ReleaseError.

`.ci/run` tries 20,000 of each kind; by default there are fewer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpntk.common.errors import ReleaseError
from dpntk.release import Release, open_release, own_key
from dpntk.release.publishing import write_release
from dpntk.release.writer import serialise
from tests.attacks.fuzz import mutate

MUTATIONS = int(os.environ.get("DPNTK_MUTATIONS", "2000"))
ROOT = Path(__file__).parent.parent.parent


def test_mutations_of_a_signed_file_are_refused(small_release: Release, tmp_path: Path) -> None:
    path = tmp_path / "release.h5"
    write_release(small_release, path, own_key())
    content = path.read_bytes()
    random = np.random.default_rng(0)
    for _ in range(MUTATIONS):
        changed = mutate(content, random)
        if changed != content:
            path.write_bytes(changed)
            with pytest.raises(ReleaseError):
                open_release(path)


def test_mutations_that_were_signed_afterwards_do_no_harm(
    small_release: Release, tmp_path: Path
) -> None:
    """As a trusted stranger's: parsed in a process that may end as it likes.

    Some mutations change nothing that matters, such as a bit of the matrix: they are opened.
    """
    path = tmp_path / "release.h5"
    path.write_bytes(serialise(small_release))
    command = [sys.executable, "-m", "tests.attacks.fuzz", str(path), str(MUTATIONS // 2)]
    running = [
        subprocess.Popen([*command, str(seed)], cwd=ROOT, stdout=subprocess.PIPE)
        for seed in range(2)
    ]
    outcomes: dict[str, int] = {}
    for process in running:
        result, _ = process.communicate()
        assert process.returncode == 0
        for outcome, count in json.loads(result).items():
            outcomes[outcome] = outcomes.get(outcome, 0) + count
    assert sum(outcomes.values()) == MUTATIONS // 2 * 2
    assert "LEAKED" not in outcomes
    assert outcomes["refused by the child"] > MUTATIONS / 2
    assert 0 < outcomes["opened"] < MUTATIONS / 4
