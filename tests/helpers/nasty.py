"""Values that programs read in more than one way, or turn into others beside some."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pandas as pd

_ZONE: Final = dt.timezone(dt.timedelta(hours=5))
_LARGE: Final = (2**24 + 1, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64)
_NUMBERS: Final[tuple[Any, ...]] = (
    0, 1, -1, 7, 12, -9, 0.0, -0.0, 1.0, 2.5, 0.1, -9.9, 1e5, 1e-5, 1e300, 5e-324,
    float("inf"), float("-inf"), *_LARGE, *(-large for large in _LARGE),
    np.int8(1), np.uint8(7), np.int16(-9), np.int64(2**53 + 1), np.uint64(2**63 + 5),
    np.float16(0.1), np.float32(0.1), np.float32(16777217), np.longdouble("0.1"),
    Decimal(1), Decimal("1.00"), Decimal("0.1"), Decimal("-9.90"), Decimal("1e-20"),
    Decimal("1e30"), Decimal("123456789012345678901234567890.123456789"), Decimal("NaN"),
    Decimal("Infinity"), Decimal("-0"), 1 + 2j,
)  # fmt: skip
_MISSING: Final[tuple[Any, ...]] = (
    None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT"),
    np.timedelta64("NaT", "s"),
)  # fmt: skip
_TIMES: Final[tuple[Any, ...]] = (
    dt.date(2020, 2, 3), dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1999, 9, 9),
    dt.datetime(2020, 2, 3), dt.datetime(2020, 2, 3, 4, 5, 6, 789), dt.datetime(1500, 1, 1),
    dt.datetime(9999, 12, 31, 23, 59, 59), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(2020, 2, 3, 4, 5, tzinfo=dt.UTC), dt.datetime(2020, 2, 3, 4, 5, tzinfo=_ZONE),
    pd.Timestamp("2020-02-03 04:05:06.123456789"), pd.Timestamp("2020-02-03", tz="UTC"),
    pd.Timestamp("1969-12-31 23:59:59.999999999"),
    np.datetime64("2020-02-03"), np.datetime64("2020-02-03T04:05", "m"),
    np.datetime64("1969-12-31T23:59:59.999", "ms"), np.datetime64("2020-02-03T04:05", "ns"),
    dt.time(4, 5), pd.Period("2020-02"),
)  # fmt: skip
_LENGTHS: Final[tuple[Any, ...]] = (
    dt.timedelta(hours=3, seconds=9), dt.timedelta(seconds=-1), dt.timedelta(microseconds=-1),
    dt.timedelta(days=200_000), pd.Timedelta(1, "ns"), pd.Timedelta(-1, "ns"),
    np.timedelta64(3, "D"), np.timedelta64(3, "s"), np.timedelta64(3, "ns"),
)  # fmt: skip
_OTHERS: Final[tuple[Any, ...]] = (
    True, False, np.True_, np.str_("1"), b"1", b"\xff", bytearray(b"a"), [], [1], (1, 2), {},
    {"a": 1}, {1}, object, np.array(5), np.array([1, 2]), range(2), "\udc80",
)  # fmt: skip
TEXTS: Final = (
    "", " ", "a", "b", "A", "a ", "\ta", "x", "0", "1", "2", "7", "-9", "-9.9", "1.0", "01", "+1",
    " 7", "7 ", "1e5", "1E0", "0x10", "1_000", "1,5", "1,000", "1.5", ".5", "5.", "0.1", "-0",
    "0.1000000000000000055511151231257827", "9007199254740993", "18446744073709551616", "1e400",
    "NaN", "nan", "NA", "N/A", "null", "None", "inf", "-Infinity", "true", "True", "TRUE", "yes",
    "unknown", "\uff11", "\u0661", "\u22121", "1\u00a0000", "\ufeff1", "1\u200b", "\u2028",
    "\u0085", "a\0", "\0", "'", '"', '""', '"a', 'a"b', '"a"', ",", "a,b", ";", "a\tb", "\\", "#",
    "=1", "a\nb", "a\rb", "a\r\nb", "\n", "\r", "\r\n", "e\u0301", "\u00e9", "\U0001f600",
    "x" * 300, "2020-02-03", "2020-2-3", "03.02.2020", "02/03/2020", "20200203", "2020-02-30",
    "1999-09-09", "2020-02-03 04:05", "2020-02-03T04:05:06Z", "2020-02-03 04:05:06.7",
    "0000-01-01", "PT3H9S", "P1D", "-PT1S", "P1M", "03:00:09", "-00:00:01", "25:00:00",
)  # fmt: skip
"""Most are numbers, truth values, dates, durations, missing or several values to some program."""
VALUES: Final = (*_NUMBERS, *_MISSING, *_TIMES, *_LENGTHS, *_OTHERS, *TEXTS)
"""What may stand in a cell of a table in memory."""
LABELS: Final[tuple[Any, ...]] = (
    0, 1, 2, 3, -1, 7, 0.0, 1.0, 0.5, float("nan"), float("inf"), 2**24 + 1, 2**53, 2**53 + 1,
    2**63 - 1, 2**63, 2**64, True, False, None, np.uint8(1), np.uint64(2**63), np.float32(1),
    np.float16(1), np.True_, "a", "b", "0", "1", "01", "1.0", "1e0", " 1", "1 ", "x", "x\0", " ",
    "true", "True", "nan", "-1", "+1", "\uff11", 'a"', "a,b", b"1", [1], 1j, pd.NA, "x" * 300,
    np.datetime64("2020-01-01"),
)  # fmt: skip
"""What a program may take for the label of an image."""
