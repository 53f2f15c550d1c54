"""Opening a data set of any kind, which is recognised by its contents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from numpy.typing import ArrayLike

from ..arguments import argument
from ..display.text import typed
from ..errors import DataError, SchemaError
from .base import Source, reading, require_regular
from .images.arrays import ArraySource, holds_npy_files, holds_npz_parts
from .images.cifar import CifarSource, holds_cifar_files
from .images.idx import IdxSource, holds_idx_files
from .images.image_folder import (
    ImageFolderSource,
    notice_images_beside,
    require_no_images_beside,
    require_nothing_beside,
)
from .images.parquet import ParquetImageSource
from .images.tar import TarImageSource
from .options import SourceOptions
from .part_folders import notice_others, part_to_read
from .paths import AnyPath, located
from .shards import find_shards, holds_shards
from .tables.csv import is_csv
from .tables.frames import Frame, FrameSource, is_frame
from .tables.table import TableSource

_DEFAULT_OPTIONS: Final = SourceOptions()
_TAKE_A_SCHEMA: Final = "SourceOptions or Synthesizer"


class _Format(NamedTuple):
    """A format of the files in a folder.

    Attributes:
        name: in messages, in the plural.
        is_in: whether a folder holds such files.
        open: opens them.
    """

    name: str
    is_in: Callable[[AnyPath], bool]
    open: Callable[[AnyPath, SourceOptions], Source]


def _in_shards(
    name: str, suffix: str, open_files: Callable[[tuple[AnyPath, ...], SourceOptions], Source]
) -> _Format:
    """A format whose files are told by their suffix."""
    return _Format(
        name,
        lambda folder: holds_shards(folder, suffix),
        lambda folder, options: open_files(find_shards(folder, suffix, options.split), options),
    )


_FORMATS: Final = (
    _Format("IDX files", holds_idx_files, IdxSource.open),
    _Format(".npy files", holds_npy_files, ArraySource.open_folder),
    _Format(".npz archives", holds_npz_parts, ArraySource.open_npz_part),
    _Format("CIFAR files", holds_cifar_files, CifarSource.open),
    _in_shards("Parquet files", ".parquet", ParquetImageSource.open),
    _in_shards("tar shards", ".tar", TarImageSource.open),
)
"""What a folder may hold, other than files of single images."""


InMemoryData = Frame | tuple[ArrayLike, ArrayLike | None]
"""Data in memory: a table, or images and their labels."""


def open_source(
    data: Path | str | InMemoryData, options: SourceOptions = _DEFAULT_OPTIONS
) -> Source:
    """Open a data set.

    In memory it is a table (a pandas or Polars data frame or an Arrow table) or a pair of arrays,
    images and labels (None if there are none). A file is an .npz archive, an .npy array, a Parquet
    file or a tar shard. A folder holds IDX files, .npy files, `train.npz` and `test.npz`, CIFAR's
    binary files, Parquet files, tar shards, images (labels in a CSV file: `options.labels`), or one
    folder of images for each class; or folders such as `train` and `test` with one of these. With a
    schema it is a table in CSV or Parquet files.

    Args:
        data: the folder or file; its address, such as s3://bucket/folder, if it is in object
            storage (`paths.located`); or data in memory.
        options: how to read the data, and what is known of them.

    Returns:
        The open data set, for `dpntk.embed.embed` or `dpntk.release.distill.distill`.

    Raises:
        DataError: nothing is there, or nothing that dpntk reads.
        SchemaError: the data do not have the form of a data set, or the options contradict each
            other.
    """
    if not isinstance(data, (str, Path)):
        return _open_in_memory(data, options)
    if Path(data) == Path("-"):
        raise DataError(
            "-: standard input is no source, because records have to be counted before they are "
            "read: give a file or a folder"
        )
    path = located(data)
    if (table := options.table()) is not None:
        return TableSource.open(path, table, options.split)
    with reading(path):
        if not path.exists():
            raise DataError(f"{path}: there is no such file or folder")
        if path.is_dir():
            return _open_folder(path, options)
        require_regular(path)
        if not is_csv(path):
            _require_no_label_file(str(path), options)
        match path.suffix.lower():
            case ".npz":
                return ArraySource.open_npz(path, options)
            case ".npy":
                return ArraySource.open_npy(path, options)
            case ".parquet":
                return ParquetImageSource.open((path,), options)
            case ".tar":
                return TarImageSource.open((path,), options)
        if is_csv(path):
            given = argument(
                f"schema='schema.toml' in {_TAKE_A_SCHEMA}", option="--schema schema.toml"
            )
            raise SchemaError(
                f"{path}: a table needs a schema: 'dpntk schema {typed(str(path))}' drafts one; "
                f"then give {given}"
            )
        raise DataError(
            f"{path}: not a kind of file that dpntk reads; give an .npz, .npy, .parquet or .tar "
            "file, or the folder that holds the images"
        )


def _open_in_memory(data: object, options: SourceOptions) -> Source:
    """Open what a caller gave in place of a path, whatever it is."""
    if options.split != "train":
        raise SchemaError("split: data in memory have no parts")
    table = options.table()
    if is_frame(data):
        if table is None:
            raise SchemaError(
                f"{type(data).__name__}: a table needs a schema: give schema=... in "
                f"{_TAKE_A_SCHEMA}: a TableSchema, which draft_schema drafts, or the path of a "
                "schema.toml"
            )
        return FrameSource.open(data, table)
    if not isinstance(data, tuple) or len(data) != 2:
        raise DataError(
            "data must be the path of a data set, a table in memory, such as a DataFrame, or a "
            f"pair of arrays (images, labels), not of type {type(data).__name__}"
        )
    if table is not None:
        raise SchemaError("a schema is of a table, and the data are arrays of images")
    _require_no_label_file("arrays of images", options)
    return ArraySource.open_in_memory(*data, options)


def _require_no_label_file(what: str, options: SourceOptions) -> None:
    """Refuse a file of labels for data that hold their own labels.

    Raises:
        SchemaError: a file of labels is given.
    """
    if options.labels is not None:
        raise SchemaError(
            f"{what}: labels in a CSV file are for a folder of image files, and these data hold "
            "their labels themselves: leave the file out"
        )


def _open_folder(folder: AnyPath, options: SourceOptions) -> Source:
    part = _part_of(folder, options)
    if part != folder:
        if not options.only_compared:
            require_no_images_beside(part, folder)
        notice_others(folder, part)
    formats = _formats_in(part)
    if not formats:
        return ImageFolderSource.open(part, options)
    names = " and ".join(each.name for each in formats)
    _require_no_label_file(f"{part}: of {names}", options)
    if len(formats) > 1:
        raise DataError(
            f"{part}: holds several kinds of data, {names}: keep one of them in a folder"
        )
    if options.only_compared:
        notice_images_beside(part, names)
    else:
        require_nothing_beside(part, names)
    return formats[0].open(part, options)


def place_of(data: Path | str, options: SourceOptions) -> AnyPath:
    """The file or folder whose records `open_source` reads; for a folder with parts, the part.

    Raises:
        DataError: the wanted part does not exist.
    """
    path = located(data)
    with reading(path):
        if options.schema is not None or not path.is_dir():
            return path
        return _part_of(path, options)


def _part_of(folder: AnyPath, options: SourceOptions) -> AnyPath:
    """The folder itself if it holds records, or its subfolder for the part."""
    if _formats_in(folder):
        return folder
    return part_to_read(folder, options)


def _formats_in(folder: AnyPath) -> list[_Format]:
    return [each for each in _FORMATS if each.is_in(folder)]
