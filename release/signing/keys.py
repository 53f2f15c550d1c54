"""The private key that signs releases: an OpenSSH ed25519 key in a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ...common.arguments import in_command, path_from, require_kind
from ...common.errors import OutputError, SigningKeyError
from ...common.storage import untrusted_files
from ...common.storage.atomic import OWN_MODE, SENSITIVE_MODE, write_atomically, write_failures
from ...common.storage.config import config_folder, make_private
from ...common.storage.locks import locked
from .sshsig import PublicKey
from .trust import load_public_key, remember_own

_LARGEST_FILE: Final = 1 << 16
_PUBLIC: Final = (b"ssh-", b"ecdsa-")
"""The beginning of public keys."""
_COMMENT: Final = "dpntk"


class SigningKey:
    """A private key in memory. It has no readable representation."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self.private = private
        self.public = PublicKey(private.public_key().public_bytes_raw())

    def __repr__(self) -> str:
        return f"SigningKey({self.public.fingerprint})"


def default_key_path() -> Path:
    """The path of the default key."""
    return config_folder() / "id_ed25519"


def public_path(path: Path) -> Path:
    """The path of a key's public half: beside it, with .pub at the end."""
    return path.with_name(path.name + ".pub")


def make_key(path: Path | str, passphrase: str = "") -> SigningKey:
    """Make a key and write both halves, the private one readable by its owner alone (0600).

    Args:
        path: path of the private half; that of the public half ends in .pub.
        passphrase: encrypts the private half; no encryption if empty.

    Returns:
        The key, to be passed to `release` and `distill`.

    Raises:
        OutputError: the file exists already, or cannot be written.
    """
    path = path_from("path", path, refusal=OutputError)
    for existing in (path, public_path(path)):
        if existing.exists():
            raise OutputError(
                f"{existing} already exists: choose another name{in_command(' with -o')}"
            )
    key = SigningKey(Ed25519PrivateKey.generate())
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase:
        encryption = serialization.BestAvailableEncryption(passphrase.encode())
    content = key.private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, encryption
    )
    with write_failures(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(path, content, mode=SENSITIVE_MODE)
    write_atomically(public_path(path), f"{key.public.line} {_COMMENT}\n".encode(), mode=OWN_MODE)
    return key


def load_key(path: Path | str, ask: Callable[[], str | None] = lambda: None) -> SigningKey:
    """Read a private key.

    Args:
        path: an OpenSSH private key file.
        ask: called for the passphrase, if the key has one; it returns None if nobody can be asked.

    Returns:
        The key, to be passed to `release` and `distill`.

    Raises:
        SigningKeyError: there is no key, others can read it, it is not an ed25519 key, or the
            passphrase is wrong.
    """
    path = path_from("path", path, refusal=SigningKeyError)
    content = _read_private(path)
    try:
        return _decode(path, content, None)
    except _Encrypted:
        pass
    passphrase = ask()
    if passphrase is None:
        raise SigningKeyError(f"{path} has a passphrase: run on a terminal, or name another key")
    return _decode(path, content, passphrase.encode())


def public_half(path: Path) -> PublicKey:
    """The public half of a key, after checking that nobody else can read the private half.

    Args:
        path: of the private half.

    Raises:
        SigningKeyError: others can read it, or it is not there.
        TrustError: there is no public half beside it.
    """
    _read_private(path)
    return load_public_key(public_path(path))


def usable(key: SigningKey | None) -> SigningKey:
    """The caller's key, or this machine's own if None.

    Raises:
        SigningKeyError: it cannot be used, or is not a key.
        OutputError: this machine's own key cannot be made.
    """
    if key is None:
        return own_key()
    wanted = "what load_key, make_key or own_key returns"
    require_kind("key", key, SigningKey, wanted, refusal=SigningKeyError)
    return key


def own_key(ask: Callable[[], str | None] = lambda: None) -> SigningKey:
    """This machine's key; if there is none yet, it is made without a passphrase.

    Args:
        ask: called for the passphrase, if it has one.

    Returns:
        The key, with which releases are signed by default.

    Raises:
        SigningKeyError: it cannot be used.
        OutputError: it cannot be made.
    """
    path = default_key_path()
    if not path.exists():
        with write_failures(path):
            make_private(path.parent)
        with locked(path):  # or processes that start together would make several
            if not path.exists():
                make_key(path)
    key = load_key(path, ask)
    remember_own(key.public)
    return key


class _Encrypted(Exception):
    """The key needs a passphrase."""


def _read_private(path: Path) -> bytes:
    """The bytes of a file that others cannot read, as checked on the open file, not its name."""
    hint = "'dpntk keygen' makes a key"
    with untrusted_files.opened(path, _LARGEST_FILE, refusal=SigningKeyError, hint=hint) as file:
        content = file.read(_LARGEST_FILE)
        if os.fstat(file.fileno()).st_mode & 0o077 and not content.startswith(_PUBLIC):
            raise SigningKeyError(
                f"{path} can be read by others, so anybody may have signed with it: "
                f"'chmod 600 {path}', or make a new key with 'dpntk keygen'"
            )
        return content


def _decode(path: Path, content: bytes, passphrase: bytes | None) -> SigningKey:
    if content.startswith(_PUBLIC):
        raise SigningKeyError(f"{path} is a public key: name the private one, without .pub")
    try:
        private = serialization.load_ssh_private_key(content, passphrase)
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        if isinstance(error, TypeError) and passphrase is None:  # the key needs a passphrase
            raise _Encrypted from error
        reason = (
            "not an OpenSSH private key; 'dpntk keygen' makes one"
            if passphrase is None
            else "wrong passphrase"
        )
        raise SigningKeyError(f"{path}: {reason}") from error
    if not isinstance(private, Ed25519PrivateKey):
        raise SigningKeyError(
            f"{path} is not an ed25519 key; 'dpntk keygen' or 'ssh-keygen -t ed25519' makes one"
        )
    return SigningKey(private)
