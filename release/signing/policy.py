"""Deciding whose releases to open, before a stranger's bytes are parsed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ...common.arguments import argument, require_flag
from ...common.errors import SignatureError, TrustError, UntrustedSigner
from .sshsig import PublicKey, Signature
from .trust import find


def unsigned() -> SignatureError:
    """The error for an unsigned release."""
    return SignatureError(
        "unsigned, so nobody knows where it comes from: ask for a signed release, or add "
        f"{argument('allow_unsigned', True)} to inspect or use it all the same"
    )


@dataclass(frozen=True)
class Acceptance:
    """The rule for which releases to open.

    Attributes:
        signer: accept only releases by the trusted signer of this name; None for any trusted
            signer.
        allow_unsigned: accept a file without a signature. A broken signature is never accepted.
        ask: called with an unknown key whose signature is valid, to ask whether to accept it; once
            per file.
    """

    signer: str | None = None
    allow_unsigned: bool = False
    ask: Callable[[PublicKey], bool] = lambda key: False

    def __post_init__(self) -> None:
        require_flag("allow_unsigned", self.allow_unsigned, refusal=TrustError)


TRUSTED: Final = Acceptance()
"""The default: accepts releases by any trusted signer, and no others."""


@dataclass(frozen=True)
class SignedBy:
    """Who vouches for a file.

    Attributes:
        name: the trusted signer's name; None if the signer is not trusted.
        fingerprint: the fingerprint of the key that signed; None if the file is unsigned.
        own: whether this machine signed it.
    """

    name: str | None
    fingerprint: str | None
    own: bool = False

    def __str__(self) -> str:
        """A readable clause."""
        if self.fingerprint is None:
            return "unsigned: nobody vouches for where this release comes from"
        if self.name is None:
            return f"signed by {self.fingerprint}, who is not among the trusted signers"
        return f"signed by {self.name} ({self.fingerprint})"


def accept(signature: Signature | None, signed: memoryview, acceptance: Acceptance) -> SignedBy:
    """Verify a signature and decide whether its signer is acceptable.

    Args:
        signature: the signature in the user block, if any.
        signed: the bytes that it covers.
        acceptance: the user's rule.

    Raises:
        SignatureError: there is no signature, or it is invalid.
        UntrustedSigner: it is valid, but its signer is not acceptable.
        TrustError: the list of trusted signers cannot be read.
    """
    if signature is None:
        if acceptance.allow_unsigned and acceptance.signer is None:
            return SignedBy(None, None)
        raise unsigned()
    signed_by = identify(signature, signed, acceptance.signer)
    require_wanted(signed_by, signature.key, acceptance)
    return signed_by


def identify(signature: Signature, signed: memoryview, wanted: str | None = None) -> SignedBy:
    """Verify a signature and look up its signer, without judging the signer.

    Args:
        signature: the signature in the user block.
        signed: the bytes that it covers.
        wanted: the signer's name that is preferred, if the key has two.

    Raises:
        SignatureError: it is invalid.
        TrustError: the list of trusted signers cannot be read.
    """
    signature.require_valid(signed)
    return owner_of(signature.key, wanted)


def owner_of(key: PublicKey, wanted: str | None = None) -> SignedBy:
    """The owner of a key that has signed something, as far as this machine knows.

    Args:
        key: the key that has signed.
        wanted: the signer's name that is preferred, if the key has two.

    Raises:
        TrustError: the list of trusted signers cannot be read.
    """
    known = find(key, wanted)
    if known is None:
        return SignedBy(None, key.fingerprint)
    return SignedBy(known.name, key.fingerprint, known.own)


def require_wanted(signed_by: SignedBy, key: PublicKey, acceptance: Acceptance) -> None:
    """Decide whether a signer is acceptable.

    Raises:
        UntrustedSigner: the signer is not acceptable.
    """
    name, fingerprint = signed_by.name, signed_by.fingerprint
    if acceptance.signer is not None and name != acceptance.signer:
        who = fingerprint if name is None else f"{name}, {fingerprint}"
        raise UntrustedSigner(f"signed by {who}, not by {acceptance.signer}")
    if name is None and not acceptance.ask(key):
        raise UntrustedSigner(
            f"signed by {fingerprint}, whom nobody here trusts; if you know whose key that is, "
            "'dpntk trust add NAME KEY.pub' with the key that they give you"
        )
