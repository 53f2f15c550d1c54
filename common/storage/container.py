"""HDF5 files behind a 512-byte user block whose first line says what the file is.

Files are built in memory and written in one go, so that a full disk leaves no partial file. The
block has exactly 512 bytes: HDF5 looks for a file at offsets 0, 512, 1024, 2048, ..., and a larger
block would leave room for a second, hidden file.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Final

import h5py

USER_BLOCK: Final = 512
EMBEDDING_MAGIC: Final = b"dpntk embedding 1: SENSITIVE, do not share\n"
CHECKPOINT_MAGIC: Final = b"dpntk checkpoint 1: SENSITIVE, do not share\n"
EMBEDDING_BEGINS: Final = b"dpntk embedding "
"""The beginning of any version, like `RELEASE_BEGINS`: --overwrite replaces nothing else."""
RELEASE_MAGIC: Final = b"dpntk release 1\n"
NOT_PRIVATE_MAGIC: Final = b"dpntk release 1: NOT PRIVATE, made without noise\n"
RELEASE_BEGINS: Final = b"dpntk release "
RELEASE_COST: Final = "is a release that was paid for"
"""The reason why it is replaced only on request."""


def build(magic: bytes, fill: Callable[[h5py.File], None]) -> memoryview:
    """Make the bytes of a file.

    Args:
        magic: first line of the user block; the rest of the block is zeros.
        fill: writes the groups, datasets and attributes.
    """
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", userblock_size=USER_BLOCK, libver=("earliest", "v110")) as file:
        fill(file)
    content = buffer.getbuffer()
    content[:USER_BLOCK] = user_block(magic)
    return content


def user_block(magic: bytes) -> bytes:
    """The 512 bytes of an unsigned file."""
    return magic.ljust(USER_BLOCK, b"\0")
