"""How many records are made by default, and what the command line calls arguments."""

from __future__ import annotations

from typing import Final

from ..common.arguments import argument

MOST_IMAGES: Final = 60_000
"""How many images are made by default; fewer if the release was made from fewer."""
MOST_ROWS: Final = 1_000_000
"""Likewise, rows of a table."""
_OPTIONS: Final = {"count": "--records", "learning_rate": "--lr"}
"""Command-line options whose names differ from those of the arguments."""


def option(name: str) -> str:
    """An argument as whoever called it knows it: by its own name, or by that of its option."""
    return argument(name, option=_OPTIONS.get(name, ""))
