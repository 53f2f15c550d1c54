"""Addresses in object storage, such as s3://bucket/folder, as opposed to local paths."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from .errors import DpntkError

_ADDRESS: Final = re.compile(r"(?P<protocol>[a-z][a-z0-9+.-]+)(::[a-z0-9+.:-]*)?://", re.I)
"""A scheme has at least two letters, because C://data is a Windows folder."""
_FLATTENED: Final = re.compile(r"[a-z][a-z0-9+.-]+:/[^/]", re.I)


def is_address(text: object) -> bool:
    """Whether a value is an address, not a path."""
    return isinstance(text, str) and _ADDRESS.match(text) is not None


def is_flattened_address(path: str) -> bool:
    """Whether a path looks like an address converted to a path: s3://a becomes s3:/a."""
    return _FLATTENED.match(path) is not None


def protocol_of(address: str) -> str:
    """An address's first part: s3, gs or another one."""
    match = _ADDRESS.match(address)
    assert match is not None
    return match["protocol"].lower()


def described(address: str) -> str:
    """An address for messages; only its protocol if it may hold a secret."""
    return f"{protocol_of(address)}://..." if _may_hold_a_secret(address) else address


def require_plain(address: str, *, refusal: type[DpntkError]) -> None:
    """Refuse an address that holds a password, token or signature, or several protocols.

    A typed command is kept in the shell's history, and everybody on the machine can see it.

    Raises:
        DpntkError: as `refusal`; the message does not show the address.
    """
    if _may_hold_a_secret(address):
        raise refusal(
            f"{described(address)}: leave everything before an @ and behind a ? out of an address: "
            "credentials come from the environment, or from where the storage's own tools look"
        )
    if "::" in address:
        raise refusal(
            f"{described(address)}: several protocols in one address, such as a cache's, are not "
            "read: give that of the data alone"
        )
    if not address.partition("://")[2].strip("/"):
        raise refusal(f"{address}: say of which bucket, and of what in it")


def require_local(text: object, *, refusal: type[DpntkError]) -> None:
    """Refuse an address where a local file or folder is expected.

    Raises:
        DpntkError: as `refusal`, because the address would be taken for a local name.
    """
    if isinstance(text, str) and is_address(text):
        raise refusal(
            f"{described(text)}: not a path of this machine: from object storage "
            "'dpntk embed' and 'dpntk schema' read DATA, and nothing is written there"
        )


def _may_hold_a_secret(address: str) -> bool:
    try:
        return "?" in address or "@" in urlsplit(address.rpartition("::")[2]).netloc
    except ValueError:  # unclosed brackets, for example
        return True
