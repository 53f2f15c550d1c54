"""Images in Parquet files: a column of images, and perhaps a column of labels.

An image may be the bytes of an image file such as PNG, alone or as the `bytes` of a struct (the
common form of published image data sets). It may also be values: uint8, floats in [0, 1], or others
with a declared range, as a flat list of height * width values or as nested lists, (height, width)
or (height, width, 3). Labels are numbers or texts. If the file has names for numbers, they are
read, and count as looked up in the records unless they are declared.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, SchemaError
from ...schema.classes import numbered
from ...schema.image import ImageSchema
from ...schema.origin import Origin
from ..base import Batch, decoded, files_fingerprint, require_records
from ..options import SourceOptions
from ..parquet import opened, read_rows, reading_parquet
from ..paths import AnyPath
from ..prefetch import read_ahead
from ..shards import overlaps
from .decoding.decoder import ImageDecoder
from .decoding.form import Form
from .decoding.layout import PixelLayout
from .decoding.pixels import require_one_meaning, require_pixels
from .labels import Classes, labelled_classes, one_class, one_is_declared
from .parquet_columns import Columns, class_names, find_columns, holds_texts, is_list

if TYPE_CHECKING:
    import pyarrow as pa

_PIECE: Final = 64
_VALUES_PIECE: Final = 256
_LABEL_PIECE: Final = 1 << 16


@dataclass(frozen=True)
class _ValueDecoder:
    """Turns lists of values into pixels.

    Attributes:
        shape: the number of lists, or values, in a list, from the outermost on.
        layout: the layout of the pixels.
    """

    shape: tuple[int, ...]
    layout: PixelLayout

    @classmethod
    def of_first(cls, column: pa.Array, where: str, options: SourceOptions) -> _ValueDecoder:
        """Make a decoder for lists as long as the first one."""
        values, shape = _values(column, (), 0, where)
        require_pixels(values.dtype, where, options)
        if len(shape) == 1 and math.isqrt(shape[0]) ** 2 != shape[0]:
            raise SchemaError(
                f"{where}: a list of {shape[0]} values is no square image of one channel: store "
                "others as lists in lists, height x width x 3 in colour, or as PNG"
            )
        return cls(shape, PixelLayout.of(shape, options, where))

    @property
    def form(self) -> Form:
        """The form of a record."""
        return self.layout.form

    def decode(self, column: pa.Array, first: int, where: str) -> NDArray[np.uint8]:
        """Decode a column of lists to pixels, uint8 (b, channels * side * side)."""
        values, _ = _values(column, self.shape, first, where)
        stored = values.reshape(len(column), -1)
        require_one_meaning(stored, where, self.layout.form, first)
        return self.layout.records(stored, first, where)


@dataclass(frozen=True)
class ParquetImageSource:
    """Images in Parquet files, in the order of the files and of their rows.

    Attributes:
        files: one or more, with the same columns.
        counts: the number of records in each file.
        columns: the columns of images and labels.
        decoder: turns the images into pixels.
        classes: the classes, and the labels that stand for them.
        schema: what is publicly known of the records.
    """

    files: tuple[AnyPath, ...]
    counts: tuple[int, ...]
    columns: Columns
    decoder: ImageDecoder | _ValueDecoder
    classes: Classes
    schema: ImageSchema

    @classmethod
    def open(cls, files: tuple[AnyPath, ...], options: SourceOptions) -> ParquetImageSource:
        """Read the files' metadata, and the first image for its size.

        Args:
            files: with the same columns.
            options: the wanted size and channels, and the declared classes.

        Raises:
            DataError: a file is damaged, or has no columns of images and labels.
            SchemaError: sizes or classes are not supported.
        """
        counts = []
        unlabelled = one_is_declared(options)
        found: list[tuple[Columns, tuple[str, ...] | None]] = []
        for file in files:
            with reading_parquet(file), opened(file) as parquet:
                columns = find_columns(parquet.schema_arrow, str(file), unlabelled=unlabelled)
                found.append((columns, class_names(parquet.schema_arrow, columns.label)))
                counts.append(parquet.metadata.num_rows)
            if found[-1] != found[0]:
                raise DataError(
                    f"{file}: its images, labels or classes are stored otherwise than those of "
                    f"{files[0].name}"
                )
        require_records(sum(counts), str(files[0]))
        columns, named = found[0]
        decoder = _decoder(
            next(f for f, count in zip(files, counts, strict=True) if count), columns, options
        )
        if columns.label is None:
            classes = one_class(options, str(files[0].parent))
        elif named is None or columns.texts:
            labels = _all_labels(files, columns.label)
            where = str(files[0].parent)
            classes = labelled_classes(options, labels, where, texts=columns.texts)
        else:
            classes = _named_classes(named, options, str(files[0]))
        schema = decoder.form.schema(classes)
        return cls(files, tuple(counts), columns, decoder, classes, schema)

    def __len__(self) -> int:
        return sum(self.counts)

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Yield the images file by file, row group by row group."""
        rows = _PIECE if self.columns.encoded else _VALUES_PIECE
        with contextlib.closing(read_ahead(self._rows(rows, start, stop))) as pieces:
            yield from decoded(self._decode, pieces, piece_size=rows, size=size)

    def fingerprint(self) -> str:
        """Digest of the files' names, sizes and times, and of the columns that are read."""
        return files_fingerprint(self.files, "parquet", self.columns, self.counts)

    def _rows(
        self, rows: int, start: int, stop: int | None
    ) -> Generator[tuple[AnyPath, int, pa.RecordBatch], None, None]:
        names = [self.columns.image]
        if self.columns.label is not None:
            names.append(self.columns.label)
        for index, begin, end in overlaps(self.counts, start, stop):
            file = self.files[index]
            with contextlib.closing(read_rows(file, names, rows, begin, end)) as batches:
                for first, batch in batches:
                    yield file, first, batch

    def _decode(self, piece: tuple[AnyPath, int, pa.RecordBatch]) -> Batch:
        file, first, batch = piece
        where = str(file)
        with reading_parquet(file):
            if self.columns.label is None:
                labels = np.zeros(len(batch), dtype=np.int64)
            else:
                labels = self.classes.indices(_labels(batch.column(1), first, where), first, where)
            if isinstance(self.decoder, _ValueDecoder):
                return Batch(self.decoder.decode(batch.column(0), first, where), labels)
            images = _encoded(batch.column(0), first, where)
            records = [
                self.decoder.decode(content, f"{where}: record {first + index}")
                for index, content in enumerate(images)
            ]
            return Batch(np.stack(records), labels)


def _decoder(
    file: AnyPath, columns: Columns, options: SourceOptions
) -> ImageDecoder | _ValueDecoder:
    """Make a decoder for images like a file's first one."""
    with contextlib.closing(read_rows(file, [columns.image], 1, 0, 1)) as batches:
        _, batch = next(batches)
    where = f"{file}: record 0"
    if columns.encoded:
        return ImageDecoder.of_first(_encoded(batch.column(0), 0, str(file))[0], where, options)
    return _ValueDecoder.of_first(batch.column(0), where, options)


def _named_classes(named: tuple[str, ...], options: SourceOptions, where: str) -> Classes:
    """The classes whose names are in the metadata, and their origin.

    Programs that write metadata usually take the names from folders or from the values of a column,
    and so from the records: without its only record, a class would have no name. The names are
    public knowledge only if the owner has declared them; a number alone declares classes named by
    their numbers.

    Raises:
        SchemaError: others are declared.
    """
    count, expected = options.classes, options.class_names
    if count is not None and count != len(named):
        raise SchemaError(f"{where}: it names {len(named)} classes, but {count} are declared")
    if expected is not None and expected != named:
        raise SchemaError(f"{where}: its classes are {', '.join(named)}, not {', '.join(expected)}")
    declared = expected is not None or (count is not None and named == numbered(count))
    return Classes(named, Origin.DECLARED if declared else Origin.FROM_DATA)


def _all_labels(files: tuple[AnyPath, ...], label: str) -> Iterator[NDArray[Any]]:
    for file in files:
        with contextlib.closing(read_rows(file, [label], _LABEL_PIECE)) as batches:
            for first, batch in batches:
                yield _labels(batch.column(0), first, str(file))


def _labels(column: pa.Array, first: int, where: str) -> NDArray[Any]:
    _require_all_there(column, first, where, "label")
    labels: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return labels.astype(np.str_) if holds_texts(column.type) else labels


def _encoded(column: pa.Array, first: int, where: str) -> list[bytes]:
    """The bytes of a column of encoded images, or of structs with their bytes."""
    from pyarrow import types

    if types.is_struct(column.type):
        (column,) = column.flatten()
    _require_all_there(column, first, where, "image")
    content: list[bytes] = column.to_pylist()
    return content


def _values(
    column: pa.Array, shape: tuple[int, ...], first: int, where: str
) -> tuple[NDArray[Any], tuple[int, ...]]:
    """All values of a column of lists, or of lists in lists, one after another.

    Args:
        column: the column.
        shape: the number of lists, or values, in a list, from the outermost on; if empty, as in the
            first list.
        first: number of the column's first record, from 0.
        where: the file, for the message.

    Returns:
        The values, and the shape.

    Raises:
        DataError: a value is missing.
        SchemaError: a list has another length.
    """
    _require_all_there(column, first, where, "image")
    values, in_a_record = column, 1
    found: tuple[int, ...] = ()
    while is_list(values.type):
        lengths = np.asarray(values.value_lengths())
        wanted = int(shape[len(found)] if shape else lengths[0] if len(lengths) else 0)
        wrong = np.flatnonzero(lengths != wanted)
        if wrong.size:
            raise SchemaError(
                f"{where}: record {first + int(wrong[0]) // in_a_record} has {lengths[wrong[0]]} "
                f"values but the first one {wanted}" + (", in a list of its lists" if found else "")
            )
        values, found = values.flatten(), (*found, wanted)
        in_a_record *= wanted
        if values.null_count:
            index = int(np.flatnonzero(np.asarray(values.is_null()))[0]) // in_a_record
            raise DataError(f"{where}: record {first + index} lacks a value of its image (null)")
    flat: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return flat, found


def _require_all_there(column: pa.Array, first: int, where: str, what: str) -> None:
    if column.null_count:
        index = int(np.flatnonzero(np.asarray(column.is_null()))[0])
        raise DataError(f"{where}: record {first + index} has no {what} (null)")
