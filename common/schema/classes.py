"""Names of classes, of whatever records."""

from __future__ import annotations

from typing import Final

from ..display.text import counted

MOST_CLASSES: Final = 10_000


def numbered(count: int) -> tuple[str, ...]:
    """The names of classes that have none: "0", "1", ..."""
    return tuple(map(str, range(count)))


def some_classes(names: tuple[str, ...]) -> str:
    """How many classes there are, and what the first ones are called."""
    many = counted(len(names), "class", "classes")
    return f"{many}: {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}"
