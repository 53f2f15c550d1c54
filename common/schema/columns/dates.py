"""Dates and times: their texts, and their encoding as integer steps since 1970.

Years are those of the Gregorian calendar, 1 to 9999. There are no time zones and no leap seconds: a
time is that of a clock on the wall.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ...errors import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

ISO_DATE: Final = "%Y-%m-%d"
ISO_TIME: Final = "%Y-%m-%d %H:%M:%S"
_LONGEST_FORMAT: Final = 40
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun",
                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")  # fmt: skip
_DIRECTIVES: Final = {
    "Y": "[0-9]{4}", "m": "[0-9]{1,2}", "b": "[A-Za-z]{3}", "d": "[0-9]{1,2}",
    "H": "[0-9]{1,2}", "M": "[0-9]{2}", "S": "[0-9]{2}", "f": "[0-9]{1,9}",
}  # fmt: skip
"""The texts that each directive matches; b is an English month, f a fraction of a second."""
_WRITTEN: Final = {
    "Y": "{0.year:04d}", "m": "{0.month:02d}", "b": "{1}", "d": "{0.day:02d}",
    "H": "{0.hour:02d}", "M": "{0.minute:02d}", "S": "{0.second:02d}", "f": "000000",
}  # fmt: skip
"""How each is written, of a time and the name of its month."""
_NEEDS: Final = {"S": "M", "f": "S", "M": "H"}
DAY: Final = 86_400


class TimeUnit(Enum):
    """The steps to which times are truncated."""

    DAY = "day"
    HOUR = "hour"
    MINUTE = "minute"
    SECOND = "second"

    @property
    def seconds(self) -> int:
        """The seconds in a step."""
        return {TimeUnit.DAY: DAY, TimeUnit.HOUR: 3600, TimeUnit.MINUTE: 60, TimeUnit.SECOND: 1}[
            self
        ]


def directives(text: str) -> tuple[tuple[str, str], ...]:
    """The literal parts of a format, each with the directive that follows it; "" at the end."""
    found = re.findall(r"([^%]*)(?:%(.)|$)", text, re.DOTALL)
    return tuple((signs, name) for signs, name in found if signs or name)


def matches(texts: pa.Array, pattern: str) -> tuple[NDArray[np.bool_], dict[str, pa.Array]]:
    """Which texts (n,) match a pattern, bool (n,), and the named parts of those that do."""
    from pyarrow import compute

    found = compute.extract_regex(compute.utf8_trim_whitespace(texts), f"^{pattern}$")
    names = [part.name for part in found.type]
    there = found.is_valid().to_numpy(zero_copy_only=False)
    return there, dict(zip(names, found.drop_null().flatten(), strict=True))


@dataclass(frozen=True)
class DateFormat:
    """The format of dates: `%Y %m %d %H %M %S`, `%b` (Jan), `%f` (fractions), and literal text.

    Leading zeros may be absent when reading, and are always written. Fractions of a second are
    ignored when reading, and written as 0. A `Z` is a literal character like any other.

    Attributes:
        text: the format, such as "%d.%m.%Y".
    """

    text: str

    def __post_init__(self) -> None:
        if not 0 < len(self.text) <= _LONGEST_FORMAT or not self.text.isprintable():
            raise SchemaError(f"format: a text of 1 to {_LONGEST_FORMAT} characters")
        names = [name for _, name in self._parts if name]
        understood = "".join(text + (f"%{name}" if name else "") for text, name in self._parts)
        if understood != self.text or not set(names) <= set(_DIRECTIVES):
            known = " ".join(f"%{name}" for name in _DIRECTIVES)
            raise SchemaError(f"format {self.text!r}: known are {known}; time zones are not read")
        if len(set(names)) < len(names) or ("m" in names) == ("b" in names):
            raise SchemaError(f"format {self.text!r}: year, month and day, each of them once")
        if not {"Y", "d"} <= set(names) or any(
            later in names and first not in names for later, first in _NEEDS.items()
        ):
            raise SchemaError(f"format {self.text!r}: it leaves out a part of the date or time")

    @cached_property
    def _pattern(self) -> str:
        """A regular expression that the texts match, with a name for each part of the date."""
        return "".join(
            re.escape(text) + (f"(?P<{name}>{_DIRECTIVES[name]})" if name else "")
            for text, name in self._parts
        )

    @cached_property
    def _parts(self) -> tuple[tuple[str, str], ...]:
        """See `directives`."""
        return directives(self.text)

    @property
    def has_time(self) -> bool:
        """Whether it includes the hour."""
        return any(name == "H" for _, name in self._parts)

    def looks_like(self, text: str) -> bool:
        """Whether a single text has this form, though it may say a 32nd of a month."""
        return re.fullmatch(self._pattern, text.strip()) is not None

    def parse(self, texts: pa.Array) -> NDArray[np.float64]:
        """Seconds since 1970 of texts (n,), without fractions; NaN where a text is not a date."""
        import pyarrow
        from pyarrow import compute

        dates, parts = matches(texts, self._pattern)
        seconds = np.full(len(texts), np.nan)
        if not dates.any():
            return seconds

        def number(name: str) -> NDArray[np.int64]:
            if name not in parts:
                return np.zeros(int(dates.sum()), dtype=np.int64)
            values: NDArray[np.int64] = parts[name].cast("int64").to_numpy(zero_copy_only=False)
            return values

        if "b" in parts:
            names = pyarrow.array([name.lower() for name in _MONTHS])
            place = compute.index_in(compute.utf8_lower(parts["b"]), value_set=names)
            month = place.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
        else:
            month = number("m")
        year, day = number("Y"), number("d")
        hour, minute, second = number("H"), number("M"), number("S")
        first = ((year - 1970) * 12 + month - 1).astype("M8[M]")
        days = first.astype("M8[D]").astype(np.int64) + day - 1
        there = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
        there &= days.astype("M8[D]").astype("M8[M]") == first
        there &= (hour < 24) & (minute < 60) & (second < 60)
        clock = hour * 3600 + minute * 60 + second
        seconds[dates] = np.where(there, (days * DAY + clock).astype(np.float64), np.nan)
        return seconds

    def write(self, seconds: NDArray[np.int64]) -> list[str]:
        """The texts of times (n,) in seconds since 1970."""
        different, place = np.unique(seconds, return_inverse=True)
        layout = "".join(
            text.replace("{", "{{").replace("}", "}}") + (_WRITTEN[name] if name else "")
            for text, name in self._parts
        )
        times: list[datetime] = different.astype("M8[s]").astype(datetime).tolist()
        texts = [layout.format(time, _MONTHS[time.month - 1]) for time in times]
        return [texts[index] for index in place.tolist()]


def seconds_of(text: str) -> int:
    """Seconds since 1970 of a date or time in ISO 8601, such as 2000-01-31T12:00.

    Raises:
        ValueError: it is not one, or has a time zone or a fraction of a second.
    """
    time = datetime.fromisoformat(text)
    if time.tzinfo is not None or time.microsecond:
        raise ValueError(text)
    return int((time - datetime(1970, 1, 1)).total_seconds())


def iso_text(seconds: int, *, with_time: bool) -> str:
    """A date, or a date and time, in ISO 8601."""
    return str(np.datetime64(seconds, "s").astype(f"M8[{'s' if with_time else 'D'}]"))
