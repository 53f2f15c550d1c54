"""The folder of results, which appears whole and records its provenance."""

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
"""Every file that is written into such a folder; one that holds anything else is not replaced."""


@contextlib.contextmanager
def results(folder: Path, provenance: Mapping[str, Any]) -> Iterator[Path]:
    """Give a temporary folder that is renamed to `folder` when the block succeeds.

    Args:
        folder: where; an earlier such folder is replaced, if nothing else is in it. Unless the
            provenance says that the release is private, only its owner can read it (0700).
        provenance: content of `provenance.json`, plain JSON.

    Raises:
        OutputError: the folder cannot be written, or holds something else.
    """
    with folder_appearing_whole(
        followed(folder), marker=PROVENANCE, ours=_OURS, sensitive=not is_private(provenance)
    ) as temporary:
        yield temporary
        (temporary / PROVENANCE).write_text(json.dumps(provenance, indent=2) + "\n")


def require_replaceable(folder: Path) -> None:
    """Refuse before the training a folder that would not be replaced after it.

    Args:
        folder: where synthetic records are to be written.

    Raises:
        OutputError: the folder cannot be written, or holds something else than earlier results.
    """
    require_replaceable_folder(followed(folder), marker=PROVENANCE, ours=_OURS)
