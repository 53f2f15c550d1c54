"""Readable texts: counted things, lists of names, typed paths, and rounded figures."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextvars import ContextVar
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Final

_DIGITS: Final = 4
_MORE_DIGITS: Final = 6


def counted(number: int, one: str, several: str = "") -> str:
    """A number with its noun: `1 row`, `2,000 rows`.

    Args:
        number: the number.
        one: the singular.
        several: the plural; `one` and an s if empty.
    """
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


_UNCOUNTED: Final = ContextVar("uncounted", default=False)
"""Whether messages may be kept in logs, which then hold no count of records."""


@contextlib.contextmanager
def without_counts() -> Iterator[None]:
    """In this context, leave the numbers of records, persons and values out of messages."""
    before = _UNCOUNTED.set(True)
    try:
        yield
    finally:
        _UNCOUNTED.reset(before)


def so_many(number: int, one: str, several: str = "", *, unsaid: str = "") -> str:
    """How many records, persons or values there are: `2 rows`, or `some rows` without counts.

    Args:
        number: the number, which follows from the data.
        one: the singular.
        several: the plural; `one` and an s if empty.
        unsaid: the text without counts, if it is not "some" and the plural.
    """
    if _UNCOUNTED.get():
        return unsaid or f"some {several or f'{one}s'}"
    return counted(number, one, several)


def some_of(names: Sequence[str], most: int = 5) -> str:
    """The first names, and the number of the others: `cat, "eel, moray" and 3 more`.

    Args:
        names: the names; those with a comma get double quotes, as in CSV.
        most: the most names to list.
    """
    said = ", ".join(map(_quoted, names[:most]))
    return said if len(names) <= most else f"{said} and {len(names) - most:,} more"


def meant(name: str, known: Iterable[str]) -> str:
    """What a misspelt name may have meant, to follow it in a message; empty if nothing is near."""
    near = get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def unknown_names(unknown: Collection[object], known: Iterable[str]) -> str:
    """Says that names are unknown, and what the first of them may have meant."""
    names = sorted(map(str, unknown))
    return f"unknown: {', '.join(names)}{meant(names[0], known)}"


def typed(path: Path | str) -> str:
    """A path or address quoted for the shell, whatever its name contains."""
    return shlex.quote(f"./{path}" if str(path).startswith("-") else str(path))


def rounded_up(number: float) -> str:
    """A positive number with four digits, never below it: a promise must not be rounded down."""
    return _plain(_rounded(number, _DIGITS, ROUND_CEILING))


def rounded_down(number: float) -> str:
    """A number with four digits, never above it: a remaining budget must not be rounded up."""
    return _plain(_rounded(number, _DIGITS, ROUND_FLOOR))


def promised(number: float) -> str:
    """A requested epsilon or delta, such as `1` or `1e-05`: six digits, and never below it."""
    return f"{float(_rounded(number, _MORE_DIGITS, ROUND_CEILING)):g}"


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""')) if "," in name or '"' in name else name


def _rounded(number: float, digits: int, rounding: str) -> Decimal:
    return Context(prec=digits, rounding=rounding).create_decimal(repr(float(number)))


def _plain(rounded: Decimal) -> str:
    return format(rounded.normalize(), "f") if rounded.is_finite() else str(float(rounded))
