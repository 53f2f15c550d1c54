"""Under torchrun itself: one file comes out, also when a process is killed and started again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from tests.helpers.processes import embed_arguments, embed_in_a_child, write_records

KILLS = int(os.environ.get("DPNTK_KILLS", "1"))
"""How many times a process is killed; to start anew takes some five seconds."""
BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[3]
IMAGES = 240_000
CHECKPOINTS = 3
"""How many a process writes before it dies: of some forty, so that a share outlasts ten kills."""
MORTAL = f"""
import os, signal, sys
from dpntk.common.cli.app import run
from tests.helpers.processes import when_called

begun, rank = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), int(os.environ["RANK"])

def stop():
    if rank == begun % 2:
        os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()  # torchrun ends it

if begun < {KILLS}:
    when_called("dpntk.embed.run.worker.save_progress", stop, {CHECKPOINTS}, after=True)
sys.exit(run(sys.argv[1:]))
"""
"""`dpntk`, but after some checkpoints one rank dies, each in its turn, and the other one waits."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_records(tmp_path_factory.mktemp("records") / "data.npz", count=IMAGES)


@pytest.fixture(scope="module")
def undisturbed(data: Path) -> bytes:
    output = data.with_name("undisturbed.h5")
    assert embed_in_a_child(embed_arguments(data, output)) == 0
    return output.read_bytes()


def torchrun(
    arguments: list[str],
    *options: str,
    where: Sequence[str] = ("--standalone",),
    count: int = 2,
    program: Sequence[str | Path] = (BIN / "dpntk",),
) -> subprocess.Popen[str]:
    """Start processes on this machine."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment["PYTHONPATH"] = str(ROOT)
    so_many = [*where, "--nproc-per-node", str(count)]
    return subprocess.Popen(
        [BIN / "torchrun", *so_many, *options, "--no-python", *program, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


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
    assert said.count(f"embedded {IMAGES:,} images") == 1
    assert "Traceback" not in said
    assert {file.name for file in tmp_path.iterdir()} == {".dpntk.lock", "embedding.h5"}


def test_killed_ranks_are_started_again_and_go_on(
    data: Path, undisturbed: bytes, tmp_path: Path
) -> None:
    output = tmp_path / "embedding.h5"
    mortal = (sys.executable, "-c", MORTAL)
    run = torchrun(embed_arguments(data, output), "--max-restarts", str(KILLS), program=mortal)
    _, stderr = run.communicate()
    assert run.returncode == 0, stderr
    assert stderr.count("note: going on after ") >= KILLS
    assert output.read_bytes() == undisturbed
    assert {file.name for file in tmp_path.iterdir()} == {".dpntk.lock", "embedding.h5"}
