"""Questions to the user, which are asked only on a terminal."""

from __future__ import annotations

import sys

import click

from ..display.console import console
from ..display.untrusted import shown


def confirmed(question: str) -> bool:
    """Ask for a yes or no; no answer counts as no."""
    return is_terminal() and click.confirm(shown(question), err=True)


def is_terminal() -> bool:
    """Whether there is a user to ask."""
    return sys.stdin.isatty() and console.is_terminal
