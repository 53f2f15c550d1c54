"""How much a stranger's file may unpack to."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ..common.errors import DataError

_ALWAYS: Final = 1 << 28
"""Bytes: 65,536 grey images of the largest size."""
_TO_ONE: Final = 256
"""Bytes for one of the file; synthetic records are hardly compressed to a tenth of that."""


def require_plausible(path: Path, size: int) -> None:
    """Refuse before memory is taken for it what no honest file of such a size unpacks to.

    Args:
        path: a file of synthetic records.
        size: what it says that it unpacks to, in bytes.

    Raises:
        DataError: it is a small file that says it holds a great deal.
    """
    packed = path.stat().st_size
    if size > max(_ALWAYS, _TO_ONE * packed):
        raise DataError(
            f"{path}: {packed:,} bytes that unpack to {size:,}: no file of synthetic records does"
        )
