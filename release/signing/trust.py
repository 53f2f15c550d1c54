"""Lists of trusted signers, in OpenSSH's `allowed_signers` format.

`allowed_signers` holds the signers whom the user chose, `own_signers` the keys that this machine
has signed with. Both can be given to `ssh-keygen -Y verify -f`, which must find no other signers in
them. So lines end where OpenSSH ends them, and a list is refused if anything in it is hidden or if
somebody else could have written it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...common.display.untrusted import is_plain
from ...common.errors import TrustError
from ...common.storage import untrusted_files
from ...common.storage.atomic import OWN_MODE, write_atomically, write_failures
from ...common.storage.config import (
    config_folder,
    make_private,
    require_our_folder,
    require_ours,
)
from ...common.storage.container import RELEASE_BEGINS
from ...common.storage.locks import locked
from .sshsig import KEY_TYPE, NAMESPACE, PublicKey

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")
_OPTION: Final = f'namespaces="{NAMESPACE}"'
_LINE: Final = re.compile(
    rf"(?P<name>{_NAME.pattern})(?: {_OPTION})? {KEY_TYPE} (?P<key>[A-Za-z0-9+/=]+)(?: .*)?"
)
_LARGEST_FILE: Final = 1 << 20
OWN_NAME: Final = "this-machine"
_POWER: Final = "whom to trust"
"""Of others who could change a list, for messages."""


@dataclass(frozen=True)
class Signer:
    """A signer whose releases are accepted.

    Attributes:
        name: the user's name for them.
        key: their public key.
        own: whether this machine signs with the key.
    """

    name: str
    key: PublicKey
    own: bool = False

    @property
    def line(self) -> str:
        """The signer's line in an `allowed_signers` file."""
        return f"{self.name} {_OPTION} {self.key.line}"


def allowed_path() -> Path:
    """The path of the list of signers whom the user trusts."""
    return config_folder() / "allowed_signers"


def own_path() -> Path:
    """The path of the list of keys that this machine has signed with."""
    return config_folder() / "own_signers"


def trusted() -> list[Signer]:
    """All signers whose releases are accepted, this machine's own keys first.

    Raises:
        TrustError: a list cannot be read, or holds something that dpntk does not understand.
    """
    return [*_read(own_path(), own=True), *_read(allowed_path(), own=False)]


def find(key: PublicKey, wanted: str | None = None) -> Signer | None:
    """The trusted signer who has this key; None if nobody has.

    Args:
        key: the key that has signed.
        wanted: the preferred name, if the key is on both lists.
    """
    found = [signer for signer in trusted() if signer.key == key]
    return next((signer for signer in found if signer.name == wanted), next(iter(found), None))


def add(name: str, key: PublicKey) -> Signer:
    """Trust a signer from now on.

    Raises:
        TrustError: the name cannot be used, or the name or the key is on the list already.
        OutputError: the list cannot be written.
    """
    if not _NAME.fullmatch(name) or name == OWN_NAME:
        raise TrustError(
            f"{name!r} cannot be a signer's name: use letters, digits and . _ @ + - only"
        )
    signer = Signer(name, key)
    with _changing(allowed_path()):
        signers = _read(allowed_path(), own=False)
        for known in signers:
            if known.name == name:
                raise TrustError(
                    f"{name} is trusted already, with key {known.key.fingerprint}: "
                    f"'dpntk trust remove {name}' first if the key has changed"
                )
            if known.key == key:
                raise TrustError(f"this key is trusted already, under the name {known.name}")
        _write(allowed_path(), [*signers, signer])
    return signer


def remove(name: str) -> list[Signer]:
    """Stop trusting a signer, with whichever keys the list has under that name.

    Raises:
        TrustError: nobody on the list has that name.
        OutputError: the list cannot be written.
    """
    with _changing(allowed_path()):
        signers = _read(allowed_path(), own=False)
        if removed := [signer for signer in signers if signer.name == name]:
            _write(allowed_path(), [signer for signer in signers if signer.name != name])
            return removed
    raise TrustError(f"nobody called {name} is trusted; 'dpntk trust list' shows who is")


def remember_own(key: PublicKey) -> None:
    """Record that this machine signs with a key, so that it trusts its own signatures.

    Raises:
        OutputError: the list cannot be written.
    """
    with _changing(own_path()):
        signers = _read(own_path(), own=True)
        if all(signer.key != key for signer in signers):
            _write(own_path(), [*signers, Signer(OWN_NAME, key, own=True)])


def read_public_key(text: str) -> PublicKey:
    """Read a line of a .pub file: key type, key, and perhaps a comment.

    Raises:
        TrustError: it is not an ed25519 public key.
    """
    if not is_plain(text):
        raise TrustError("there is more in the line than one can see: leave its comment out")
    words = text.split()
    if len(words) < 2 or words[0] != KEY_TYPE:
        kind = f"a key of type {words[0][:40]}" if len(words) > 1 else "no public key"
        raise TrustError(f"{kind}; expected a line that starts with '{KEY_TYPE}'")
    try:
        return PublicKey.from_base64(words[1])
    except ValueError as error:
        raise TrustError(f"the key is damaged: {error}") from error


def load_public_key(path: Path) -> PublicKey:
    """Read a .pub file.

    Raises:
        TrustError: there is no such file, or it holds something else.
    """
    with untrusted_files.opened(path, None, refusal=TrustError) as file:
        is_signed = file.read(len(RELEASE_BEGINS)) == RELEASE_BEGINS
    if is_signed:
        raise TrustError(
            f"{path}: a release: give the public key of whoever signed it, a .pub file"
        )
    content = untrusted_files.read(path, _LARGEST_FILE, refusal=TrustError)
    text = content.decode("utf-8", "replace").rstrip("\r\n")
    if text.startswith("-----BEGIN"):
        raise TrustError(f"{path}: a private key: give its public half, {path}.pub")
    if "\n" in text:
        raise TrustError(f"{path}: not a public key: expected one line")
    try:
        return read_public_key(text)
    except TrustError as error:
        raise TrustError(f"{path}: {error}") from error


@contextlib.contextmanager
def _changing(path: Path) -> Iterator[None]:
    with write_failures(path):
        make_private(path.parent)
        require_our_folder(path, _POWER, TrustError)
    with locked(path):
        yield


def _write(path: Path, signers: list[Signer]) -> None:
    lines = "".join(f"{signer.line}\n" for signer in signers)
    write_atomically(path, lines.encode(), mode=OWN_MODE)


def _read(path: Path, *, own: bool) -> list[Signer]:
    if not os.path.lexists(path):
        return []
    with untrusted_files.opened(path, _LARGEST_FILE, refusal=TrustError) as file:
        require_ours(path, os.fstat(file.fileno()), _POWER, TrustError)
        require_our_folder(path, _POWER, TrustError)
        content = file.read(_LARGEST_FILE)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise TrustError(f"{path}: not a text file") from error
    signers = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not is_plain(line):
            raise TrustError(
                f"{path}, line {number}: there is more in it than one can see, such as a "
                "carriage return or another control character: type the line anew"
            )
        if not line.strip() or line.startswith("#"):
            continue
        matched = _LINE.fullmatch(line)
        if matched is None:
            raise TrustError(
                f"{path}, line {number}: dpntk understands 'NAME {_OPTION} {KEY_TYPE} KEY' only; "
                "correct or remove the line"
            )
        try:
            key = PublicKey.from_base64(matched["key"])
        except ValueError as error:
            raise TrustError(f"{path}, line {number}: the key is damaged") from error
        signers.append(Signer(matched["name"], key, own))
    return signers
