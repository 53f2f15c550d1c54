"""Which files of a folder are read, and where a range of records lies in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpntk.common.errors import DataError
from dpntk.common.sources.shards import find_shards, overlaps


def names(folder: Path, split: str = "train") -> list[str]:
    return [file.name for file in find_shards(folder, ".tar", split)]


def fill(folder: Path, *files: str) -> Path:
    for file in files:
        (folder / file).touch()
    return folder


def test_files_of_one_kind_in_the_order_of_their_names(tmp_path: Path) -> None:
    fill(tmp_path, "b-2.tar", "b-10.tar", "a.TAR", ".hidden.tar", "c.tar.gz", "d.txt")
    (tmp_path / "folder.tar").mkdir()
    assert names(tmp_path) == ["a.TAR", "b-10.tar", "b-2.tar"]
    assert names(tmp_path, "test") == ["a.TAR", "b-10.tar", "b-2.tar"]


def test_splits_are_told_by_the_beginnings_of_names(tmp_path: Path) -> None:
    fill(tmp_path, "train-0.tar", "Train_1.tar", "test.tar", "validation-0.tar")
    assert names(tmp_path) == ["Train_1.tar", "train-0.tar"]
    assert names(tmp_path, "test") == ["test.tar"]
    with pytest.raises(DataError, match=r"trainer.tar is of no split, but Train_1.tar is"):
        names(fill(tmp_path, "trainer.tar"))


def test_numbers_may_begin_at_0_or_1_and_have_no_gap(tmp_path: Path) -> None:
    fill(tmp_path, *(f"zero-{n:02}-of-12.tar" for n in range(12)))
    fill(tmp_path, *(f"one-{n}-of-3.tar" for n in (1, 2, 3)))
    assert len(names(tmp_path)) == 15
    (tmp_path / "zero-07-of-12.tar").unlink()
    with pytest.raises(DataError, match=r"number 7 of zero-...-of-12.tar is missing: fetch it"):
        names(tmp_path)


def test_a_name_may_announce_any_number(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="number 1 of"):
        names(fill(tmp_path, "a-0-of-99999999999999999999.tar"))


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        (0, 12, [(0, 0, 5), (2, 0, 4), (3, 0, 3)]),
        (4, 10, [(0, 4, 5), (2, 0, 4), (3, 0, 1)]),
        (5, 9, [(2, 0, 4)]),
        (6, 7, [(2, 1, 2)]),
        (3, 3, []),
        (12, 12, []),
    ],
)
def test_where_a_range_lies(start: int, stop: int, expected: list[tuple[int, int, int]]) -> None:
    assert list(overlaps((5, 0, 4, 3), start, stop)) == expected
