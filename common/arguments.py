"""What is handed to public functions by mistake: values of another type, refused in one line."""

from __future__ import annotations

import os
from pathlib import Path

from .address import require_local
from .errors import DpntkError


def require_kind(
    name: str,
    value: object,
    kind: type | tuple[type, ...],
    wanted: str,
    *,
    refusal: type[DpntkError],
) -> None:
    """Check the type of an argument.

    Args:
        name: of the argument.
        value: what was handed over; it is not shown.
        kind: what it has to be an instance of.
        wanted: the same in words, with a hint where to get one.
        refusal: the error to raise.

    Raises:
        DpntkError: as `refusal`: it is something else.
    """
    if not isinstance(value, kind):
        raise refusal(f"{name} must be {wanted}, not of type {type(value).__name__}")


Location = str | os.PathLike[str]
"""A path, as text or not, or what stands for one, such as a folder of synthetic records."""


def path_from(name: str, value: Location, *, refusal: type[DpntkError]) -> Path:
    """The path of a file or folder that a user has handed over.

    Args:
        name: of the argument.
        value: the path.
        refusal: the error to raise.

    Raises:
        DpntkError: as `refusal`: it is something else, such as an address of object storage.
    """
    require_local(value, refusal=refusal)
    require_kind(name, value, (str, os.PathLike), "the path of a file or folder", refusal=refusal)
    return Path(value)
