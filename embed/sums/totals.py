"""Class sums and counts as plain integers, additive over disjoint sets of records."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...common.arguments import argument
from ...common.display.representations import RedactedRepr
from ...common.errors import SchemaError
from ..exact.grid import Grid


@dataclass(frozen=True, eq=False, repr=False)
class Totals(RedactedRepr):
    """Exact sums over some records: SENSITIVE.

    Attributes:
        sums: S, int64 (d, c), in grid units.
        counts: records in each class, int64 (c,).
    """

    sums: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def records(self) -> int:
        """The number of records that were added up."""
        return int(self.counts.sum())

    def plus(self, other: Totals, grid: Grid) -> Totals:
        """The totals over two disjoint sets of records.

        Guarantee:
            No sum overflows, so the result equals that of one pass over both sets, to the bit. The
            caller ensures that the sets are disjoint: a record in both would count twice.
            (docs/privacy/proofs.md, statements 4 and 14.)

        Raises:
            SchemaError: there are more records than the grid has room for, or no records can have
                such sums.
        """
        self.require_possible(grid)
        other.require_possible(grid)
        records = self.records + other.records
        if records > grid.capacity:
            raise SchemaError(
                f"the sums have room for {grid.capacity:,} records, and there are more in all: "
                f"embed again with {argument('capacity')} of at least their number"
            )
        return Totals(self.sums + other.sums, self.counts + other.counts)

    def require_possible(self, grid: Grid) -> None:
        """Check that the counted records can have these sums: a feature's values lie in -1..1.

        Raises:
            SchemaError: they cannot.
        """
        self.require_possible_counts(grid)
        room = self.counts * grid.units_per_one  # below 2^62
        if (self.sums.max(axis=0) > room).any() or (self.sums.min(axis=0) < -room).any():
            raise SchemaError("sums that so many records cannot have")

    def require_possible_counts(self, grid: Grid) -> None:
        """Check that the counts are possible, and that the sums have room for so many records.

        Raises:
            SchemaError: they do not.
        """
        # Each class by itself first: the sum of impossible counts could overflow 64 bits.
        possible = self.counts.min() >= 0 and self.counts.max() <= grid.capacity
        if not possible or self.records > grid.capacity:
            raise SchemaError("impossible class counts")

    def digest(self) -> str:
        """SHA-256 of all integers (little-endian, class by class), in hexadecimal: SENSITIVE.

        It is equal for the same records in any order, and differs for any other records in
        practice.
        """
        state = hashlib.sha256(np.ascontiguousarray(self.counts, dtype="<i8").data)
        state.update(np.ascontiguousarray(self.sums.T, dtype="<i8").data)
        return state.hexdigest()
