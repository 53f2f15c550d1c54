"""The command `dpntk verify`."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from ...common.cli.default_paths import RELEASE
from ...common.cli.options import PATH
from ...common.display.console import out, warning
from ...common.display.text import typed
from ...common.errors import ReleaseError, UntrustedSigner
from ...common.storage.container import USER_BLOCK
from ..file.statement import NOT_PRIVATE
from ..file.user_block import digest_of, read_user_block
from ..signing.policy import Acceptance, SignedBy, identify, require_wanted, unsigned
from ..signing.sshsig import NAMESPACE
from ..signing.trust import Signer, allowed_path, find, load_public_key, own_path


@click.command("verify")
@click.argument("release", type=PATH, default=RELEASE)
@click.option("--signer", metavar="NAME", help="Demand the signature of this trusted signer.")
@click.option(
    "--key", "key_path", type=PATH, metavar="FILE.pub",
    help="Demand the signature of this key, whoever is trusted.",
)  # fmt: skip
@click.option("--how", is_flag=True, help="Show how to do the same with OpenSSH alone.")
def command(release: Path, signer: str | None, key_path: Path | None, how: bool) -> None:
    """Check who signed RELEASE (default: release.h5), and that it has not changed since.

    The signature does not cover the first line. So if the signer is trusted, or is the one
    demanded, the rest of the file is read as well, and the first line has to agree with it.

    The exit code is 0 only for a valid signature by a trusted signer, or by the one demanded.
    """
    from ..file.reader import read_file, release_in  # --help need not wait for torch

    if signer is not None and key_path is not None:
        raise click.UsageError("give either --signer or --key, not both")
    demanded = None if key_path is None else load_public_key(key_path)
    content = read_file(release)
    try:
        block = read_user_block(content)
        if block.signature is None:
            raise unsigned()
        if how:
            out.print(*_recipe(release, find(block.signature.key, signer), signer), "")
        signed_by = identify(block.signature, memoryview(content)[USER_BLOCK:], signer)
        facts = (
            f"valid signature in {release}",
            f"signer       {signed_by.name or 'unknown'}",
            f"fingerprint  {signed_by.fingerprint}",
            f"trusted      {_standing(signed_by)}",
            f"sha-256      {digest_of(content)} (from byte {USER_BLOCK} on)",
        )
        try:
            if demanded is None:
                require_wanted(signed_by, block.signature.key, Acceptance(signer=signer))
            elif demanded != block.signature.key:
                raise UntrustedSigner(
                    f"signed by {signed_by.fingerprint}, not by the key in {key_path}"
                )
        except UntrustedSigner:
            out.print(*facts)  # true whoever it is
            raise
        private = release_in(content, block, own=signed_by.own).guarantee.private
    except ReleaseError as error:
        raise type(error)(f"{release}: {error}") from error
    out.print(*facts)
    if not private:
        warning(f"{release} is {NOT_PRIVATE}")


def _standing(signed_by: SignedBy) -> str:
    if signed_by.own:
        return "yes: a key of this machine"
    return "no" if signed_by.name is None else f"yes: in {allowed_path()}"


def _recipe(release: Path, known: Signer | None, wanted: str | None) -> tuple[str, str]:
    """OpenSSH commands for the same check; NAME stands for a signer not trusted yet."""
    name = shlex.quote(wanted or (known.name if known else "NAME"))
    signers = shlex.quote(str(own_path() if known and known.own else allowed_path()))
    file = typed(release)
    return (
        f"head -c {USER_BLOCK} {file} | sed -n '/^-----BEGIN/,/^-----END/p' > release.sig",
        f"tail -c +{USER_BLOCK + 1} {file} | "
        f"ssh-keygen -Y verify -f {signers} -I {name} -n {NAMESPACE} -s release.sig",
    )
