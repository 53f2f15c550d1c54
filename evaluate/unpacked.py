"""A limit on what a stranger's file may unpack to."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ..common.errors import DataError

_ALWAYS: Final = 1 << 28
"""Bytes that are always allowed: 65,536 grey images of the largest size."""
_TO_ONE: Final = 256
"""Largest compression ratio; that of synthetic records is hardly a tenth of it."""


def require_plausible(path: Path, size: int) -> None:
    """Refuse an implausibly large file before memory is allocated for it.

    Args:
        path: a file of synthetic records.
        size: the size that it claims to unpack to, in bytes.

    Raises:
        DataError: a small file claims to hold a great deal.
    """
    packed = path.stat().st_size
    if size > max(_ALWAYS, _TO_ONE * packed):
        raise DataError(
            f"{path}: {packed:,} bytes that unpack to {size:,}: no file of synthetic records does"
        )
