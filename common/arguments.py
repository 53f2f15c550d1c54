"""Arguments of public functions: how errors name them, and a line for what makes no sense."""

from __future__ import annotations

import math
import operator
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from numbers import Real
from pathlib import Path
from typing import Final, SupportsIndex

from .address import require_local
from .errors import DpntkError

MOST: Final = 2**31 - 1
"""Largest number of anything that is counted: every library takes it."""
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
        name: of the argument.
        value: what was handed over; it is not shown.
        kind: what it has to be an instance of.
        wanted: the same in words, with a hint where to get one.
        refusal: the error to raise.

    Raises:
        DpntkError: as `refusal`: it is something else.
    """
    if not isinstance(value, kind):
        raise refusal(f"{name} must be {wanted}, not of type {type(value).__name__}")


_TYPED: Final = ContextVar("typed", default=False)
"""Whether arguments come from a command line."""


@contextmanager
def typed_as_options() -> Iterator[None]:
    """Meanwhile `argument` names options of commands: one is running, in this context."""
    before = _TYPED.set(True)
    try:
        yield
    finally:
        _TYPED.reset(before)


def argument(name: str, value: object = None, *, option: str = "") -> str:
    """An argument as its user has written it, for an error to say what is to be changed.

    In Python `length_scale`, or `length_scale=0.5` with its value; in a command `--length-scale`,
    or `--length-scale 0.5`, and of what is True the option alone.

    Args:
        name: of the parameter or field.
        value: that was handed over, if it is to be said.
        option: of the command line, if it is not named after the parameter.
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


Location = str | os.PathLike[str]
"""A path, as text or not, or what stands for one, such as a folder of synthetic records."""


def path_from(name: str, value: Location, *, refusal: type[DpntkError]) -> Path:
    """The path of a file or folder that a user has handed over.

    Args:
        name: of the argument.
        value: the path.
        refusal: the error to raise.

    Raises:
        DpntkError: as `refusal`: it is something else, such as an address of object storage.
    """
    require_local(value, refusal=refusal)
    require_kind(name, value, (str, os.PathLike), "the path of a file or folder", refusal=refusal)
    return Path(value)


def whole(
    number: SupportsIndex,
    what: str,
    refusal: type[DpntkError],
    *,
    least: int = 0,
    most: int = MOST,
) -> int:
    """A whole number in its range, as a plain one.

    Args:
        number: as the user gave it.
        what: its name, for the message.
        refusal: the error to raise.
        least: that it may be.
        most: that it may be.

    Raises:
        DpntkError: it is no such number; of the kind `refusal`.
    """
    try:
        found = operator.index(number)
    except TypeError:
        found = least - 1
    if not least <= found <= most:
        raise refusal(f"{what} {number!r}: a whole number from {least} to {most:,} is wanted")
    return found


def seed_from(seed: SupportsIndex | None, refusal: type[DpntkError]) -> int:
    """A seed as a plain number; a new one if there is none, so that what it draws is new as well.

    Args:
        seed: as the user gave it.
        refusal: the error to raise.

    Raises:
        DpntkError: it is no seed; of the kind `refusal`.
    """
    if seed is None:
        return secrets.randbelow(MOST_SEED + 1)
    return whole(seed, "seed", refusal, most=MOST_SEED)


def positive(
    number: float, what: str, refusal: type[DpntkError], *, most: float = math.inf
) -> float:
    """A number above 0, not infinite, as a plain one.

    Args:
        number: as the user gave it.
        what: its name, for the message.
        refusal: the error to raise.
        most: that it may be.

    Raises:
        DpntkError: it is no such number; of the kind `refusal`.
    """
    if not _is_real(number) or not 0 < number <= most or number == math.inf:
        end = "" if most == math.inf else f", at most {most:g},"
        raise refusal(f"{what} {number!r}: a number above 0{end} is wanted")
    return float(number)


def _is_real(number: object) -> bool:
    return isinstance(number, Real)
