"""Somebody who can write into the folder has put a link, a pipe or a folder where ours will be."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Command, refused

LOCK = ".dpntk.lock"
Trap = Callable[[Path, Path], None]


def _link_to_nothing(lock: Path, elsewhere: Path) -> None:
    lock.symlink_to(elsewhere / "made")


def _link_to_a_file(lock: Path, elsewhere: Path) -> None:
    (elsewhere / "file").touch()
    lock.symlink_to(elsewhere / "file")


def _pipe(lock: Path, elsewhere: Path) -> None:
    os.mkfifo(lock)


TRAPS = (_link_to_nothing, _link_to_a_file, _pipe)


@pytest.fixture
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that no command is told of."""
    return tmp_path_factory.mktemp("elsewhere")


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize(
    "command",
    [
        ("embed", "images", "--width", "5"),
        ("release", "--eps", "1"),
        ("merge", "embedding.h5", "embedding.h5", "-o", "all.h5"),
        ("distill", "images", "--eps", "1"),
    ],
    ids=lambda command: command[0],
)
def test_no_lock_leads_out_of_the_folder(
    dpntk: Command,
    folder: Path,
    tmp_path: Path,
    elsewhere: Path,
    command: tuple[str, ...],
    trap: Trap,
) -> None:
    dpntk("keygen")
    assert dpntk("embed", folder, "--width", "5").code == 0
    (tmp_path / LOCK).unlink()
    trap(tmp_path / LOCK, elsewhere)
    before = sorted(elsewhere.iterdir())
    more = ("--overwrite",) if command[0] == "embed" else ()
    refused(dpntk(*command, *more), LOCK, "remove it")
    assert sorted(elsewhere.iterdir()) == before


@pytest.mark.parametrize("trap", TRAPS)
def test_nor_out_of_the_configuration(
    dpntk: Command, configuration: Path, tmp_path: Path, elsewhere: Path, trap: Trap
) -> None:
    assert dpntk("keygen", "-o", tmp_path / "theirs").code == 0
    configuration.mkdir(exist_ok=True)
    (configuration / LOCK).unlink(missing_ok=True)
    trap(configuration / LOCK, elsewhere)
    before = sorted(elsewhere.iterdir())
    refused(dpntk("trust", "add", "them", tmp_path / "theirs.pub"), LOCK, "remove it")
    assert sorted(elsewhere.iterdir()) == before
    assert not (configuration / "allowed_signers").exists()


keeps_progress = pytest.mark.parametrize(
    ("command", "work"),
    [
        (("embed", "images", "--width", "5"), ".embedding.h5.work"),
        (("distill", "images", "--eps", "1"), ".release.h5.distill"),
    ],
)
"""Commands that keep their progress, and the folder where they do."""


@keeps_progress
def test_progress_is_kept_where_it_belongs(
    dpntk: Command,
    folder: Path,
    tmp_path: Path,
    elsewhere: Path,
    command: tuple[str, ...],
    work: str,
) -> None:
    """A checkpoint holds exact sums."""
    dpntk("keygen")
    (tmp_path / work).symlink_to(elsewhere)
    refused(dpntk(*command), work, "remove it")
    assert list(elsewhere.iterdir()) == []
    (tmp_path / work).unlink()
    (tmp_path / work).mkdir()
    (tmp_path / work / "lock").symlink_to(elsewhere / "made")
    refused(dpntk(*command), f"{work}/lock", "remove it")
    assert list(elsewhere.iterdir()) == []


@keeps_progress
def test_progress_is_not_kept_where_another_user_could_exchange_it(
    dpntk: Command,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    work: str,
) -> None:
    """The folder is there before the command, for everybody to write to."""
    dpntk("keygen")
    (tmp_path / work).mkdir()
    (tmp_path / work).chmod(0o777)
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        refused(dpntk(*command), f"{work} is another user's", "remove it")
    assert list((tmp_path / work).iterdir()) == []


def test_what_a_killed_writer_seems_to_have_left_is_not_followed(
    dpntk: Command, folder: Path, tmp_path: Path, elsewhere: Path
) -> None:
    (elsewhere / "theirs").write_bytes(b"theirs")
    traps = [tmp_path / f".embedding.h5.{name}.tmp" for name in ("link", "pipe")]
    traps[0].symlink_to(elsewhere / "theirs")
    os.mkfifo(traps[1])
    assert dpntk("embed", folder, "--width", "5").code == 0
    assert (elsewhere / "theirs").read_bytes() == b"theirs"
    assert all(trap.is_symlink() or trap.is_fifo() for trap in traps)
