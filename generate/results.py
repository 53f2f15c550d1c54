"""The folder of results: it appears whole, and says where what is in it comes from."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..common.files import folder_appearing_whole
from ..common.synthetic_folder import PROVENANCE


@contextlib.contextmanager
def results(folder: Path, provenance: Mapping[str, Any]) -> Iterator[Path]:
    """Give a temporary folder that takes the name `folder` when the block ends well.

    Args:
        folder: where; an earlier such folder is replaced.
        provenance: what `provenance.json` is to say, plain JSON.

    Raises:
        OutputError: the folder cannot be written.
    """
    with folder_appearing_whole(folder, marker=PROVENANCE) as temporary:
        yield temporary
        (temporary / PROVENANCE).write_text(json.dumps(provenance, indent=2) + "\n")
