"""What callers give to be compared: paths, tables in memory, or arrays of images."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ..common.arguments import Location, path_from
from ..common.errors import DataError
from ..common.sources.tables.frames import Frame, is_frame

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Arrays = tuple[NDArray[Any], NDArray[Any] | None]
"""Images (n, height, width[, channels]) and their labels (n,), as `dpntk.embed.embed` takes them.
None in place of the labels if there are none."""
Records = Path | Frame | Arrays
"""Where records are."""


def records_given(name: str, value: Frame | Arrays | Location) -> Records:
    """Pass on what is in memory, and turn anything else into a path.

    Args:
        name: of the argument.
        value: of the argument.

    Raises:
        DataError: it is nothing of the kind.
    """
    if is_frame(value) or are_arrays(value):
        return value
    return path_from(name, value, refusal=DataError)


def are_arrays(value: object) -> TypeIs[Arrays]:
    """Whether this is a pair of images and labels: two paths or two tables are none."""
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    return not any(isinstance(part, str | PathLike) or is_frame(part) for part in value)


def images_in(records: Records) -> Path | Arrays:
    """Pass on images, which are in files or in arrays.

    Raises:
        DataError: they are a table in memory.
    """
    if isinstance(records, Path) or are_arrays(records):
        return records
    raise DataError(f"{name_of(records)}: a table in memory, and the others are images")


def table_in(records: Records) -> Path | Frame:
    """Pass on a table, which is in files or in memory.

    Raises:
        DataError: these are arrays of images.
    """
    if are_arrays(records):
        raise DataError(f"{name_of(records)}: the others are tables")
    return records


def name_of(records: Records) -> str:
    """What to call records in a message."""
    if isinstance(records, Path):
        return str(records)
    return "arrays of images" if are_arrays(records) else type(records).__name__
