"""Numbers that users hand to public functions: plain and in their range, or refused in one line."""

from __future__ import annotations

import math
import operator
import secrets
from numbers import Real
from typing import Final, SupportsIndex

from .errors import DpntkError

MOST: Final = 2**31 - 1
"""Of anything that is counted: every library takes it."""
MOST_SEED: Final = 2**32 - 1


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
