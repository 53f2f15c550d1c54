"""Texts that somebody else has a say in: names in data, in releases, of files and folders."""

from __future__ import annotations

from typing import Final

_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that show nothing, which Python counts as printable."""


def is_plain(text: str) -> bool:
    """Whether a terminal shows a text as it is: on one line, in its order, and all of it."""
    return text.isprintable() and _BLANK.isdisjoint(text)


def shown(text: str) -> str:
    r"""A text as it can be shown to people: one line, in which nothing is hidden.

    Control characters could repaint a terminal, overrides of the writing direction reorder a line,
    separators begin a forged one, and characters of no width make two names look the same. They
    are written as Python writes them, such as \x1b or \u202e. The text itself stays as it is: data
    may have odd names and be honest, so nobody is refused for them.
    """
    return text if is_plain(text) else "".join(c if is_plain(c) else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
