"""Synthetic records that have been written, read back into memory."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ...common.errors import GeneratorError
from ...common.storage import door
from ...common.storage.synthetic_folder import IMAGES, PARQUET

if TYPE_CHECKING:
    import pyarrow as pa

_LARGEST_FILE: Final = 1 << 36


def read_images(folder: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Images, uint8 (n, side, side), and labels, int64 (n,), of a folder that holds them.

    Raises:
        GeneratorError: they are not there any more.
    """
    content = door.read(folder / IMAGES, _LARGEST_FILE, refusal=GeneratorError)
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return archive["x"], archive["y"]


def read_classes(folder: Path) -> tuple[str, ...]:
    """The name of each class of a folder that holds images.

    Raises:
        GeneratorError: they are not there any more.
    """
    content = door.read(folder / IMAGES, _LARGEST_FILE, refusal=GeneratorError)
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return tuple(archive["classes"].tolist())


def read_rows(folder: Path) -> pa.Table:
    """The table of a folder that holds one.

    Raises:
        GeneratorError: it is not there any more.
    """
    import pyarrow
    from pyarrow import parquet

    content = door.read(folder / PARQUET, _LARGEST_FILE, refusal=GeneratorError)
    return parquet.read_table(pyarrow.BufferReader(content))
