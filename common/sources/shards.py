"""Data sets in several files."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ..errors import DataError
from .paths import AnyPath

_SPLITS: Final = {"train": ("train",), "test": ("test", "t10k")}
_SPLIT_NAME: Final = re.compile(r"(train|test|t10k|validation|valid|val|dev)(?![a-z])", re.I)
_NUMBERED: Final = re.compile(r"(?P<stem>.*?)(?P<number>\d+)-of-(?P<count>\d+)\b")


def find_shards(folder: AnyPath, suffix: str, split: str) -> tuple[AnyPath, ...]:
    """The files of a kind in a folder, sorted by name; only those of the split, if names tell.

    Files whose names begin with `train` or `test` belong to that split alone, and then all names
    must begin so. If none does, the folder is taken to hold one split only.

    Args:
        folder: the folder; its subfolders are not searched.
        suffix: the suffix of the wanted files, with its dot.
        split: "train" or "test".

    Raises:
        DataError: no file is of this split, some are of no split, or some of `-00003-of-00010` are
            missing.
    """
    files = sorted(
        (file for file in folder.iterdir() if _is_shard(file, suffix)),
        key=lambda file: os.fsencode(file.name),
    )
    named = {file: match[1].lower() for file in files if (match := _SPLIT_NAME.match(file.name))}
    if named:
        if stray := next((file.name for file in files if file not in named), None):
            raise DataError(
                f"{folder}: {stray} is of no split, but {next(iter(named)).name} is: begin its "
                f"name with {split}, or put it elsewhere"
            )
        files = [file for file in files if named.get(file) in _SPLITS[split]]
        if not files:
            found = ", ".join(sorted(set(named.values())))
            raise DataError(f"{folder}: no {suffix} file of the {split} split, only of {found}")
    require_all(folder, files)
    return tuple(files)


def holds_shards(folder: AnyPath, suffix: str) -> bool:
    """Whether a folder holds files of a kind."""
    return any(_is_shard(file, suffix) for file in folder.iterdir())


def overlaps(counts: Sequence[int], start: int, stop: int | None) -> Iterator[tuple[int, int, int]]:
    """The places of records start..stop-1 in parts that hold `counts` records; all if None.

    Yields:
        The index of a part, and the start and stop of its own records among them.
    """
    stop = sum(counts) if stop is None else stop
    for index, (begin, end) in enumerate(itertools.pairwise((0, *itertools.accumulate(counts)))):
        if max(begin, start) < min(end, stop):
            yield index, max(begin, start) - begin, min(end, stop) - begin


def pieces(
    counts: Sequence[int], start: int, stop: int | None, size: int
) -> Iterator[tuple[int, int, int]]:
    """The same, in pieces of at most `size` records."""
    for index, begin, end in overlaps(counts, start, stop):
        for first in range(begin, end, size):
            yield index, first, min(first + size, end)


def require_all(folder: AnyPath, files: Iterable[AnyPath]) -> None:
    """Refuse a folder that lacks a file announced by the names of others.

    Raises:
        DataError: `-00003-of-00010` exists, but not all ten do.
    """
    found: dict[tuple[str, str, str], set[int]] = {}
    for file in files:
        if match := _NUMBERED.match(file.name):
            rest = file.name[match.end() :]
            found.setdefault((match["stem"], match["count"], rest), set()).add(int(match["number"]))
    for (stem, count, rest), numbers in found.items():
        first = 1 if int(count) in numbers else 0  # some count from 1
        missing = (n for n in range(first, first + int(count)) if n not in numbers)
        if (number := next(missing, None)) is not None:
            raise DataError(
                f"{folder}: number {number} of {stem}...-of-{count}{rest} is missing: fetch it, or "
                "rename the others if they are all that there is"
            )


def _is_shard(file: AnyPath, suffix: str) -> bool:
    return file.name[0] != "." and file.name.lower().endswith(suffix) and file.is_file()
