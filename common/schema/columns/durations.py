"""Durations: their texts, and their encoding in seconds.

A day has 24 hours. Months and years are not allowed, because they have no fixed length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ...errors import SchemaError
from .dates import DAY, directives, matches

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST: Final = 10**7 * DAY
"""The longest duration, in seconds: 27,000 years."""
_LONGEST_FORMAT: Final = 40
_SECONDS: Final = {"W": 7 * DAY, "d": DAY, "H": 3600, "M": 60, "S": 1}
_LIMITS: Final = {"H": 24, "M": 60, "S": 60}
"""The limit of every part but the first."""
_ORDER: Final = "dHMSf"
_ANY: Final = "[0-9]{1,12}"
_ISO: Final = (
    f"P(?:(?P<W>{_ANY})W)?(?:(?P<d>{_ANY})D)?"
    f"(?:T(?:(?P<H>{_ANY})H)?(?:(?P<M>{_ANY})M)?(?:(?P<S>{_ANY})(?:[.][0-9]{{1,9}})?S)?)?"
)


@dataclass(frozen=True)
class DurationFormat:
    """The format of durations: ISO 8601, or `%d %H %M %S %f` and literal text.

    The first part may be any number, so `%H:%M:%S` writes two days as 48:00:00. A minus sign comes
    before everything. Fractions of a second are ignored when reading, and written as 0.

    Attributes:
        text: the format, such as "%H:%M:%S"; if empty, ISO 8601 as in P2DT3H4M5S.
    """

    text: str = ""

    def __post_init__(self) -> None:
        if len(self.text) > _LONGEST_FORMAT or not self.text.isprintable():
            raise SchemaError(f"format: a text of up to {_LONGEST_FORMAT} characters")
        names = self._names
        understood = "".join(text + (f"%{name}" if name else "") for text, name in self._parts)
        if self.text and (understood != self.text or names[:1] in ("", "f") or names not in _ORDER):
            raise SchemaError(
                f"format {self.text!r}: known are %d %H %M %S %f, in this order and none left out "
                "between others"
            )

    @cached_property
    def _parts(self) -> tuple[tuple[str, str], ...]:
        """See `directives`."""
        return directives(self.text)

    @property
    def _names(self) -> str:
        return "".join(name for _, name in self._parts)

    @property
    def finest(self) -> int:
        """The number of seconds in the smallest part that it writes."""
        if not self.text:
            return 1
        return min(_SECONDS.get(name, 1) for name in self._names)

    @cached_property
    def _pattern(self) -> str:
        """The pattern that all texts match, with groups for the sign and for each part."""
        inner = "".join(
            re.escape(text) + (f"(?P<{name}>{self._digits(name)})" if name else "")
            for text, name in self._parts
        )
        return f"(?P<sign>-?)(?:{inner if self.text else _ISO})"

    def _digits(self, name: str) -> str:
        return _ANY if name in (self._names[0], "f") else "[0-9]{1,2}"

    def looks_like(self, text: str) -> bool:
        """Whether a single text has this form, though it may say 99 minutes."""
        return re.fullmatch(self._pattern, text.strip()) is not None

    def parse(self, texts: pa.Array) -> NDArray[np.float64]:
        """Seconds of texts (n,), without fractions; NaN where a text is not a duration."""
        import pyarrow
        from pyarrow import compute

        there, parts = matches(texts, self._pattern)
        negative = compute.equal(parts.pop("sign"), "-").to_numpy(zero_copy_only=False)
        empty = pyarrow.scalar("0")
        numbers = {
            name: compute.if_else(compute.equal(values, ""), empty, values)
            .cast(pyarrow.int64())
            .to_numpy(zero_copy_only=False)
            for name, values in parts.items()
        }
        said = np.zeros(len(negative), dtype=np.bool_)
        for values in parts.values():
            said |= compute.not_equal(values, "").to_numpy(zero_copy_only=False)
        total = self._total(numbers, len(negative))
        signed = np.where(negative, -total, total)
        seconds = np.full(len(texts), np.nan)
        seconds[there] = np.where(said, signed, np.nan)
        return seconds

    def _total(self, numbers: Mapping[str, NDArray[np.int64]], count: int) -> NDArray[np.float64]:
        """The total seconds of the parts; NaN where a part but the first reaches its limit."""
        total, fine = np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.bool_)
        for name, values in numbers.items():
            if name == "f":
                continue
            total += values * _SECONDS[name]
            if self.text and name != self._names[0]:
                fine &= values < _LIMITS[name]
        return np.where(fine, total.astype(np.float64), np.nan)

    def write(self, seconds: NDArray[np.int64]) -> list[str]:
        """The texts of durations (n,) in seconds."""
        different, place = np.unique(seconds, return_inverse=True)
        texts = [self._written(value) for value in different.tolist()]
        return [texts[index] for index in place.tolist()]

    def _written(self, seconds: int) -> str:
        sign, left = "-" if seconds < 0 else "", abs(seconds)
        if not self.text:
            days, left = divmod(left, DAY)
            hours, minutes, rest = left // 3600, left // 60 % 60, left % 60
            parts = {"H": hours, "M": minutes, "S": rest}
            clock = "".join(f"{number}{name}" for name, number in parts.items() if number)
            whole = (f"{days}D" if days else "") + (f"T{clock}" if clock else "")
            return f"{sign}P{whole or 'T0S'}"
        said = ""
        for place, (text, name) in enumerate(self._parts):
            said += text
            if name == "f":
                said += "000000"
            elif name:
                number, left = divmod(left, _SECONDS[name])
                said += f"{number:02d}" if place or name != "d" else str(number)
        return sign + said


def seconds_of_duration(text: str) -> int:
    """Seconds of a duration in ISO 8601, such as P2DT12H.

    Raises:
        ValueError: it is not one, or has a fraction of a second.
    """
    found = re.fullmatch(f"(-?)(?:{_ISO})", text)
    parts = {name: int(n) for name, n in (found.groupdict() if found else {}).items() if n}
    if found is None or not parts or "." in text:
        raise ValueError(text)
    total = sum(number * _SECONDS[name] for name, number in parts.items())
    return -total if found[1] else total
