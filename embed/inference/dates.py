"""The format, bounds and steps of a column of dates."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ...common.display.representations import RedactedRepr
from ...common.schema.columns.column import Column
from ...common.schema.columns.dates import DAY, ISO_DATE, ISO_TIME, DateFormat, TimeUnit
from ...common.schema.columns.dtypes import DATE_DTYPES, PER_SECOND
from ...common.schema.columns.kinds import ColumnKind, Missing
from .time_range import TimeRange

if TYPE_CHECKING:
    import pyarrow as pa

_DATES: Final = (
    ISO_DATE, "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%d %b %Y", "%d-%b-%Y",
)  # fmt: skip
"""Formats in order: the first that fits all values is drafted."""
_TIMES: Final = ("%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%H:%M:%SZ")
_FORMATS: Final = (*_DATES, *(f"{d}{by}{t}" for d in _DATES for by in " T" for t in _TIMES))
_READERS: Final = {text: DateFormat(text) for text in _FORMATS}


@dataclass(repr=False)
class SeenDates(RedactedRepr):
    """What is known so far about a column that may hold dates or times.

    Attributes:
        ranges: maps each format to the times that it reads in all texts so far; empty if no format
            fits. A column that is stored as dates or times has one format.
        different: pairs of formats that read other dates in a text.
    """

    ranges: dict[str, TimeRange] = field(
        default_factory=lambda: {text: TimeRange() for text in _FORMATS}
    )
    different: set[frozenset[str]] = field(default_factory=set)

    def observe(self, values: pa.Array) -> None:
        """Process some more values, none of which is missing.

        Args:
            values: texts, or dates and times without a time zone.
        """
        import pyarrow
        from pyarrow import compute, types

        if types.is_temporal(values.type):
            days = types.is_date32(values.type)
            whole = values.cast(pyarrow.int32() if days else pyarrow.int64())
            steps = whole.to_numpy(zero_copy_only=False).astype(np.int64)
            self._keep({ISO_TIME: steps * DAY if days else steps // PER_SECOND[values.type.unit]})
            return
        texts = compute.unique(values)
        for first in texts[:1].to_pylist():  # most columns hold no dates, as the first text shows
            likely = [text for text in self.ranges if _READERS[text].looks_like(first)]
            self.ranges = {text: self.ranges[text] for text in likely}
        self._keep({text: _READERS[text].parse(texts) for text in self.ranges})

    def _keep(self, seconds: dict[str, NDArray[Any]]) -> None:
        self.ranges = {text: self.ranges[text] for text in seconds if _all_are_dates(seconds[text])}
        for text, found in self.ranges.items():
            found.observe(seconds[text].astype(np.int64))
        for one, other in combinations(self.ranges, 2):
            if not np.array_equal(seconds[one], seconds[other]):
                self.different.add(frozenset((one, other)))

    def reads(self, text: str, *, stored: bool) -> bool:
        """Whether a text is a date like those seen so far.

        Args:
            text: any text.
            stored: whether the values are not stored as texts, so that any format will do.
        """
        import pyarrow

        texts = pyarrow.array([text], pyarrow.string())
        formats = _FORMATS if stored and self.ranges else tuple(self.ranges)
        return any(_all_are_dates(_READERS[each].parse(texts)) for each in formats)

    def describe(self, name: str, dtype: str | None, *, missing: bool) -> Column | None:
        """The drafted column, or None if it does not hold two different dates.

        Args:
            name: the column's name.
            dtype: its type in the file; None for CSV.
            missing: whether there are missing values.
        """
        text, found = next(iter(self.ranges.items()), ("", TimeRange()))
        if found.lower >= found.upper:
            return None
        is_date = dtype == "date32" or (dtype not in DATE_DTYPES and text in _DATES)
        unit = TimeUnit.DAY if is_date else found.units[0]
        return Column(
            name,
            ColumnKind.DATE if is_date else ColumnKind.DATETIME,
            dtype or ("date32" if is_date else "timestamp[ms]"),
            found.lower // unit.seconds,
            found.upper // unit.seconds,
            missing=Missing.INDICATOR if missing else Missing.REFUSED,
            unit=None if unit is (TimeUnit.DAY if is_date else TimeUnit.SECOND) else unit,
            format="" if text in (ISO_DATE, ISO_TIME) else text,
        )

    @property
    def ambiguous(self) -> bool:
        """Whether another format reads other dates in the same texts."""
        return any(frozenset(pair) in self.different for pair in combinations(self.ranges, 2))


def _all_are_dates(seconds: NDArray[Any]) -> bool:
    return not np.isnan(seconds.astype(np.float64)).any()
