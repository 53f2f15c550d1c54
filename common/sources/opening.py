"""Find out what kind of data lies at a path, and open it."""

from __future__ import annotations

from pathlib import Path

from ..errors import DataError
from .base import Source
from .idx import IdxSource, find_idx_pair, holds_idx_files
from .image_folder import ImageFolderSource
from .npz import NpzSource


def open_source(
    path: Path,
    *,
    split: str = "train",
    image_size: int | None = None,
    class_count: int | None = None,
    class_names: tuple[str, ...] | None = None,
) -> Source:
    """Open a data set: a folder of class folders, a folder of IDX files, or an .npz file.

    Args:
        path: the folder or file.
        split: "train" or "test", where the data set has both.
        image_size: resize every image to this many pixels a side.
        class_count: declared number of classes, for formats that only number them.
        class_names: the classes to expect, for formats that name them; found in the folder names
            if not given.

    Raises:
        DataError: nothing is there, or nothing that dpntk reads.
        SchemaError: what is there has not the form of a data set.
    """
    if not path.exists():
        raise DataError(f"{path}: there is no such file or folder")
    if path.is_file():
        if path.suffix.lower() != ".npz":
            raise DataError(
                f"{path}: not a kind of file that dpntk reads; give an .npz file with x and y, "
                "or the folder that holds the images"
            )
        return NpzSource.open(path, split, image_size, class_count)
    if holds_idx_files(path):
        images, labels = find_idx_pair(path, split)
        return IdxSource.open(images, labels, image_size, class_count)
    part = path / split
    if part.is_dir() and any(entry.is_dir() for entry in part.iterdir()):
        path = part  # the class folders lie one level deeper, in train and test
    return ImageFolderSource.open(path, image_size, class_names)
