"""Results appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpntk.common.errors import OutputError
from dpntk.common.storage.atomic import collect_stale, require_absent, write_atomically
from dpntk.common.storage.folders import folder_appearing_whole, require_replaceable_folder

OURS = ("ours", "first", "second")


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Let no file grow beyond 1 KiB, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_mode_is_set_before_the_file_has_its_name(tmp_path: Path) -> None:
    write_atomically(tmp_path / "secret", b"x", mode=0o600)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_a_full_disk_leaves_the_earlier_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "result"
    write_atomically(path, b"earlier")
    with (
        pytest.raises(
            OutputError, match=r"cannot write .*result: File too large; make room or choose"
        ),
        full_disk(),
    ):
        write_atomically(path, bytes(4096))
    assert path.read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_earlier_folder_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "results"
    with folder_appearing_whole(path, marker="ours", ours=OURS) as folder:
        (folder / "ours").write_bytes(b"earlier")
    with (
        pytest.raises(OutputError, match=r"cannot write .*/results: File too large"),
        full_disk(),
        folder_appearing_whole(path, marker="ours", ours=OURS) as folder,
    ):
        (folder / "ours").write_bytes(bytes(4096))
    assert (path / "ours").read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [path]


def test_only_the_temporary_files_of_the_dead_are_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "result[1]"
    (tmp_path / ".result[1].abc.tmp").write_bytes(b"cut short")
    others = [".result1.abc.tmp", ".result[1].tmp", "result[1].abc.tmp", ".result[1].old.abc.txt"]
    for name in others:
        (tmp_path / name).write_bytes(b"of somebody else")
    really = os.fsync
    during: list[list[str]] = []

    def fsync(descriptor: int) -> None:
        collect_stale(path)  # another process, while this one writes
        during.append(sorted(file.name for file in tmp_path.iterdir()))
        really(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomically(path, b"whole")
    assert path.read_bytes() == b"whole"
    (alive,) = set(during[0]) - set(others)
    assert alive.startswith(".result[1].")
    assert alive != ".result[1].abc.tmp"
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([*others, "result[1]"])


def test_an_earlier_result_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "results"
    for name in ("first", "second"):
        with folder_appearing_whole(path, marker="ours", ours=OURS) as folder:
            (folder / "ours").touch()
            (folder / name).touch()
    assert sorted(file.name for file in path.iterdir()) == ["ours", "second"]
    assert list(tmp_path.iterdir()) == [path]


def _link(path: Path) -> None:
    path.symlink_to(path.with_name("ours"))


@pytest.mark.parametrize(
    ("make", "name", "said"),
    [
        (Path.touch, "notes.txt", "notes.txt"),
        (Path.touch, ".hidden", ".hidden"),
        (Path.mkdir, "notes", "notes/"),
        (Path.mkdir, "first", "first/"),
        (_link, "first", "first"),
    ],
    ids=["file", "hidden file", "folder", "folder named like ours", "link named like ours"],
)
def test_an_earlier_result_with_anything_else_in_it_is_left_alone(
    tmp_path: Path, make: Callable[[Path], None], name: str, said: str
) -> None:
    path = tmp_path / "results"
    path.mkdir()
    (path / "ours").touch()
    (path / "zebra").touch()  # the first one is named
    make(path / name)
    before = sorted(tmp_path.rglob("*"))
    message = (
        f"{path} holds more than an earlier result, such as {said}: move it, or choose "
        "another folder"
    )
    with pytest.raises(OutputError) as early:
        require_replaceable_folder(path, marker="ours", ours=OURS)
    with pytest.raises(OutputError) as late, folder_appearing_whole(path, marker="ours", ours=OURS):
        pytest.fail("nothing need be made")
    assert str(early.value) == str(late.value) == message
    assert sorted(tmp_path.rglob("*")) == before


def test_what_is_put_there_while_a_result_is_made_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "results"
    with folder_appearing_whole(path, marker="ours", ours=OURS) as folder:
        (folder / "ours").write_text("earlier")

    def replace() -> None:
        with folder_appearing_whole(path, marker="ours", ours=OURS) as folder:
            (folder / "ours").write_text("later")
            (path / "notes.txt").write_text("mine")

    with pytest.raises(OutputError, match=r"than an earlier result, such as notes\.txt: move it"):
        replace()
    assert (path / "ours").read_text() == "earlier"
    assert (path / "notes.txt").read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


def test_names_like_ours_are_no_earlier_result(tmp_path: Path) -> None:
    (tmp_path / "second").touch()
    with pytest.raises(OutputError, match="such as second: move it"):
        require_replaceable_folder(tmp_path, marker="ours", ours=OURS)


def test_other_peoples_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="is a file"):
        require_replaceable_folder(tmp_path / "file", marker="ours", ours=OURS)
    with pytest.raises(OutputError, match="more than an earlier result"):
        require_replaceable_folder(tmp_path, marker="ours", ours=OURS)
    with pytest.raises(OutputError, match="already exists and matters"):
        require_absent(tmp_path / "file", overwrite=False, cost="matters", begins=b"")
    require_absent(tmp_path / "file", overwrite=True, cost="matters", begins=b"ours")


def test_only_files_of_the_same_kind_are_overwritten(tmp_path: Path) -> None:
    (tmp_path / "ours").write_bytes(b"ours: 1")
    require_absent(tmp_path / "ours", overwrite=True, cost="", begins=b"ours: ")
    for path in (tmp_path / "ours", Path(os.devnull)):
        with pytest.raises(OutputError, match="another kind of file"):
            require_absent(path, overwrite=True, cost="", begins=b"theirs: ")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="nowhere is not a folder"):
        require_absent(tmp_path / "nowhere" / "file", overwrite=False, cost="", begins=b"")


def test_a_place_that_cannot_even_be_looked_at_is_named(tmp_path: Path) -> None:
    path = tmp_path / ("long" * 100)
    with pytest.raises(
        OutputError, match=r"cannot write .*File name too long; choose another place"
    ):
        require_absent(path, overwrite=True, cost="", begins=b"")
    with pytest.raises(OutputError, match=r"cannot write .*File name too long"):
        require_absent(path / "file", overwrite=True, cost="", begins=b"")
    with pytest.raises(OutputError, match=r"cannot write .*File name too long"):
        require_replaceable_folder(path, marker="ours", ours=OURS)
