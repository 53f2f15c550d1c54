"""NumPy arrays in memory."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...display.representations import RedactedRepr
from ...errors import DataError


@dataclass(frozen=True, eq=False, repr=False)
class InMemoryArray(RedactedRepr):
    """An array in memory, read like one in a file (`npy.ArrayFile`). SENSITIVE.

    Attributes:
        name: its name in messages.
        values: the array, with at least one dimension.
    """

    name: str
    values: NDArray[Any]

    @classmethod
    def of(cls, name: str, values: ArrayLike) -> InMemoryArray:
        """Take an array, or anything that NumPy can convert to one.

        Guarantee:
            How an item is read does not depend on others: all items of a list have one type, so
            none makes NumPy convert the others. (docs/privacy/proofs.md, statement 3.)

        Raises:
            DataError: NumPy cannot convert it, items of a list have different types, some are
                masked, or it is a single number.
        """
        items = values if isinstance(values, list | tuple) else (values,)
        if any(map(np.ma.is_masked, items)):
            raise DataError(
                f"{name}: some of its values are masked, and would be read all the same: leave "
                "these items out, or fill the mask"
            )
        try:
            kinds = {_kind(item) for item in values} if isinstance(values, list | tuple) else set()
            array = np.asarray(values)
        except (TypeError, ValueError):
            raise DataError(f"{name}: not an array: its items have several shapes") from None
        if len(kinds) > 1:
            raise DataError(
                f"{name}: its items have several types, {' and '.join(sorted(kinds))}: make one "
                "array of them, of the type that is meant"
            )
        if array.dtype == object and all(isinstance(item, str) for item in array.flat):
            array = array.astype(np.str_)  # as text columns of a data frame are
        if not array.shape:
            raise DataError(f"{name} is a single value: store one item a record")
        return cls(name, array)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def where(self) -> str:
        """Its name in messages."""
        return self.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape, of at least one dimension."""
        return self.values.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its items."""
        return self.values.dtype

    @property
    def item_bytes(self) -> int:
        """The size in bytes of one item along the first dimension."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def read(
        self, size: int, start: int = 0, stop: int | None = None
    ) -> Generator[tuple[int, NDArray[Any]], None, None]:
        """Yield (number of the first item, items) for `size` items at a time."""
        wanted = range(len(self))[start:stop]
        for first in wanted[::size]:
            yield first, self.values[first : min(first + size, wanted.stop)]


def _kind(item: ArrayLike) -> str:
    """The type of an item's numbers, without the precision of floats and the length of texts."""
    dtype = np.asarray(item).dtype
    return {"f": "float", "U": "text", "S": "bytes"}.get(dtype.kind, str(dtype))
