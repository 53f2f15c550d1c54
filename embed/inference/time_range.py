"""Between which bounds and in which units the dates, times or durations of a column are."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...common.display.representations import RedactedRepr
from ...common.schema.columns.dates import TimeUnit


@dataclass(repr=False)
class TimeRange(RedactedRepr):
    """What was seen so far.

    Attributes:
        lower: the least, in seconds; of dates and times since 1970.
        upper: the largest.
        units: those of which all are whole, the longest first.
    """

    lower: int = 2**62
    upper: int = -(2**62)
    units: list[TimeUnit] = field(default_factory=lambda: list(TimeUnit))

    def look_at(self, seconds: NDArray[np.int64]) -> None:
        """Take note of some more."""
        if len(seconds):
            self.lower = min(self.lower, int(seconds.min()))
            self.upper = max(self.upper, int(seconds.max()))
            self.units = [unit for unit in self.units if not (seconds % unit.seconds).any()]
