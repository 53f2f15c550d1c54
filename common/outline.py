"""How objects show themselves: what holds records by its shape, what has many options briefly."""

from __future__ import annotations

from dataclasses import MISSING, fields
from enum import Enum
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


class Terse:
    """A dataclass whose `repr` leaves out what nobody said; declare it with `repr=False`."""

    def __repr__(self) -> str:
        entries: tuple[Any, ...] = fields(self)  # type: ignore[arg-type]  # of a dataclass
        said = []
        for entry in entries:
            made = entry.default_factory is not MISSING
            value = getattr(self, entry.name)
            if value != (entry.default_factory() if made else entry.default):
                text = str(value) if isinstance(value, Enum) else repr(value)
                said.append(f"{entry.name}={text}")
        return f"{type(self).__name__}({', '.join(said)})"
