"""The option --key, which commands that write releases share."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from ...common.console import notice
from ...common.errors import OutputError
from ..signing.keys import SigningKey, default_key_path, load_key, own_key
from ..signing.prompts import ask_passphrase
from ..signing.trust import remember_own

key_option: Final = click.option(
    "--key", "key_path", type=click.Path(path_type=Path), metavar="FILE",
    help="OpenSSH ed25519 private key to sign with, such as ~/.ssh/id_ed25519 [default: this "
    "machine's own, made when it is first needed]",
)  # fmt: skip


def signing_key(path: Path | None) -> SigningKey:
    """The key to sign with; made if none is named and there is none."""
    if path is None:
        made = not default_key_path().exists()
        key = own_key(ask_passphrase)
        if made:
            notice(f"made a signing key: {default_key_path()}; only you can read it (0600)")
        return key
    key = load_key(path, ask_passphrase)
    try:
        remember_own(key.public)
    except OutputError as error:
        notice(f"this machine will not know its own releases: {error}")
    return key
