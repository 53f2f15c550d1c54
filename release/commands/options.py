"""Options shared by several commands: of the guarantee, of the key, and of signers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from ...common.adjacency import Adjacency
from ...common.cli.options import PATH, Decorator, all_of
from ...common.display.console import notice
from ...common.errors import OutputError
from ...common.ledger import DEFAULT_DELTA, default_delta
from ..signing.keys import SigningKey, default_key_path, load_key, own_key
from ..signing.policy import Acceptance
from ..signing.prompts import accepts_signer, ask_passphrase
from ..signing.trust import remember_own

_MANY: Final = 100_000
_OF_DELTA: Final = (
    f"[default: {DEFAULT_DELTA:g}; if the number n of records is public, the largest power of ten "
    f"below 1/n if that is less, such as {default_delta(Adjacency.REPLACE_ONE, _MANY):g} for "
    f"{_MANY:,} records]"
)

key_option: Final = click.option(
    "--key", "key_path", type=PATH, metavar="FILE",
    help="OpenSSH ed25519 private key to sign with, such as ~/.ssh/id_ed25519 [default: this "
    "machine's own, made when it is first needed]",
)  # fmt: skip


def promise_options(
    *,
    epsilon: str = "Privacy loss to spend: 1 is strong, 10 is weak.",
    delta: str = "Roughly, the probability that the guarantee fails; must be below 1/n",
    adjacency: str,
    default: Adjacency = Adjacency.REPLACE_ONE,
) -> Decorator:
    """Add --eps, --delta and --adjacency; the command gets `epsilon`, `delta`, `adjacency`.

    Args:
        epsilon: help for --eps.
        delta: help for --delta.
        adjacency: help for --adjacency.
        default: the default adjacency.
    """
    return all_of(
        click.option(
            "--eps", "epsilon", type=float, required=True, metavar="EPSILON", help=epsilon
        ),
        click.option(
            "--delta", type=float, metavar="DELTA", help=f"{delta.rstrip('.')} {_OF_DELTA}"
        ),
        click.option(
            "--adjacency", type=click.Choice([a.value for a in Adjacency]), default=default.value,
            show_default=True, callback=_parsed, help=adjacency,
        ),
    )  # fmt: skip


def _parsed(context: click.Context, parameter: click.Parameter, value: str) -> Adjacency:
    return Adjacency(value)


def acceptance_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --signer and --allow-unsigned, and pass them on as `acceptance`."""

    @click.option("--signer", metavar="NAME", help="Accept only what this trusted signer signed.")
    @click.option("--allow-unsigned", is_flag=True, help="Accept a release without a signature.")
    @functools.wraps(command)
    def with_acceptance(
        signer: str | None,
        allow_unsigned: bool,
        **options: Any,  # noqa: ANN401 - handed on
    ) -> None:
        command(acceptance=Acceptance(signer, allow_unsigned, accepts_signer), **options)

    return with_acceptance


def signing_key(path: Path | None) -> SigningKey:
    """The key to sign with; the default key is made if it does not exist."""
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
