"""Finding the columns of images and labels in a Parquet file by their types and names."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...arguments import argument
from ...display.text import some_of
from ...errors import DataError
from ..arrow_types import type_name

if TYPE_CHECKING:
    import pyarrow as pa

_IMAGE_NAMES: Final = ("image", "img", "x", "pixels", "png", "jpg")
_LABEL_NAMES: Final = ("label", "labels", "class", "target", "y", "cls")


@dataclass(frozen=True)
class Columns:
    """The columns of images and labels.

    Attributes:
        image: name of the column of images, or of their bytes.
        label: name of the column of labels; None if there is none.
        texts: whether labels are texts.
        encoded: whether images are bytes of image files; otherwise they are lists of values.
    """

    image: str
    label: str | None
    texts: bool
    encoded: bool


def find_columns(schema: pa.Schema, where: str, *, unlabelled: bool = False) -> Columns:
    """Find the columns of images and of labels by their types and names.

    Args:
        schema: of the file.
        where: the file, for messages.
        unlabelled: whether a single class is declared, so that labels need not be sought.

    Raises:
        DataError: there are none, or several could be meant.
    """
    from pyarrow import types

    paths: dict[str, tuple[str, bool]] = {}
    whole: dict[str, tuple[str, bool]] = {}
    for column in schema:
        values = _innermost(column.type)
        if _holds_files(column.type):
            inner = f"{column.name}.bytes" if types.is_struct(column.type) else column.name
            paths[column.name] = inner, True
        elif is_list(column.type) and (types.is_uint8(values) or types.is_floating(values)):
            paths[column.name] = column.name, False
        elif is_list(column.type) and types.is_integer(values):
            whole[column.name] = column.name, False
    # Lists of other integers may be anything: they are images only by name, or if nothing else is.
    paths |= {name: path for name, path in whole.items() if not paths or name in _IMAGE_NAMES}
    what = "images (bytes of image files, or lists of numbers)"
    image = _choose(paths, _IMAGE_NAMES, what, where)
    path, encoded = paths[image]
    label = _label_column(schema, image, where, unlabelled=unlabelled)
    texts = label is not None and holds_texts(schema.field(label).type)
    return Columns(path, label, texts, encoded)


def _holds_files(kind: pa.DataType) -> bool:
    """Whether values are bytes of image files, or structs with such bytes."""
    from pyarrow import types

    if types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
        kind = kind.field("bytes").type
    return bool(types.is_binary(kind) or types.is_large_binary(kind))


def _innermost(kind: pa.DataType) -> pa.DataType:
    """The type of the values in lists or nested lists; other types are returned unchanged."""
    while is_list(kind):
        kind = kind.value_type
    return kind


def _label_column(schema: pa.Schema, image: str, where: str, *, unlabelled: bool) -> str | None:
    """The column of labels: one with a usual name, or else the only one beside the images.

    A single label that is missing or a text changes the type of all. So whether there are labels
    does not follow from types: without a usual name, whatever could hold labels has to be integers
    in a single column, unless the owner declares that there are no labels.

    Raises:
        DataError: one with a usual name holds no labels, or it is unclear where labels are.
    """
    from pyarrow import types

    for name in (name for name in _LABEL_NAMES if name in schema.names and name != image):
        kind = schema.field(name).type
        if holds_texts(kind) or _holds_numbers(kind):
            return str(name)
        raise DataError(
            f"{where}: the column {name} is {type_name(kind)}: store labels as whole numbers or "
            "texts"
        )
    possible = [
        column.name for column in schema if column.name != image and _could_be_labels(column.type)
    ]
    if unlabelled or not possible:
        return None
    if len(possible) == 1 and types.is_integer(schema.field(possible[0]).type):
        return str(possible[0])
    raise DataError(
        f"{where}: labels may be in {some_of(possible)}: name their column label, or declare one "
        f"class ({argument('classes', 1)}) if there are none"
    )


def holds_texts(kind: pa.DataType) -> bool:
    """Whether values of a type are texts, plain or dictionary-encoded."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _holds_numbers(kind: pa.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_boolean(kind) or types.is_floating(kind) or types.is_integer(kind))


def _could_be_labels(kind: pa.DataType) -> bool:
    """Whether values may be labels, or would be if another program had written them."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    texts = holds_texts(kind) or types.is_string_view(kind)
    return bool(texts or _holds_numbers(kind) or types.is_decimal(kind))


def _choose(names: Iterable[str], usual: tuple[str, ...], what: str, where: str) -> str:
    """The column with a usual name, or else the only one."""
    candidates = list(names)
    for name in usual:
        if name in candidates:
            return name
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise DataError(f"{where}: there is no column of {what}")
    raise DataError(
        f"{where}: the {what} may be in any of the columns {', '.join(candidates)}: name the right "
        f"one {usual[0]}"
    )


def class_names(schema: pa.Schema, label: str | None) -> tuple[str, ...] | None:
    """The classes' names, if the metadata has them in the form of Hugging Face's `datasets`."""
    try:
        document = json.loads((schema.metadata or {})[b"huggingface"])
        names = document["info"]["features"][label]["names"]
    except (LookupError, TypeError, ValueError, RecursionError):
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return tuple(names)


def is_list(kind: pa.DataType) -> bool:
    """Whether values of a type are lists."""
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
