"""The names of folders that hold a part of a data set."""

from __future__ import annotations

from typing import Final

_PARTS: Final = frozenset({"train", "test", "val", "valid", "validation", "dev", "eval"})


def names_a_part(name: str) -> bool:
    """Whether a folder of this name, in upper or lower case, may hold a part of a data set."""
    return name.lower() in _PARTS
