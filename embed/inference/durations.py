"""The format, bounds and steps of a column of durations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from ...common.display.representations import RedactedRepr
from ...common.schema.columns.column import Column
from ...common.schema.columns.dates import TimeUnit
from ...common.schema.columns.dtypes import PER_SECOND
from ...common.schema.columns.durations import LONGEST, DurationFormat
from ...common.schema.columns.kinds import ColumnKind, Missing
from .time_range import TimeRange

if TYPE_CHECKING:
    import pyarrow as pa

_FORMATS: Final = (
    "", "%H:%M:%S", "%H:%M", "%d days %H:%M:%S", "%H:%M:%S.%f", "%d days %H:%M:%S.%f", "%d days",
)  # fmt: skip
_READERS: Final = {text: DurationFormat(text) for text in _FORMATS}


@dataclass(repr=False)
class SeenDurations(RedactedRepr):
    """What is known so far about a column that may hold durations.

    Attributes:
        formats: the formats that fit all texts so far. A column that is stored as durations has the
            first one.
        range: the range of the durations.
    """

    formats: tuple[str, ...] = _FORMATS
    range: TimeRange = field(default_factory=TimeRange)

    def observe(self, values: pa.Array) -> None:
        """Process some more values, none of which is missing.

        Args:
            values: texts, or durations.
        """
        import pyarrow
        from pyarrow import compute, types

        if types.is_duration(values.type):
            parts = values.cast(pyarrow.int64()).to_numpy(zero_copy_only=False)
            self.range.observe(parts // PER_SECOND[values.type.unit])
            return
        texts = compute.unique(values)
        for first in texts[:1].to_pylist():  # most columns hold none, as the first text shows
            self.formats = tuple(text for text in self.formats if _READERS[text].looks_like(first))
        read = {text: _READERS[text].parse(texts) for text in self.formats}
        self.formats = tuple(text for text in read if not np.isnan(read[text]).any())
        if self.formats:
            self.range.observe(read[self.formats[0]].astype(np.int64))

    def reads(self, text: str, *, stored: bool) -> bool:
        """Whether a text is a duration like those seen so far.

        Args:
            text: any text.
            stored: whether the values are not stored as texts, so that any format will do.
        """
        import pyarrow

        texts = pyarrow.array([text], pyarrow.string())
        formats = _FORMATS if stored and self.formats else self.formats
        return any(not np.isnan(_READERS[each].parse(texts)).any() for each in formats)

    def describe(self, name: str, dtype: str | None, *, missing: bool) -> Column | None:
        """The drafted column, or None if it does not hold two different durations.

        Args:
            name: the column's name.
            dtype: its type in the file; None for CSV.
            missing: whether there are missing values.
        """
        found = self.range
        if not self.formats or not -LONGEST <= found.lower < found.upper <= LONGEST:
            return None
        unit = found.units[0]
        return Column(
            name,
            ColumnKind.DURATION,
            dtype or "string",
            found.lower // unit.seconds,
            found.upper // unit.seconds,
            missing=Missing.INDICATOR if missing else Missing.REFUSED,
            unit=None if unit is TimeUnit.SECOND else unit,
            format=self.formats[0],
        )
