"""Storage types of columns, by Arrow's names, and the numbers that they hold."""

from __future__ import annotations

import math
import re
from typing import Final

import numpy as np

DTYPES: Final = (
    "string", "bool", "float32", "float64",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
)  # fmt: skip
"""The types in which a column may be stored ("string" stands for all kinds of texts)."""
PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Arrow's units of time, and the number of each in a second."""
DATE_DTYPES: Final = ("date32", *(f"timestamp[{unit}]" for unit in PER_SECOND))
"""The types in which dates and times may be stored, if not as texts."""
DURATION_DTYPES: Final = tuple(f"duration[{unit}]" for unit in PER_SECOND)
"""The types in which durations may be stored, if not as texts."""
LARGEST: Final = 2.0**53
"""The largest absolute value of a number; up to here float64 holds every integer."""
_LARGEST_FLOAT32: Final = 3.4e38
NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
"""The spelling of categories that are numbers; Arrow reads all of these."""


def range_of_integers(dtype: str) -> tuple[int, int]:
    """The smallest and the largest number of an integer type such as "uint8"."""
    bits = int(dtype.lstrip("uint"))
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def number_of(text: str, dtype: str) -> float | None:
    """The number that a category stands for, if its dtype holds it and Arrow can read it."""
    if dtype in ("string", "bool") or not NUMBER.fullmatch(text):
        return None
    if "int" not in dtype:
        number = float(text)
        if dtype == "float32":
            number = float(np.float32(number)) if abs(number) < _LARGEST_FLOAT32 else math.inf
        return number if math.isfinite(number) else None
    if not text.lstrip("-").isdigit():
        return None
    least, most = range_of_integers(dtype)
    return int(text) if least <= int(text) <= most else None
