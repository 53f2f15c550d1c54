"""Folders for the parts of a data set, such as `train` and `test`, beside one another."""

from __future__ import annotations

from ..arguments import argument
from ..display.console import notice
from ..errors import DataError
from ..storage.part_names import names_a_part
from .options import SourceOptions
from .paths import AnyPath


def part_to_read(folder: AnyPath, options: SourceOptions) -> AnyPath:
    """The folder of the wanted part; the folder itself if it has no parts.

    Folders are parts if all of them have such names, in upper or lower case, and are not all of
    them declared to be classes.

    Guarantee:
        No record decides whether others are read: folders with such names beside other folders are
        refused, because removing the only record of such another one, and the folder with it, would
        turn them into parts. (docs/privacy/proofs.md, statement 3.)

    Args:
        folder: a folder that holds no files of a data set itself.
        options: the split, and the names of all classes if they are declared.

    Raises:
        DataError: the part does not exist, or a folder with the name of a part lies beside others.
    """
    found = folders_in(folder)
    parts = [name for name in found if names_a_part(name)]
    if not parts or set(found) <= set(options.class_names or ()):
        return folder
    if parts == found:
        return _chosen(folder, parts, options.split)
    part, other = parts[0], next(name for name in found if name not in parts)
    otherwise = f"if {part} is a class, name all classes with {argument('class_names')}"
    if options.labels is not None:  # folders are no classes
        otherwise = f"to read both, rename {part}"
    raise DataError(
        f"{folder}: {part}/ looks like a part of a data set, but {other}/ beside it does not: "
        f"give {folder / part} to read it alone, or, {otherwise}"
    )


def notice_others(folder: AnyPath, part: AnyPath) -> None:
    """Report which parts of a folder are ignored, beside the one that is read."""
    if others := [name for name in folders_in(folder) if name != part.name]:
        notice(f"read {part}, and passed over {' and '.join(others)} beside it")


def folders_in(folder: AnyPath) -> list[str]:
    """The sorted names of a folder's subfolders, without hidden ones."""
    entries = folder.iterdir()
    return sorted(entry.name for entry in entries if entry.is_dir() and entry.name[0] != ".")


def _chosen(folder: AnyPath, parts: list[str], split: str) -> AnyPath:
    chosen = next((name for name in parts if name.lower() == split), None)
    if chosen is None:
        there = f"there {'is' if len(parts) == 1 else 'are'} {' and '.join(parts)}"
        raise DataError(
            f"{folder}: holds no {split}/; {there}: give the one that is meant, such as "
            f"{folder / parts[-1]}"
        )
    return folder / chosen
