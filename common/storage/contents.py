"""The contents of an HDF5 file, which may come from a stranger, as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..display.representations import RedactedRepr
from . import sandbox
from .container import USER_BLOCK
from .hdf5 import inventory, inventory_as_json
from .layout import INTEGER, NUMBER, TEXT, Inventory, Layout, Place, Value
from .sandbox import Refused

_TYPES: Final = {TEXT: str, INTEGER: int, NUMBER: float}


@dataclass(frozen=True, eq=False, repr=False)
class Contents(RedactedRepr):
    """The contents of a file; SENSITIVE if it is an embedding.

    Attributes:
        attributes: the root group's attributes, by name.
        arrays: the arrays, by their path without a leading slash; floats are finite.
    """

    attributes: Mapping[str, Value]
    arrays: Mapping[str, NDArray[Any]]


def contents_of(content: bytes, layouts: Sequence[Layout], *, ours: bool = False) -> Contents:
    """Read an HDF5 file behind a user block, through a whitelist.

    libhdf5 only locates values. They are then taken from the bytes themselves, so no two arrays
    share bytes, and they need no more memory than the size of the file.

    Args:
        content: the whole file.
        layouts: the allowed layouts, one of which it must have.
        ours: whether this machine has signed the file, so that no sandboxed process is needed.

    Raises:
        Refused: it holds something that is not on the whitelist, or reading it failed.
    """
    if ours:
        found = inventory(content, layouts)
    else:
        allowed = [layout.as_json for layout in layouts]
        said = sandbox.parse_in_child(inventory_as_json, content, allowed)
        try:
            found = Inventory.from_json(said)
            fits = any(_fits(found, layout) for layout in layouts)
        except (AttributeError, TypeError, ValueError) as error:
            raise Refused("damaged: reading it gave no result") from error
        if not fits:
            raise Refused("damaged: reading it gave another result than it may")
    return Contents(found.attributes, _arrays(content, found.places))


def _fits(found: Inventory, layout: Layout) -> bool:
    """Whether a layout allows an inventory, which a child made and which is not trusted."""
    for path, (dtype, shape, offset) in found.places.items():
        group, _, name = path.rpartition("/")
        rule = layout.groups.get(group) if group else layout.datasets.get(name)
        if rule is None or dtype != rule.dtype or not 1 <= len(shape) <= rule.dimensions:
            return False
        if not all(type(number) is int and number > 0 for number in (*shape, offset)):
            return False
    return (
        layout.allows({path for path in found.places if "/" not in path}, set(layout.datasets))
        and layout.allows(set(found.attributes), set(layout.attributes))
        and all(
            type(value) is _TYPES[layout.attributes[name]]
            for name, value in found.attributes.items()
        )
    )


def _arrays(content: bytes, places: Mapping[str, Place]) -> dict[str, NDArray[Any]]:
    """Copies of the arrays at some places, which must not share bytes."""
    pieces = [(0, USER_BLOCK, "the first line")]
    for path, (dtype, shape, offset) in places.items():
        end = offset + math.prod(shape) * np.dtype(dtype).itemsize
        if end > len(content):
            raise Refused(f"{path} is not as large as it says")
        pieces.append((offset, end, path))
    for (_, end, path), (start, _, other) in pairwise(sorted(pieces)):
        if start < end:
            raise Refused(f"{path} and {other} share their bytes")
    arrays = {}
    for path, (dtype, shape, offset) in places.items():
        stored = np.frombuffer(content, dtype, math.prod(shape), offset).reshape(shape)
        if stored.dtype.kind == "f" and not np.isfinite(stored).all():
            raise Refused(f"{path} holds values that are not finite")
        arrays[path] = stored.copy()
    return arrays
