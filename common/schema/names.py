"""Names, and other texts, that a schema may hold."""

from __future__ import annotations

from typing import Final

from ..errors import SchemaError

_LONGEST: Final = 1_000
"""Characters of a name."""


def require_name(name: str, what: str, *, empty: bool = False) -> None:
    """Check that a name, or a text of a schema, is text and not too long.

    Args:
        name: of `what`.
        what: it is the name of, for the message.
        empty: whether it may be empty.

    Raises:
        SchemaError: it is not.
    """
    if not (name or empty) or len(name) > _LONGEST:
        raise SchemaError(f"{what} has a name of 1 to {_LONGEST} characters")
    if any(0xD800 <= ord(character) <= 0xDFFF or character == "\0" for character in name):
        raise SchemaError(f"{what} has a name that is no text")
