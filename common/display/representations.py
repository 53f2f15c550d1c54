"""The `repr` of dataclasses that hold records or have many options."""

from __future__ import annotations

from dataclasses import MISSING, fields
from enum import Enum
from typing import Any


class RedactedRepr:
    """A dataclass whose `repr` shows no values; declare it with `repr=False`.

    Output in a console, a log or a traceback leaves the owner's hands more easily than a file. So
    an array is shown by its type and shape, and everything else by its type alone.
    """

    def __repr__(self) -> str:
        entries: tuple[Any, ...] = fields(self)  # type: ignore[arg-type]  # of a dataclass
        said = (f"{entry.name}={_redacted(getattr(self, entry.name))}" for entry in entries)
        return f"{type(self).__name__}({', '.join(said)})"


def _redacted(value: object) -> str:
    if isinstance(value, RedactedRepr):
        return repr(value)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        return type(value).__name__
    return f"{dtype} {tuple(shape)}"


class BriefRepr:
    """A dataclass whose `repr` leaves out defaults; declare it with `repr=False`."""

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
