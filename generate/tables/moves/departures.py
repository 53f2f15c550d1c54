"""By how much columns of a class are other than independent, by all that is released of it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from .products import ProductDeparture
from .relu_features import Goal
from .tables import TableDeparture


@dataclass(frozen=True, eq=False)
class Departures:
    """Those of a class.

    Attributes:
        products: of columns; None if a release has none.
        tables: of columns; likewise.
    """

    products: ProductDeparture | None
    tables: TableDeparture | None

    @classmethod
    def of(cls, goal: Goal, records: Tensor) -> Departures:
        """From what rows of the class should have.

        Args:
            goal: of the class.
            records: rows with its columns, each by itself, (n, record size).
        """
        moments, counts = goal.moments, goal.counts
        return cls(
            None if moments is None else ProductDeparture.of(moments, records),
            None if counts is None else TableDeparture.of(counts, records),
        )
