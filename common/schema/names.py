"""Checks of names and other texts in a schema."""

from __future__ import annotations

from typing import Final

from ..errors import SchemaError

_LONGEST: Final = 1_000
"""The most characters in a name."""


def require_name(name: str, what: str, *, empty: bool = False) -> None:
    """Check that a name, or another text in a schema, is text and not too long.

    Args:
        name: the name.
        what: what it names, for the message.
        empty: whether it may be empty.

    Raises:
        SchemaError: it is not.
    """
    if not isinstance(name, str):
        raise SchemaError(f"{what} has a name of type {type(name).__name__}, which is no text")
    if not (name or empty) or len(name) > _LONGEST:
        raise SchemaError(f"{what} has a name of 1 to {_LONGEST} characters")
    if any(0xD800 <= ord(character) <= 0xDFFF or character == "\0" for character in name):
        raise SchemaError(f"{what} has a name that is no text")
