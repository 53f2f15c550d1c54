"""Read written synthetic records back into memory."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping
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


@contextlib.contextmanager
def _archive(folder: Path) -> Iterator[Mapping[str, NDArray[Any]]]:
    """Open the arrays of a folder of images."""
    content = untrusted_files.read(folder / IMAGES, _LARGEST_FILE, refusal=GeneratorError)
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        yield archive


def read_images(folder: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read images, uint8 (n, side, side[, 3]), and labels, int64 (n,), from a folder.

    Raises:
        GeneratorError: they no longer exist.
    """
    with _archive(folder) as archive:
        return archive["x"], archive["y"]


def read_named_images(folder: Path) -> tuple[NDArray[Any], NDArray[Any], tuple[str, ...]]:
    """The same, and the name of each class.

    Raises:
        GeneratorError: they no longer exist.
    """
    with _archive(folder) as archive:
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
