"""What is opened may come from anybody: regular files only, of a size that was agreed to."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from dpntk.common.errors import GeneratorError, ReleaseError
from dpntk.common.storage import untrusted_files


def test_a_file_and_a_link_to_it_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert untrusted_files.read(tmp_path / "file", 7, refusal=ReleaseError) == b"content"
    assert untrusted_files.read(tmp_path / "link", 7, refusal=ReleaseError) == b"content"


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path.name)


def a_link_to_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def nothing(path: Path) -> None:
    pass


def below_a_file(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_bytes(b"")


def a_sparse_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def what_grows(path: Path) -> None:
    """Its size is 0, and it has contents."""
    path.symlink_to("/proc/self/status")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Path.mkdir, "this is a folder; give a file"),
        (a_pipe, "not a regular file"),
        (a_socket, "No such device"),
        (a_link_to_zeros, "not a regular file"),
        (a_link_to_itself, "symbolic links"),
        (nothing, "there is no such file; make one"),
        (below_a_file, "there is no such file; make one"),
        (a_sparse_file, "1,099,511,627,776 bytes, where 1,000 are the most that is read"),
        (what_grows, "longer than its size"),
    ],
)
def test_anything_else_is_refused_at_once(
    make: Callable[[Path], None], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "in" / "file"
    path.parent.mkdir()
    monkeypatch.chdir(path.parent)  # names of sockets are short
    make(path)
    with pytest.raises(GeneratorError) as caught:
        untrusted_files.read(path, 1000, refusal=GeneratorError, hint="make one")
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)


def test_the_open_file_is_looked_at_and_not_what_has_taken_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.symlink_to("/dev/zero")
    really_open = os.open

    def exchanged(name: str, flags: int) -> int:
        descriptor = really_open(name, flags)
        path.unlink()
        path.write_bytes(b"small")
        return descriptor

    monkeypatch.setattr(os, "open", exchanged)
    with pytest.raises(ReleaseError, match="not a regular file"):
        untrusted_files.read(path, 5, refusal=ReleaseError)


def test_failures_while_a_file_is_open_are_one_line_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    with (
        pytest.raises(ReleaseError, match="file: Input/output error"),
        untrusted_files.opened(tmp_path / "file", None, refusal=ReleaseError),
    ):
        raise OSError(5, os.strerror(5))
