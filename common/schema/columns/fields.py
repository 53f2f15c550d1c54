"""What is said of a column, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...display.representations import BriefRepr
from ..origin import Origin
from .dates import ISO_DATE, ISO_TIME, DateFormat, TimeUnit, iso_text
from .dtypes import number_of
from .durations import DurationFormat
from .granule import Granule, granule_of
from .kinds import ColumnKind, Missing, Transform


@dataclass(frozen=True, repr=False)
class ColumnFields(BriefRepr):
    """What is publicly known about a column's values. `Column` says what the fields mean."""

    name: str
    kind: ColumnKind
    dtype: str
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] = ()
    other: str | None = None
    transform: Transform = Transform.NONE
    missing: Missing = Missing.REFUSED
    origin: Origin = Origin.DECLARED
    kind_origin: Origin = Origin.DECLARED
    step: float | None = None
    decimals: int | None = None
    values: tuple[float, ...] = ()
    unit: TimeUnit | None = None
    format: str = ""
    between: tuple[str, ...] = ()

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers that its categories stand for, as its dtype holds them; empty for texts."""
        found = (number_of(category, self.dtype) for category in self.categories)
        return tuple(number for number in found if number is not None)

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest value of a numeric column."""
        assert self.lower is not None
        assert self.upper is not None
        return self.lower, self.upper

    @property
    def granule(self) -> Granule | None:
        """The number of which all values are multiples; None if there is none."""
        return granule_of(self.kind, self.step, self.decimals)

    @property
    def is_rounded(self) -> bool:
        """Whether `rounded` changes numbers: they have a granule, or are listed."""
        return bool(self.values) or self.granule is not None

    def rounded(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The nearest of the listed values, or multiples of the granule; NaN stays NaN."""
        if self.values:
            nearest = np.array(self.values, dtype=np.float64)[self.ranks(numbers)]
            return np.where(np.isnan(numbers), np.nan, nearest)
        return numbers if self.granule is None else self.granule.rounded(numbers)

    def ranks(self, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        """The index of the nearest of the listed values; halfway, of the larger one."""
        values = np.array(self.values, dtype=np.float64)
        # Halves are exact, and IEEE 754 fixes sums: the same on every processor. There may be no
        # number between two values.
        middles = np.maximum(values[:-1] / 2 + values[1:] / 2, np.nextafter(values[:-1], np.inf))
        return np.searchsorted(middles, numbers, side="right").astype(np.int64)

    @property
    def different(self) -> int | None:
        """The number of values that have a place each, at equal distances.

        These are listed values, or those that differ by its granule, without a transform.
        """
        if self.values:
            return len(self.values)
        if self.granule is None or self.transform is not Transform.NONE:
            return None
        lower, upper = self.bounds
        return self.granule.steps(upper - lower) + 1

    @property
    def seconds(self) -> int:
        """The seconds in a step of dates, times and durations."""
        if self.kind is ColumnKind.DATE:
            return TimeUnit.DAY.seconds
        return (self.unit or TimeUnit.SECOND).seconds

    @property
    def date_format(self) -> DateFormat:
        """How texts write dates and times."""
        usual = ISO_DATE if self.kind is ColumnKind.DATE else ISO_TIME
        return DateFormat(self.format or usual)

    @property
    def duration_format(self) -> DurationFormat:
        """How texts write durations."""
        return DurationFormat(self.format)

    @property
    def choices(self) -> int:
        """Number of categories, including that of missing values; 0 for a numeric column."""
        if self.kind.numeric:
            return 0
        return len(self.categories) + (self.missing is Missing.CATEGORY)

    def bound_text(self, steps: int) -> str:
        """A bound of dates, times or durations, given in steps, as ISO 8601 text."""
        seconds = steps * self.seconds
        if not self.kind.temporal:
            return DurationFormat().write(np.array([seconds]))[0]
        return iso_text(seconds, with_time=self.kind is ColumnKind.DATETIME)
