"""Classes of images that are only numbered, or of which there is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ...console import notice
from ...errors import SchemaError
from ...schema.classes import MOST_CLASSES, numbered
from ...schema.origin import Origin
from ..options import SourceOptions


def numbered_classes(
    options: SourceOptions, labels: Iterable[NDArray[np.int64]], where: str
) -> tuple[tuple[str, ...], Origin]:
    """The classes of a source that only numbers them: as declared, or up to the largest label.

    Args:
        options: what is declared.
        labels: all labels, in pieces; read only where nothing is declared.
        where: the data, for the message.

    Returns:
        Their names, and where these came from.

    Raises:
        SchemaError: a label is too large for any number of classes that is supported.
    """
    declared = _declared(options)
    if declared is not None:
        return declared, Origin.DECLARED
    largest = max((int(piece.max()) for piece in labels if piece.size), default=0)
    if largest >= MOST_CLASSES:
        raise SchemaError(
            f"{where}: there is a label that is too large: labels are 0 to {MOST_CLASSES - 1} at "
            "most",
            str(largest),
        )
    return numbered(largest + 1), Origin.FROM_DATA


def one_class(options: SourceOptions, where: str) -> tuple[tuple[str, ...], Origin]:
    """The class of images without labels.

    Args:
        options: what is declared.
        where: the data, for the message.

    Returns:
        Its name, and where that came from.

    Raises:
        SchemaError: several are declared.
    """
    declared = _declared(options)
    if declared is None:
        notice(f"{where}: images without labels: all are taken to be of one class")
        return numbered(1), Origin.FORMAT
    if len(declared) > 1:
        raise SchemaError(
            f"{where}: images without labels are all of one class, but {len(declared)} classes are "
            "declared: give the images labels, or declare one class"
        )
    return declared, Origin.DECLARED


def no_labels(size: int, start: int, stop: int) -> Iterator[NDArray[np.int64]]:
    """The class of records start..stop-1, which have no labels, `size` of them at a time."""
    for first in range(start, stop, size):
        yield np.zeros(min(size, stop - first), dtype=np.int64)


def _declared(options: SourceOptions) -> tuple[str, ...] | None:
    """The names that are declared for numbers; None if nothing is."""
    if options.class_names is None and options.classes is not None:
        return numbered(options.classes)
    return options.class_names
