"""Read written synthetic records back into memory."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ...common.errors import GeneratorError
from ...common.storage import untrusted_files
from ...common.storage.synthetic_folder import IMAGES, PARQUET

if TYPE_CHECKING:
    import pyarrow as pa

_LARGEST_FILE: Final = 1 << 36


def read_images(folder: Path) -> tuple[NDArray[Any], NDArray[Any], tuple[str, ...]]:
    """Read the images in a folder.

    Returns:
        Images, uint8 (n, side, side[, 3]); labels, int64 (n,); and the name of each class.

    Raises:
        GeneratorError: they no longer exist.
    """
    content = untrusted_files.read(folder / IMAGES, _LARGEST_FILE, refusal=GeneratorError)
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return archive["x"], archive["y"], tuple(archive["classes"].tolist())


def read_rows(folder: Path) -> pa.Table:
    """Read the table in a folder.

    Raises:
        GeneratorError: it no longer exists.
    """
    import pyarrow
    from pyarrow import parquet

    content = untrusted_files.read(folder / PARQUET, _LARGEST_FILE, refusal=GeneratorError)
    return parquet.read_table(pyarrow.BufferReader(content))
