"""Means and standard deviations of numbers: which column's are farthest from those of real rows.

A mean distance over all columns, each in parts of its declared range, hides that a few rows far
from all others have made one column's mean useless.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ....common.schema.columns.column import Column
from ..table import Table


@dataclass(frozen=True)
class ColumnMoments:
    """The mean and the standard deviation of a column, and those of real rows.

    Attributes:
        column: its name.
        mean: of the rows.
        real_mean: of real rows.
        deviation: standard deviation of the rows.
        real_deviation: that of real rows, above 0.
    """

    column: str
    mean: float
    real_mean: float
    deviation: float
    real_deviation: float

    @property
    def off(self) -> float:
        """How far the mean is off, in real standard deviations, or the deviation, as a logarithm.

        The larger one counts; infinity if all values of the column are equal.
        """
        if not self.deviation:
            return math.inf
        of_mean = abs(self.mean - self.real_mean) / self.real_deviation
        return max(of_mean, abs(math.log(self.deviation / self.real_deviation)))

    def __str__(self) -> str:
        """A readable clause."""
        return (
            f"{self.column} has mean {self.mean:.3g} (real {self.real_mean:.3g}) and standard "
            f"deviation {self.deviation:.3g} (real {self.real_deviation:.3g})"
        )


def farthest_moments(table: Table, real: Table) -> ColumnMoments | None:
    """The moments of the numeric column that are farthest off; None if there is none to compare.

    Args:
        table: rows under a schema.
        real: real rows under the same schema.
    """
    found = [
        moments
        for column in table.schema.columns
        if (moments := _of_column(table, real, column)) is not None
    ]
    return max(found, key=lambda moments: moments.off, default=None)


def _of_column(table: Table, real: Table, column: Column) -> ColumnMoments | None:
    """None for categories, dates and times, and where all values are missing or equal."""
    if not column.kind.numeric or column.kind.timed:
        return None
    values = [one.columns[column.name] for one in (table, real)]
    there, of_real = (some[~np.isnan(some)] for some in values)
    if not len(there) or not len(of_real) or not of_real.std():
        return None
    means, deviations = ([float(of(some)) for some in (there, of_real)] for of in (np.mean, np.std))
    return ColumnMoments(column.name, *means, *deviations)
