"""Questions to the user: asked on a terminal; elsewhere nobody is there to answer."""

from __future__ import annotations

import sys

import click

from ..display.console import console
from ..display.untrusted import shown


def confirmed(question: str) -> bool:
    """Ask for a yes or no; where nobody answers, it is no."""
    return is_terminal() and click.confirm(shown(question), err=True)


def is_terminal() -> bool:
    """Whether somebody is there to be asked."""
    return sys.stdin.isatty() and console.is_terminal
