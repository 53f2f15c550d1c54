"""A metric of the distance between two tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..table import Table


@dataclass(frozen=True)
class Metric:
    """A distance between two tables under one schema: 0 if they are alike.

    Attributes:
        name: of the figure, in tables and reports.
        method: explanation for readers of the figures.
        measure: computes it from both tables; None if it does not apply.
        digits: number of digits to show after the point.
    """

    name: str
    method: str
    measure: Callable[[Table, Table], float | None]
    digits: int = 3
