"""Texts that a person reads as numbers or times, but that dpntk does not read as such.

Nothing sensible can be drafted for a column of them, and the owner is told how to write them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import Final, Protocol

from ...common.arguments import argument
from ...common.schema.csv_format import COMMA, POINT, CsvFormat

_WITH_COMMA: Final = re.compile(r"\s*[+-]?[0-9]+(,[0-9]+)?\s*")
_WITH_SIGNS: Final = re.compile(
    r"\s*[+-]?[$€£¥]?\s*[+-]?[0-9][0-9.,'\u2019\u00a0\u202f]*\s*[$€£¥%]?\s*"
)
"""Texts that a person would read as numbers: grouped digits, amounts of money, percentages."""
_WITH_GROUPS: Final = re.compile(r"\s*[+-]?[0-9]{1,3}(,[0-9]{3})*\s*")
_SHORT_YEAR: Final = re.compile(r"\s*([0-9]{1,2})([./-])([0-9]{1,2})\2[0-9]{2}(\s.*|\s*)")
"""Texts that a person would read as dates with a year of two digits."""
_HALF_DAY: Final = re.compile(r".*[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?\s*[AaPp]\.?[Mm]\.?\s*")
_LAST_DAY: Final = 31
_LAST_MONTH: Final = 12
_BESIDE_TEXTS: Final = 50
"""From this many different numbers on, they are measurements, not codes, whatever texts stand
beside them."""


class Texts(Protocol):
    """The different values of a column.

    Attributes:
        dtype: their type in the file; None for CSV, which has no types.
        form: how a CSV file is written.
        numeric: whether all may be numbers.
        values: as texts.
    """

    dtype: str | None
    form: CsvFormat
    numeric: bool
    values: set[str]


def disguise_of(column: Texts) -> str:
    """Why values are numbers or times in disguise, and how to write them; "" if they are not."""
    if _are_texts(column) and all(map(_is_short_date, column.values)):
        return (
            "they look like dates with a year of two digits (write it with four, as in 2023-05-02)"
        )
    if _are_texts(column) and all(map(_HALF_DAY.fullmatch, column.values)):
        return "they look like times with AM and PM (write 18:39 for 6:39 PM)"
    if needs_commas(column):
        say = argument("decimal", ",")
        decimal = f"they look like numbers with a decimal comma (if they are, say {say}"
        groups = "; if it is between thousands, write 12345 for 12,345"
        return f"{decimal}{groups if has_groups(column.values) else ''})"
    if _read_as_text(column) and all(map(_WITH_SIGNS.fullmatch, column.values)):
        one, grouped, mark = "1234.5", "1,234.5", "point"
        if column.form.decimal == COMMA:
            one, grouped, mark = "1234,5", "1.234,5", "comma"
        return (
            f"they look like numbers with signs in them (write {one} for {grouped}, for "
            f"${one} and for {one}%; the decimal mark of this file is the {mark})"
        )
    if _read_as_text(column) and _are_mostly_numbers(column.values):
        return (
            "they hold many numbers and a few texts, as <0.5 and n/a are (if these stand for a "
            f"value that is not there, name them with {argument('missing')}, and all others "
            "that do; if the numbers are codes, describe it as categories by hand; otherwise "
            "write numbers in the place of the texts)"
        )
    return ""


def needs_commas(column: Texts) -> bool:
    """Whether the values of a CSV file would be numbers with a decimal comma."""
    if column.dtype is not None or column.numeric or column.form.decimal != POINT:
        return False
    return bool(column.values) and all(map(has_comma, column.values))


def has_comma(text: str) -> bool:
    """Whether a text is a whole number, or one with a decimal comma."""
    return _WITH_COMMA.fullmatch(text) is not None


def has_groups(texts: Collection[str]) -> bool:
    """Whether commas are between groups of three digits wherever there are some."""
    return all(map(_WITH_GROUPS.fullmatch, texts))


def is_number(text: str) -> bool:
    """Whether a text is a number, with a point or a decimal comma."""
    return number_of(text.replace(COMMA, POINT)) is not None


def may_be_number(text: str) -> bool:
    """Whether some program takes a text for a number, be it nan, inf or 1_000."""
    return _float_of(text.replace(COMMA, POINT)) is not None


def number_of(text: str) -> float | None:
    """The number that a text is; None for words such as nan, and for Python's 1_000."""
    number = _float_of(text)
    if number is None or not math.isfinite(number) or "_" in text:
        return None
    return number


def _float_of(text: str) -> float | None:
    """What Python takes a text for; None if for no number."""
    try:
        return float(text)
    except ValueError:
        return None


def _are_texts(column: Texts) -> bool:
    return column.dtype in (None, "string") and not column.numeric and len(column.values) > 1


def _read_as_text(column: Texts) -> bool:
    """Whether the values of a CSV file are not numbers, and too many for codes."""
    return column.dtype is None and not column.numeric and len(column.values) > _BESIDE_TEXTS


def _are_mostly_numbers(texts: Collection[str]) -> bool:
    numbers = sum(map(is_number, texts))
    return numbers > _BESIDE_TEXTS and numbers > 0.9 * len(texts)


def _is_short_date(text: str) -> bool:
    """Whether a text looks like a date with a year of two digits."""
    found = _SHORT_YEAR.fullmatch(text)
    if found is None:
        return False
    first, second = int(found[1]), int(found[3])
    return min(first, second) <= _LAST_MONTH and max(first, second) <= _LAST_DAY
