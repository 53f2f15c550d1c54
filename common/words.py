"""Numbers with what they count, as people write them."""

from __future__ import annotations


def counted(number: int, one: str, several: str = "") -> str:
    """`1 row`, `2,000 rows`.

    Args:
        number: how many.
        one: what one of them is called.
        several: what more of them, or none, are called; `one` and an s if empty.
    """
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"
