"""What a distance between two tables is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..table import Table


@dataclass(frozen=True)
class Metric:
    """A figure that says how far two tables under one schema are apart: 0 if they are alike.

    Attributes:
        name: of the figure, in tables and reports.
        method: what it is, for whoever reads the figures.
        measure: takes both tables; None where the figure has no meaning.
        digits: to show after the point.
    """

    name: str
    method: str
    measure: Callable[[Table, Table], float | None]
    digits: int = 3
