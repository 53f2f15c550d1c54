"""The folder of results: it appears whole, and says where what is in it comes from."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ...common.storage.atomic import followed
from ...common.storage.folders import folder_appearing_whole, require_replaceable_folder
from ...common.storage.synthetic_folder import (
    CSV,
    IMAGES,
    PARQUET,
    PICTURES,
    POINTS,
    PREVIEW,
    PROVENANCE,
)
from ...release.file.citation import is_private
from .generator_file import GENERATOR

_OURS: Final = frozenset({CSV, GENERATOR, IMAGES, PARQUET, PICTURES, POINTS, PREVIEW, PROVENANCE})
"""All that is ever written into such a folder; with anything else in it, it is not replaced."""


@contextlib.contextmanager
def results(folder: Path, provenance: Mapping[str, Any]) -> Iterator[Path]:
    """Give a temporary folder that takes the name `folder` when the block ends well.

    Args:
        folder: where; an earlier such folder is replaced, if nothing else is in it. Unless the
            provenance says that the release is private, only its owner can read it (0700).
        provenance: what `provenance.json` is to say, plain JSON.

    Raises:
        OutputError: the folder cannot be written, or holds something else.
    """
    with folder_appearing_whole(
        followed(folder), marker=PROVENANCE, ours=_OURS, sensitive=not is_private(provenance)
    ) as temporary:
        yield temporary
        (temporary / PROVENANCE).write_text(json.dumps(provenance, indent=2) + "\n")


def require_replaceable(folder: Path) -> None:
    """Refuse before the training what `results` would refuse after it.

    Raises:
        OutputError: the folder cannot be written, or holds something else than earlier results.
    """
    require_replaceable_folder(followed(folder), marker=PROVENANCE, ours=_OURS)
