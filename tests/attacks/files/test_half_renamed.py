"""Whatever stops a command at its end, the old or the new result is there, and no litter."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dpntk.common.storage.atomic import write_atomically
from dpntk.common.storage.folders import folder_appearing_whole, require_replaceable_folder
from dpntk.common.storage.synthetic_folder import PROVENANCE
from tests.conftest import Command, refused

AGAIN = ("generate", "--from", "sampler", "-n", "9")


@pytest.fixture
def earlier(dpntk: Command, folder: Path, tmp_path: Path) -> str:
    """What the provenance of an earlier result in `synthetic` says; its generator is `sampler`."""
    dpntk("embed", folder, "--width", "5")
    dpntk("release", "--eps", "1")
    assert dpntk("generate", "--steps", "2", "-n", "40").code == 0
    (tmp_path / "sampler").mkdir()
    generator = tmp_path / "synthetic" / "generator.safetensors"
    generator.rename(tmp_path / "sampler" / generator.name)
    return said(tmp_path)


def said(folder: Path) -> str:
    return (folder / "synthetic" / PROVENANCE).read_text()


def litter(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.endswith((".tmp", ".old"))]


def failing(when: range, failure: BaseException) -> Callable[..., None]:
    """`os.rename` that fails at some of its calls, counted from 1."""
    really, calls = os.rename, 0

    def rename(source: Path, target: Path) -> None:
        nonlocal calls
        calls += 1
        if calls in when:
            raise failure
        really(source, target)

    return rename


def killed_at_its_second(function: str, *arguments: str, cwd: Path) -> None:
    """Run a command that is killed at its second call of a function of `os`."""
    program = f"""
import os, signal, sys
from dpntk.common.cli.app import run
really, calls = os.{function}, 0
def {function}(*arguments):
    global calls
    calls += 1
    if calls == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return really(*arguments)
os.{function} = {function}
sys.exit(run(sys.argv[1:]))
"""
    finished = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=cwd, capture_output=True, check=False
    )
    assert finished.returncode == -signal.SIGKILL


@pytest.mark.parametrize("failure", [OSError(39, "Directory not empty"), KeyboardInterrupt()])
@pytest.mark.parametrize("rename", [1, 2])
def test_a_rename_that_fails_leaves_the_earlier_result(
    dpntk: Command,
    earlier: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rename: int,
    failure: BaseException,
) -> None:
    with monkeypatch.context() as planted:
        planted.setattr(os, "rename", failing(range(rename, rename + 1), failure))
        stopped = dpntk(*AGAIN)
    assert stopped.code != 0
    assert said(tmp_path) == earlier
    assert litter(tmp_path) == []


def test_an_earlier_result_that_cannot_be_put_back_is_by_the_next_command(
    dpntk: Command, earlier: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as planted:
        planted.setattr(os, "rename", failing(range(2, 99), OSError(5, "Input/output error")))
        refused(dpntk(*AGAIN), "synthetic: Input/output error")
    assert not (tmp_path / "synthetic").exists()
    refused(dpntk("generate", "nowhere.h5"), "nowhere.h5")  # whatever becomes of it
    assert said(tmp_path) == earlier
    assert litter(tmp_path) == []


def test_killed_between_two_renames(dpntk: Command, earlier: str, tmp_path: Path) -> None:
    killed_at_its_second("rename", *AGAIN, cwd=tmp_path)
    assert not (tmp_path / "synthetic").exists()
    refused(dpntk("generate", "nowhere.h5"), "nowhere.h5")
    assert said(tmp_path) == earlier
    assert litter(tmp_path) == []


def test_killed_while_writing_a_folder(dpntk: Command, earlier: str, tmp_path: Path) -> None:
    killed_at_its_second("fsync", *AGAIN, cwd=tmp_path)
    assert said(tmp_path) == earlier
    assert len(litter(tmp_path)) == 1
    assert dpntk(*AGAIN).code == 0
    assert said(tmp_path) != earlier
    assert litter(tmp_path) == []


def test_a_result_that_took_its_place_stays_there(tmp_path: Path) -> None:
    """Killed afterwards, while the earlier one was deleted: nothing is put back."""
    path, work = tmp_path / "results", tmp_path / ".results.0123.tmp"
    (work / "old").mkdir(parents=True)
    require_replaceable_folder(path, marker="ours", ours=("ours",))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [("release", "--eps", "1"), ("schema", "a.csv")])
def test_killed_while_writing_a_file(
    dpntk: Command, earlier: str, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n")
    written = {"release": "release.h5", "schema": "schema.toml"}[command[0]]
    leftover = tmp_path / f".{written}.0123456789abcdef.tmp"
    leftover.write_bytes(b"cut short")
    more = ("--compose", "--overwrite") if command[0] == "release" else ()
    made = dpntk(*command, *more)
    assert made.code == 0, made.stderr
    assert litter(tmp_path) == []


def test_a_writer_that_lives_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "results"
    with folder_appearing_whole(path, marker="ours", ours=("ours",)) as folder:
        (folder / "ours").write_text("the first")
        with folder_appearing_whole(path, marker="ours", ours=("ours",)) as other:
            (other / "ours").write_text("the second")
        assert (path / "ours").read_text() == "the second"
    assert (path / "ours").read_text() == "the first"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("still", [True, False], ids=["still held", "gone"])
def test_a_file_that_is_taken_for_stale_too_early_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, still: bool
) -> None:
    """Between its creation and its lock, another writer of the same file clears up."""
    path, really, stolen = tmp_path / "result", os.open, list[int]()

    def opening(name: Path, flags: int, mode: int = 0o777) -> int:
        descriptor = really(name, flags, mode)
        if flags & os.O_EXCL and not stolen:
            stolen.append(really(name, os.O_RDWR))
            fcntl.flock(stolen[0], fcntl.LOCK_EX if still else fcntl.LOCK_UN)
            os.unlink(name)
        return descriptor

    monkeypatch.setattr(os, "open", opening)
    write_atomically(path, b"whole")
    os.close(stolen[0])
    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]


def test_what_only_looks_like_a_leftover_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, elsewhere = tmp_path / "results", tmp_path / "elsewhere"
    (elsewhere / "old").mkdir(parents=True)
    (elsewhere / "new").mkdir()
    (tmp_path / ".results.link.tmp").symlink_to(elsewhere)
    (tmp_path / ".results.mine.tmp" / "notes").mkdir(parents=True)
    os.mkfifo(tmp_path / ".results.pipe.tmp")
    before = sorted(tmp_path.rglob("*"))
    require_replaceable_folder(path, marker="ours", ours=("ours",))
    assert sorted(tmp_path.rglob("*")) == before
    (tmp_path / ".results.theirs.tmp" / "old").mkdir(parents=True)
    (tmp_path / ".results.theirs.tmp" / "new").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    require_replaceable_folder(path, marker="ours", ours=("ours",))
    assert (tmp_path / ".results.theirs.tmp" / "old").exists()
    assert not path.exists()


@pytest.mark.parametrize("name", [".", "here"])
def test_a_folder_that_cannot_be_replaced_is_refused_before_anything_is_read(
    dpntk: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    output = tmp_path / "here" if name == "here" else Path(name)
    words = f"{output} is no folder that can be replaced: name one in it with -o"
    refused(dpntk("generate", "nowhere.h5", "-o", output), words)
