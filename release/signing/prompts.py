"""Questions to the user about releases and keys; no answer counts as no."""

from __future__ import annotations

import click

from ...common.cli.prompts import confirmed, is_terminal
from ...common.display.text import rounded_up
from ..mechanism.composition import Total
from .sshsig import PublicKey


def accepts_total(kind: str, total: Total) -> bool:
    """Ask whether a joint guarantee is acceptable; no answer counts as no.

    Args:
        kind: what is about to be made, "release" or "distillation".
        total: the joint guarantee with it.
    """
    return confirmed(
        f"This is {kind} number {total.releases}; together they would have epsilon "
        f"{rounded_up(total.epsilon)} ({total.adjacency.value}). Go on?"
    )


def accepts_signer(key: PublicKey) -> bool:
    """Ask whether to accept an unknown signer this once; no answer counts as no."""
    return confirmed(
        f"The release is signed by {key.fingerprint}, whom nobody here trusts. Compare that with "
        "what the owner told you. Use it this once?"
    )


def ask_passphrase() -> str | None:
    """Ask for a key's passphrase; None if nobody answers."""
    if not is_terminal():
        return None
    answer: str = click.prompt("Passphrase of the key", hide_input=True, err=True, default="")
    return answer
