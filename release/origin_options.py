"""Options and questions about signers that several commands share."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import click

from ..common.console import console
from .acceptance import Acceptance
from .sshsig import PublicKey


def origin_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --signer and --allow-unsigned, and hand their meaning over as `acceptance`."""

    @click.option("--signer", metavar="NAME", help="Accept only what this trusted signer signed.")
    @click.option("--allow-unsigned", is_flag=True, help="Accept a release without a signature.")
    @functools.wraps(command)
    def with_acceptance(
        signer: str | None,
        allow_unsigned: bool,
        **options: Any,  # noqa: ANN401 - handed on
    ) -> None:
        command(acceptance=Acceptance(signer, allow_unsigned, ask_about_signer), **options)

    return with_acceptance


def ask_about_signer(key: PublicKey) -> bool:
    """Ask on a terminal whether to accept an unknown signer this once; elsewhere: no."""
    if not is_terminal():
        return False
    return click.confirm(
        f"The release is signed by {key.fingerprint}, whom nobody here trusts. Compare that with "
        "what the owner told you. Use it this once?",
        err=True,
    )


def ask_passphrase() -> str | None:
    """Ask on a terminal for a key's passphrase; elsewhere there is none to be had."""
    if not is_terminal():
        return None
    answer: str = click.prompt("Passphrase of the key", hide_input=True, err=True, default="")
    return answer


def is_terminal() -> bool:
    """Whether somebody is there to be asked."""
    return sys.stdin.isatty() and console.is_terminal
