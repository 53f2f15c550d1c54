"""What the exact form of a feature map offers.

A record's feature is a vector of whole numbers, in grid units, that depends on the record's bytes
alone and is no longer than the map's bound; sums of them are exact. (docs/privacy/proofs.md,
statements 3 and 4.)
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
"""Tables are shortened by this, far more than their error, before they are cut to integers."""
CACHED: Final = 2**18
"""Numbers that a processor keeps at hand: more at a time would go to memory after every operation.
"""
KEPT: Final = 2**21
"""Numbers whose memory a processor's allocator keeps and gives again. Larger ones it fetches from
the system every time, which takes longer than to compute them."""


class BatchFeatures(Protocol):
    """Features of a batch, in whatever form they can be added up cheaply."""

    def norms(self) -> Tensor:
        """Norms in grid units, float64 (b,)."""
        ...

    def add_to(self, column: Tensor, rows: slice) -> None:
        """Add the features of some records to a column of class sums, int64 (d,)."""
        ...


class ExactMap(Protocol):
    """A feature map in whole grid units."""

    @property
    def chunk_size(self) -> int:
        """The most records whose features are asked for at a time."""
        ...

    def features(self, records: Tensor) -> BatchFeatures:
        """Features of a batch of float64 records (b, record size), integers 0..levels."""
        ...


EXACT_FORMS: Final[Registry[type[FeatureMap], Callable[..., ExactMap]]] = Registry(
    __package__ or ""
)
"""What makes the exact form of a map from the map, a grid and a device, by the map's class. A map
that a module computes needs the `module`, too."""


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
    """How many rows of a matrix to work on at a time, by their numbers; on a card, all of them."""
    if values.device.type != "cpu":
        return max(1, len(values))
    return max(1, numbers // max(1, values.shape[1]))
