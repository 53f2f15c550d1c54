"""Where things are that users hand to public functions."""

from __future__ import annotations

import os
from pathlib import Path

from .arguments import require_kind
from .errors import DpntkError

Location = str | os.PathLike[str]
"""A path, as text or not, or what stands for one, such as a folder of synthetic records."""


def located(name: str, value: Location, *, refusal: type[DpntkError]) -> Path:
    """The path of a file or folder.

    Args:
        name: of the argument.
        value: the path.
        refusal: the error to raise.

    Raises:
        DpntkError: as `refusal`: it is something else.
    """
    require_kind(name, value, (str, os.PathLike), "the path of a file or folder", refusal=refusal)
    return Path(value)
