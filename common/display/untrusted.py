"""Texts that others can influence: names in data, in releases, of files and folders."""

from __future__ import annotations

from typing import Final

_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Invisible letters and marks that Python counts as printable."""


def is_plain(text: str) -> bool:
    """Whether a terminal shows a text faithfully: on one line, in order, and completely."""
    return text.isprintable() and _BLANK.isdisjoint(text)


def shown(text: str) -> str:
    r"""A text in a form that can be shown to people: one line, in which nothing is hidden.

    Control characters could repaint a terminal, overrides of the writing direction could reorder a
    line, separators could start a forged one, and zero-width characters could make two names look
    the same. They are escaped as in Python, such as \x1b or \u202e. The text itself is not changed:
    honest data may have odd names, so they are not refused.
    """
    return text if is_plain(text) else "".join(c if is_plain(c) else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
