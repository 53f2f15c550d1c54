"""Integer features that are few enough to be written out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from ...common.outline import Outlined

SAFETY: Final = 1.0 - 2.0**-40
"""Tables are shortened by this, far more than their error, before they are cut to integers."""


@dataclass(frozen=True, eq=False, repr=False)
class ExplicitFeatures(Outlined):
    """Features of a batch.

    Attributes:
        values: int64 (b, d), in grid units.
    """

    values: Tensor

    def norms(self) -> Tensor:
        """Norms in grid units, float64 (b,)."""
        norms: Tensor = torch.linalg.vector_norm(self.values.double(), dim=1)
        return norms

    def add_to(self, column: Tensor, rows: slice) -> None:
        """Add the features of some records to a column of class sums, int64 (d,)."""
        column += self.values[rows].sum(dim=0)
