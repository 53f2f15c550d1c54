"""The names of classes, for records of any kind."""

from __future__ import annotations

from typing import Final

from ..display.text import counted

MOST_CLASSES: Final = 10_000


def numbered(count: int) -> tuple[str, ...]:
    """The default names of classes: "0", "1", ..."""
    return tuple(map(str, range(count)))


def some_classes(names: tuple[str, ...]) -> str:
    """The number of classes and the first names, in words."""
    many = counted(len(names), "class", "classes")
    return f"{many}: {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}"
