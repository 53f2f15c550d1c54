"""The interface of a feature map's exact form.

In exact form, a record's feature is a vector of integers, in grid units. It depends on the record's
bytes alone, its norm is at most the map's bound, and sums of such vectors are exact.
(docs/privacy/proofs.md, statements 3 and 4.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import torch
from torch import Tensor

from ...common.display.representations import RedactedRepr
from ...common.features.base import FeatureMap
from ...common.registry import Registry

SAFETY: Final = 1.0 - 2.0**-40
"""Features are scaled by this factor before they are truncated to integers: it shortens them by far
more than their rounding error."""
CACHED: Final = 2**18
"""How many numbers fit into a processor's cache: more at a time would go to memory after every
operation."""
KEPT: Final = 2**21
"""How many numbers fit into a block of memory that the CPU allocator reuses. Larger blocks come
from the system each time, which takes longer than computing the numbers."""


class BatchFeatures(Protocol):
    """Features of a batch, in a form that is cheap to add up."""

    def norms(self) -> Tensor:
        """Norms in grid units, float64 (b,)."""
        ...

    def add_to(self, column: Tensor, rows: slice) -> None:
        """Add the features of some records to a column of class sums, int64 (d,)."""
        ...


class ExactMap(Protocol):
    """A feature map whose features are integers in grid units."""

    @property
    def chunk_size(self) -> int:
        """The largest number of records per call of `features`."""
        ...

    def features(self, records: Tensor) -> BatchFeatures:
        """Features of a batch of float64 records (b, record size), integers 0..levels."""
        ...


EXACT_FORMS: Final[Registry[type[FeatureMap], Callable[..., ExactMap]]] = Registry(
    __package__ or ""
)
"""Maps the class of a feature map to what makes its exact form from the map, a grid and a device. A
map that a module computes also needs the `module`."""


@dataclass(frozen=True, eq=False, repr=False)
class ExplicitFeatures(RedactedRepr):
    """Features of a batch.

    Attributes:
        values: int64 (b, d), in grid units.
    """

    values: Tensor

    def norms(self) -> Tensor:
        """Norms in grid units, float64 (b,)."""
        rows = self.values.split(rows_at_once(self.values))
        return torch.cat([torch.linalg.vector_norm(some.double(), dim=1) for some in rows])

    def add_to(self, column: Tensor, rows: slice) -> None:
        """Add the features of some records to a column of class sums, int64 (d,)."""
        column += self.values[rows].sum(dim=0)


def rows_at_once(values: Tensor, numbers: int = CACHED) -> int:
    """Rows of a matrix to process at a time, `numbers` numbers in all; on a GPU, all rows."""
    if values.device.type != "cpu":
        return max(1, len(values))
    return max(1, numbers // max(1, values.shape[1]))
