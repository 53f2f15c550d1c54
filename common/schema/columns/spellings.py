"""What other programs take a text for: a number or a truth value, in any usual spelling.

Many programs make numbers or truth values of a column's texts if all of them can be, and otherwise
leave the texts. So one value decides how the others are stored. Whoever compares values has to take
a text for what these programs take it for.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from ..csv_format import COMMA, POINT

_NUMBER: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<digits>[0-9]+\.?[0-9]*|\.[0-9]+)(?P<power>[eE][+-]?[0-9]{1,6})?"
)
_GROUPS: Final = re.compile(r"[+-]?[0-9]{1,3}(?:([,. '\u2019\u00a0\u202f])[0-9]{3})(?:\1[0-9]{3})*")
"""A whole number, or the whole part of one, with a mark between groups of three digits."""
_INFINITE: Final = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_SIXTEENTHS: Final = re.compile(r"[+-]?0[xX][0-9a-fA-F]{1,32}")
TRUTHS: Final = {"false": 0, "true": 1}
"""Texts that all programs take for truth values, in small letters, and the numbers they are."""
_TRUTHS: Final = TRUTHS | {"f": 0, "t": 1}


def number_in(text: str, decimal: str = POINT) -> Decimal | None:
    """The number that a program may take a text for; None if there is none.

    Surrounding blanks, a plus sign, groups of three digits, hexadecimal digits and infinity count;
    so do numbers that begin or end with the decimal mark.

    Args:
        text: the text.
        decimal: the usual decimal mark, a point or a comma. A text that is no number with it may be
            one with the other mark.
    """
    text = text.strip()
    other = POINT if decimal == COMMA else COMMA
    for mark in (decimal, other):
        if (found := _with_mark(text, mark)) is not None:
            return found
    if _INFINITE.fullmatch(text):
        return Decimal(text)
    return Decimal(int(text, 16)) if _SIXTEENTHS.fullmatch(text) else None


def truth_of(text: str) -> int | None:
    """The truth value that a program may take a text for, 0 or 1; None if there is none."""
    return _TRUTHS.get(text.strip().lower())


def _with_mark(text: str, mark: str) -> Decimal | None:
    """The number, with this decimal mark."""
    whole, found, rest = text.partition(mark)
    groups = _GROUPS.fullmatch(whole)
    if groups is not None and groups[1] != mark:
        whole = whole.replace(groups[1], "")
    pointed = whole + (POINT if found else "") + rest
    if mark == COMMA and POINT in whole + rest:
        return None
    return Decimal(pointed) if _NUMBER.fullmatch(pointed) else None
