"""How many records are made by default, and what the command line calls arguments."""

from __future__ import annotations

from typing import Final

from ..common.arguments import argument
from ..common.errors import GeneratorError
from ..common.schema.table import TableSchema

MOST_IMAGES: Final = 60_000
"""How many images are made by default; fewer if the release was made from fewer."""
MOST_ROWS: Final = 1_000_000
"""Likewise, rows of a table."""
_MOST_CHARACTERS: Final = 4_000_000_000
"""Most characters of texts that are made by default: whoever made the release chose the texts."""
_OPTIONS: Final = {"count": "--records", "learning_rate": "--lr"}
"""Command-line options whose names differ from those of the arguments."""


def usual_rows(schema: TableSchema, records: int) -> int:
    """How many rows are made by default.

    Args:
        schema: of the table.
        records: number of records that the release was made from.

    Raises:
        GeneratorError: their texts could take more than 4 GB.
    """
    rows = min(records, MOST_ROWS)
    if rows * (longest := schema.longest_row) > _MOST_CHARACTERS:
        raise GeneratorError(
            f"{rows:,} rows of up to {longest:,} characters each could take "
            f"{rows * longest / 1e9:,.0f} GB: say how many with {option('count')}"
        )
    return rows


def option(name: str) -> str:
    """An argument as whoever called it knows it: by its own name, or by that of its option."""
    return argument(name, option=_OPTIONS.get(name, ""))
