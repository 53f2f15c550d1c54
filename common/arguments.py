"""Arguments of public functions: checking them, and naming them in errors."""

from __future__ import annotations

import math
import operator
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from numbers import Integral, Real
from pathlib import Path
from typing import Final, SupportsIndex

from .address import require_local
from .errors import DpntkError

MOST: Final = 2**31 - 1
"""The largest count of anything: every library accepts it."""
MOST_SEED: Final = 2**32 - 1


def require_kind(
    name: str,
    value: object,
    kind: type | tuple[type, ...],
    wanted: str,
    *,
    refusal: type[DpntkError],
) -> None:
    """Check the type of an argument.

    Args:
        name: the argument's name.
        value: its value, which is not shown.
        kind: the required type or types.
        wanted: the requirement in words, with a hint how to get such a value.
        refusal: the error to raise.

    Raises:
        DpntkError: as `refusal`, if the type is different.
    """
    if not isinstance(value, kind):
        raise refusal(f"{name} must be {wanted}, not of type {type(value).__name__}")


def require_flag(name: str, value: object, *, refusal: type[DpntkError]) -> None:
    """Check that an argument is True or False: any text would count as true, "no" as well.

    Args:
        name: the argument's name.
        value: its value.
        refusal: the error to raise.

    Raises:
        DpntkError: as `refusal`, if it is neither.
    """
    require_kind(name, value, bool, "True or False", refusal=refusal)


def set_plain(instance: object, **values: object) -> None:
    """While a frozen dataclass is made: put plain values in the place of what a user gave.

    NumPy's numbers, for example, cannot be written as JSON.
    """
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def number(name: str, value: object, wanted: str, *, refusal: type[DpntkError]) -> float:
    """A real number as a plain float, whether it is Python's or NumPy's.

    Args:
        name: the argument's name.
        value: as the user gave it; it is not shown.
        wanted: the requirement in words, as "a number, such as 1.0".
        refusal: the error to raise.

    Raises:
        DpntkError: as `refusal`, if it is something else, or too large for a float.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise refusal(f"{name} must be {wanted}, not of type {type(value).__name__}")
    try:
        return float(value)
    except OverflowError as error:
        raise refusal(f"{name} must be {wanted}, and this one is too large") from error


def integer(name: str, value: object, wanted: str, *, refusal: type[DpntkError]) -> int:
    """A whole number as a plain int, whether it is Python's or NumPy's.

    Args:
        name: the argument's name.
        value: as the user gave it; it is not shown.
        wanted: the requirement in words, as "a number of records".
        refusal: the error to raise.

    Raises:
        DpntkError: as `refusal`, if it is something else.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise refusal(f"{name} must be {wanted}, not of type {type(value).__name__}")
    return int(value)


_TYPED: Final = ContextVar("typed", default=False)
"""Whether arguments come from a command line."""


@contextmanager
def typed_as_options() -> Iterator[None]:
    """While a command runs in this context, make `argument` name options of commands."""
    before = _TYPED.set(True)
    try:
        yield
    finally:
        _TYPED.reset(before)


def argument(name: str, value: object = None, *, option: str = "") -> str:
    """An argument as its user writes it, so that an error can say what to change.

    In Python this is `length_scale`, or `length_scale=0.5` with its value; in a command it is
    `--length-scale`, or `--length-scale 0.5`. If the value is True, it is the option alone.

    Args:
        name: the name of the parameter or field.
        value: its value, if the error is to show it.
        option: the command line's option, if it is not named after the parameter.
    """
    typed = _TYPED.get()
    spelt = option or f"--{name.replace('_', '-')}"
    if value is None or (typed and value is True):
        return spelt if typed else name
    if isinstance(value, float):
        text = f"{value:g}"
    elif isinstance(value, Enum):
        text = str(value.value if typed else value)
    else:
        text = str(value) if typed else repr(str(value) if isinstance(value, Path) else value)
    return f"{spelt} {text}" if typed else f"{name}={text}"


def in_command(words: str) -> str:
    """Words that make sense in a command alone, such as " with -o"; nothing in Python."""
    return words if _TYPED.get() else ""


Location = str | os.PathLike[str]
"""A path, as text or as a path object, including objects such as a folder of synthetic records."""


def path_from(name: str, value: Location, *, refusal: type[DpntkError]) -> Path:
    """The path of a file or folder, from a user's argument.

    Args:
        name: the argument's name.
        value: the path.
        refusal: the error to raise.

    Raises:
        DpntkError: as `refusal`, if it is something else, such as an address in object storage.
    """
    require_local(value, refusal=refusal)
    require_kind(name, value, (str, os.PathLike), "the path of a file or folder", refusal=refusal)
    return Path(value)


def whole_number(
    name: str,
    value: SupportsIndex,
    *,
    least: int = 0,
    most: int = MOST,
    refusal: type[DpntkError],
) -> int:
    """A whole number in its range, as a plain int.

    Args:
        name: the argument's name.
        value: as the user gave it.
        least: the smallest allowed value.
        most: the largest allowed value.
        refusal: the error to raise.

    Raises:
        DpntkError: as `refusal`, if it is not such a number.
    """
    try:
        found = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = least - 1
    if not least <= found <= most:
        given = argument(name, value)
        raise refusal(f"{given}: a whole number from {least} to {most:,} is wanted")
    return found


def seed_from(seed: SupportsIndex | None, refusal: type[DpntkError]) -> int:
    """A seed as a plain int; if there is none, a new random one.

    Args:
        seed: as the user gave it.
        refusal: the error to raise.

    Raises:
        DpntkError: as `refusal`, if it is not a seed.
    """
    if seed is None:
        return secrets.randbelow(MOST_SEED + 1)
    return whole_number("seed", seed, most=MOST_SEED, refusal=refusal)


def positive_number(
    name: str, value: object, *, most: float = math.inf, refusal: type[DpntkError]
) -> float:
    """A positive finite number, as a plain float.

    Args:
        name: the argument's name.
        value: as the user gave it.
        most: the largest allowed value.
        refusal: the error to raise.

    Raises:
        DpntkError: as `refusal`, if it is not such a number.
    """
    try:
        found = number(name, value, "a number", refusal=refusal)
    except refusal:
        found = math.nan
    if not 0 < found <= most or found == math.inf:
        end = "" if most == math.inf else f", at most {most:g},"
        raise refusal(f"{argument(name, value)}: a number above 0{end} is wanted")
    return found
