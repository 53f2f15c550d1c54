"""Classes of images that are only numbered."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ...errors import SchemaError
from ...schema.classes import MOST_CLASSES, numbered
from ...schema.origin import Origin


def names_of_numbers(
    class_count: int | None, class_names: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    """The declared classes of a source that only numbers them; None if nothing is declared."""
    return numbered(class_count) if class_names is None and class_count is not None else class_names


def numbered_classes(
    declared: tuple[str, ...] | None, labels: Iterable[NDArray[np.int64]], where: str
) -> tuple[tuple[str, ...], Origin]:
    """The classes of a source that only numbers them: as declared, or up to the largest label.

    Args:
        declared: their names, if the user declared them.
        labels: all labels, in pieces; read only where nothing is declared.
        where: the data, for the message.

    Raises:
        SchemaError: a label is too large for any number of classes that is supported.
    """
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
