"""Paths as users give them: texts, `Path`s, and whatever stands for a path of its own."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import DpntkError


def path_of(given: str | os.PathLike[str], what: str, refusal: type[DpntkError]) -> Path:
    """A path, of whatever can be one.

    Args:
        given: as the user gave it.
        what: what it is, for the message.
        refusal: the error to raise.

    Raises:
        DpntkError: it is no path; of the kind `refusal`.
    """
    try:
        path = Path(given)
    except TypeError as error:
        raise refusal(f"{what}: a path is wanted, not {type(given).__name__}") from error
    if "\0" in str(path):
        raise refusal(f"{what}: no path has a character zero in it")
    return path
