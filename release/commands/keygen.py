"""The command `dpntk keygen`."""

from __future__ import annotations

from pathlib import Path

import click

from ...common.cli.options import output_option
from ...common.cli.prompts import is_terminal
from ...common.display.console import console
from ...common.storage.atomic import write_failures
from ..signing.keys import default_key_path, make_key, public_path
from ..signing.trust import remember_own


@click.command("keygen")
@output_option(
    "Where to write the private half; the public one gets .pub at the end "
    "[default: the key that 'dpntk release' uses]"
)
@click.option("--passphrase", "wanted", is_flag=True, help="Ask for a passphrase to protect it.")
def command(output: Path | None, wanted: bool) -> None:
    """Make an OpenSSH ed25519 key. 'ssh-keygen -t ed25519' makes keys of the same kind.

    Give the public half to those who are to trust your releases, in a way that lets nobody replace
    it by another.
    """
    if wanted and not is_terminal():
        raise click.UsageError("--passphrase asks on a terminal, and this is none")
    path = output or default_key_path()
    passphrase: str = (
        click.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True)
        if wanted
        else ""
    )
    key = make_key(path, passphrase)
    with write_failures(path):
        remember_own(key.public)
    console.print(f"made {path} (keep it secret; only you can read it) and {public_path(path)}")
    console.print(f"fingerprint {key.public.fingerprint}")
    console.print("whoever is to trust your releases needs this line:", key.public.line)
