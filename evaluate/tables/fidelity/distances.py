"""All figures on how far two tables are apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ..table import Table
from .associations import ASSOCIATIONS
from .correlations import CORRELATIONS
from .marginals import (
    FINE_ONE_WAY,
    FINE_THREE_WAY,
    FINE_TWO_WAY,
    ONE_WAY,
    THREE_WAY,
    TWO_WAY,
    column_distances,
)
from .metric import Metric
from .queries import QUERIES
from .wasserstein import WASSERSTEIN

METRICS: Final[tuple[Metric, ...]] = (
    CORRELATIONS,
    ASSOCIATIONS,
    ONE_WAY,
    TWO_WAY,
    THREE_WAY,
    FINE_ONE_WAY,
    FINE_TWO_WAY,
    FINE_THREE_WAY,
    QUERIES,
    WASSERSTEIN,
)
"""In the order in which they are shown. How columns go together comes first: it is lost first."""


@dataclass(frozen=True)
class Distances:
    """How far two tables are apart.

    Attributes:
        figures: of each metric by its name; those without a meaning are left out.
        columns: column to the total variation distance of its own marginal.
    """

    figures: Mapping[str, float]
    columns: Mapping[str, float]


def distances(table: Table, other: Table) -> Distances:
    """Measure a table by all metrics.

    Args:
        table: rows under a schema.
        other: real rows under the same schema.
    """
    found = {metric.name: metric.measure(table, other) for metric in METRICS}
    figures = {name: value for name, value in found.items() if value is not None}
    return Distances(figures, column_distances(table, other))
