"""The bounds and the unit of a column's dates, times or durations."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...common.display.representations import RedactedRepr
from ...common.schema.columns.dates import TimeUnit


@dataclass(repr=False)
class TimeRange(RedactedRepr):
    """What is known so far about their range.

    Attributes:
        lower: the smallest value, in seconds (since 1970 for dates and times).
        upper: the largest value.
        units: the units of which all values are whole multiples, the longest first.
    """

    lower: int = 2**62
    upper: int = -(2**62)
    units: list[TimeUnit] = field(default_factory=lambda: list(TimeUnit))

    def observe(self, seconds: NDArray[np.int64]) -> None:
        """Process some more values."""
        if len(seconds):
            self.lower = min(self.lower, int(seconds.min()))
            self.upper = max(self.upper, int(seconds.max()))
            self.units = [unit for unit in self.units if not (seconds % unit.seconds).any()]
