"""The data that benchmarks are given by name: what is missing is said before anything runs."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from benchmarks.material.named import named_folder, named_table


def test_what_is_named_is_found(tmp_path: Path) -> None:
    assert named_folder(f"MNIST={tmp_path}") == ("MNIST", tmp_path)
    assert named_table(f"Adult={tmp_path}:income") == ("Adult", f"{tmp_path}:income")


def test_paths_may_hold_the_separators(tmp_path: Path) -> None:
    odd = tmp_path / "a=b:c"
    odd.mkdir()
    assert named_folder(f"MNIST={odd}") == ("MNIST", odd)
    assert named_table(f"Adult={odd}:income") == ("Adult", f"{odd}:income")


@pytest.mark.parametrize("text", ["", "MNIST", "=folder", "MNIST="])
def test_a_folder_without_name_or_path_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not NAME=FOLDER"):
        named_folder(text)


@pytest.mark.parametrize("text", ["", "Adult", "Adult=rows", "=rows:income", "Adult=rows:"])
def test_a_table_without_name_path_or_label_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not NAME=PATH:LABEL"):
        named_table(text)


def test_what_is_not_there_is_refused_before_anything_runs(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(argparse.ArgumentTypeError, match=r"missing does not exist$"):
        named_folder(f"MNIST={missing}")
    with pytest.raises(argparse.ArgumentTypeError, match=r"missing does not exist$"):
        named_table(f"Adult={missing}:income")
