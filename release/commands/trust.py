"""The commands `dpntk trust add`, `list` and `remove`."""

from __future__ import annotations

from pathlib import Path

import click

from ...common.display.console import TextTable, console, out, show
from ..signing import trust
from ..signing.sshsig import KEY_TYPE


@click.group("trust")
def command() -> None:
    """Choose whose releases to accept.

    The list is kept in OpenSSH's allowed_signers format; 'dpntk trust list' says where.
    """


@command.command("add", short_help="Trust what is signed with a key.")
@click.argument("name")
@click.argument("key")
def _add(name: str, key: str) -> None:
    """Trust what is signed with KEY, a .pub file or its line in quotes, and call its owner NAME.

    Get the key from the owner in a way that lets nobody replace it, or compare fingerprints by
    telephone.
    """
    is_line = key.startswith(f"{KEY_TYPE} ")
    public = trust.read_public_key(key) if is_line else trust.load_public_key(Path(key))
    signer = trust.add(name, public)
    console.print(f"trusting {signer.name}, {signer.key.fingerprint}")


@command.command("list")
def _list() -> None:
    """Show who is trusted."""
    signers = trust.trusted()
    if signers:
        table = TextTable()
        table.add_column("name")
        table.add_column("fingerprint", wrap=False)
        for signer in signers:
            table.add_row(signer.name, signer.key.fingerprint)
        show(table)
    else:
        out.print("nobody is trusted yet; 'dpntk trust add NAME KEY.pub' adds somebody")
    console.print(f"kept in {trust.allowed_path()}; own keys in {trust.own_path()}")


@command.command("remove")
@click.argument("name")
def _remove(name: str) -> None:
    """Stop trusting NAME."""
    for signer in trust.remove(name):
        console.print(f"no longer trusting {signer.name}, {signer.key.fingerprint}")
