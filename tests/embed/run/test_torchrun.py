"""Under torchrun itself: one file comes out, also when a process is killed and started again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from tests.helpers.processes import embed_arguments, embed_in_a_child, write_records

KILLS = int(os.environ.get("DPNTK_KILLS", "1"))
"""How many times a process is killed; to start anew takes some five seconds."""
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_records(tmp_path_factory.mktemp("records") / "data.npz", count=1_200_000)


@pytest.fixture(scope="module")
def undisturbed(data: Path) -> bytes:
    output = data.with_name("undisturbed.h5")
    assert embed_in_a_child(embed_arguments(data, output)) == 0
    return output.read_bytes()


def torchrun(
    arguments: list[str], *options: str, where: Sequence[str] = ("--standalone",), count: int = 2
) -> subprocess.Popen[str]:
    """Start processes on this machine."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    so_many = [*where, "--nproc-per-node", str(count)]
    return subprocess.Popen(
        [BIN / "torchrun", *so_many, *options, "--no-python", BIN / "dpntk", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def process_of(rank: int, parent: int) -> int | None:
    """The id of torchrun's child with that rank, if it has one."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            status = (folder / "stat").read_text().rpartition(")")[2].split()
            variables = (folder / "environ").read_bytes().split(b"\0")
            if int(status[1]) == parent and f"RANK={rank}".encode() in variables:
                return int(folder.name)
    return None


def test_two_nodes_write_the_file_that_one_process_writes(
    data: Path, undisturbed: bytes, tmp_path: Path
) -> None:
    """A torchrun of its own for each, as on two machines that share a folder.

    They meet at a store that outlives both: one that either of them kept would be gone for the
    other once that one is done, of which torchrun complains at length.
    """
    output = tmp_path / "embedding.h5"
    store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    meet = ("--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-conf", "is_host=false")
    where = (*meet, "--rdzv-endpoint", f"localhost:{store.port}", "--rdzv-id", "embed")
    nodes = [torchrun(embed_arguments(data, output), where=where, count=1) for _ in range(2)]
    said = "".join(node.communicate()[1] for node in nodes)
    assert [node.returncode for node in nodes] == [0, 0], said
    assert output.read_bytes() == undisturbed
    assert said.count("embedded 1,200,000 images") == 1
    assert "Traceback" not in said
    assert {file.name for file in tmp_path.iterdir()} == {".dpntk.lock", "embedding.h5"}


def both_started(run: subprocess.Popen[str], earlier: set[int]) -> list[int]:
    """The ids of torchrun's two children, which are not those that there were earlier."""
    while True:
        assert run.poll() is None
        found = [process_of(rank, run.pid) for rank in range(2)]
        processes = [process for process in found if process and process not in earlier]
        if len(processes) == 2:
            return processes
        time.sleep(0.01)


def written(file: Path) -> int | None:
    """When, if it is there."""
    return file.stat().st_mtime_ns if file.exists() else None


def test_killed_ranks_are_started_again_and_go_on(
    data: Path, undisturbed: bytes, tmp_path: Path
) -> None:
    """Every kill is one of the same run, since starting takes longest, and hits whoever counts."""
    random = np.random.default_rng(0)
    output = tmp_path / "embedding.h5"
    shares = tmp_path / ".embedding.h5.work"
    run = torchrun(embed_arguments(data, output), "--max-restarts", str(KILLS))
    earlier: set[int] = set()
    for _ in range(KILLS):
        processes = both_started(run, earlier)
        earlier |= set(processes)
        unlucky = int(random.integers(2))
        if (shares / f"share-{unlucky + 1}-of-2.whole").exists():
            unlucky = 1 - unlucky
        checkpoint = shares / f"share-{unlucky + 1}-of-2.checkpoint"
        before = written(checkpoint)
        while written(checkpoint) == before:
            assert run.poll() is None
            time.sleep(0.01)
        time.sleep(random.uniform(0, 0.2))
        assert process_of(unlucky, run.pid) == processes[unlucky]
        os.kill(processes[unlucky], signal.SIGKILL)
    _, stderr = run.communicate()
    assert run.returncode == 0, stderr
    assert stderr.count("note: going on after ") >= KILLS
    assert output.read_bytes() == undisturbed
    assert {file.name for file in tmp_path.iterdir()} == {".dpntk.lock", "embedding.h5"}
