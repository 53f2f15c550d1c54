"""All distances between two tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ..table import Table
from .associations import ASSOCIATIONS
from .correlations import CORRELATIONS
from .marginals import MARGINALS, column_distances
from .metric import Metric
from .queries import QUERIES
from .wasserstein import WASSERSTEIN

METRICS: Final[tuple[Metric, ...]] = (
    CORRELATIONS,
    ASSOCIATIONS,
    *MARGINALS,
    QUERIES,
    WASSERSTEIN,
)
"""All metrics in display order. Dependence between columns comes first: it is lost first."""


@dataclass(frozen=True)
class Distances:
    """The distances between two tables.

    Attributes:
        figures: the figure of each metric by its name, if it applies.
        columns: total variation distance of each column's marginal.
    """

    figures: Mapping[str, float]
    columns: Mapping[str, float]


def distances(table: Table, other: Table) -> Distances:
    """Compute all metrics of a table.

    Args:
        table: rows under a schema.
        other: real rows under the same schema.
    """
    found = {metric.name: metric.measure(table, other) for metric in METRICS}
    figures = {name: value for name, value in found.items() if value is not None}
    return Distances(figures, column_distances(table, other))
