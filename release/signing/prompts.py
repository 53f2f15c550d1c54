"""Questions to the user: asked on a terminal; elsewhere nobody is there to answer."""

from __future__ import annotations

import sys

import click

from ...common.console import console
from ...common.text import rounded_up
from ..mechanism.composition import Total
from .sshsig import PublicKey


def accepts_total(kind: str, total: Total) -> bool:
    """Ask whether a joint promise is acceptable; where nobody answers, it is not.

    Args:
        kind: what is about to be made, "release" or "distillation".
        total: with it.
    """
    return _confirmed(
        f"This is {kind} number {total.releases}; together they would have epsilon "
        f"{rounded_up(total.epsilon)} ({total.adjacency.value}). Go on?"
    )


def accepts_signer(key: PublicKey) -> bool:
    """Ask whether to accept an unknown signer this once; where nobody answers, it is refused."""
    return _confirmed(
        f"The release is signed by {key.fingerprint}, whom nobody here trusts. Compare that with "
        "what the owner told you. Use it this once?"
    )


def ask_passphrase() -> str | None:
    """Ask for a key's passphrase; None where nobody answers."""
    if not is_terminal():
        return None
    answer: str = click.prompt("Passphrase of the key", hide_input=True, err=True, default="")
    return answer


def _confirmed(question: str) -> bool:
    return is_terminal() and click.confirm(question, err=True)


def is_terminal() -> bool:
    """Whether somebody is there to be asked."""
    return sys.stdin.isatty() and console.is_terminal
