"""Data as benchmarks are given them: NAME=FOLDER, or NAME=PATH:LABEL of tables."""

from __future__ import annotations

import argparse
from pathlib import Path


def named_folder(text: str) -> tuple[str, Path]:
    """The name and the folder of NAME=FOLDER, for argparse.

    Raises:
        argparse.ArgumentTypeError: it is written otherwise, or there is no such folder.
    """
    name, _, path = text.partition("=")
    if not (name and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=FOLDER")
    if not Path(path).exists():
        raise argparse.ArgumentTypeError(f"{path} does not exist")
    return name, Path(path)


def named_table(text: str) -> tuple[str, str]:
    """The name, and file or folder with the column to predict, of NAME=PATH:LABEL, for argparse.

    Raises:
        argparse.ArgumentTypeError: it is written otherwise, or there is no such file or folder.
    """
    name, _, place = text.partition("=")
    path, _, label = place.rpartition(":")
    if not (name and path and label):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PATH:LABEL")
    if not Path(path).exists():
        raise argparse.ArgumentTypeError(f"{path} does not exist")
    return name, place
