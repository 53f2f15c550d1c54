"""How objects that hold records, or sums over them, show themselves: by shape, not by content."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


class Outlined:
    """A dataclass whose `repr` says what it is and not how much; declare it with `repr=False`.

    What is printed in a console, a log or a traceback has left the owner's hands sooner than a file
    has. So of arrays there are type and shape, and of all else the type alone.
    """

    def __repr__(self) -> str:
        entries: tuple[Any, ...] = fields(self)  # type: ignore[arg-type]  # of a dataclass
        said = (f"{entry.name}={_outline(getattr(self, entry.name))}" for entry in entries)
        return f"{type(self).__name__}({', '.join(said)})"


def _outline(value: object) -> str:
    if isinstance(value, Outlined):
        return repr(value)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        return type(value).__name__
    return f"{dtype} {tuple(shape)}"
