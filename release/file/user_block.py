"""The first 512 bytes of a release: the magic line, the signature of the rest, and zeros.

It has exactly 512 bytes because HDF5 looks for a file at 0, 512, 1024, 2048, ..., and takes the
first that it finds. The signature covers everything from byte 512 on. The block has one spelling
for each signature and each of the two first lines, and the signed content determines which it must
be. So no bit of the block can be changed either.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

from ...common.errors import FormatError
from ...common.storage.container import NOT_PRIVATE_MAGIC, RELEASE_MAGIC, USER_BLOCK, user_block
from ..signing.keys import SigningKey
from ..signing.sshsig import Signature, parse, sign
from .format import FORMAT_VERSION

_ANY_VERSION: Final = re.compile(rb"dpntk release (\d{1,4})[\n:]")


@dataclass(frozen=True)
class UserBlock:
    """The contents of the first 512 bytes.

    Attributes:
        private: whether the file claims to hold noise.
        signature: the signature of all other bytes, not verified yet; None if there is none.
    """

    private: bool
    signature: Signature | None


def sign_file(content: memoryview, key: SigningKey) -> None:
    """Put a signature into the user block of an unsigned file, in place."""
    magic = _magic_of(bytes(content[:USER_BLOCK]))
    signature = sign(key.private, content[USER_BLOCK:])
    content[:USER_BLOCK] = user_block(magic + signature.armored())


def read_user_block(content: bytes) -> UserBlock:
    """Parse the first 512 bytes.

    Raises:
        FormatError: they are not those of a release.
        SignatureError: something else stands in place of a signature.
    """
    block = content[:USER_BLOCK]
    magic = _magic_of(block)
    if len(block) < USER_BLOCK:
        raise FormatError("cut short: a release has at least 512 bytes")
    rest = block[len(magic) :]
    armored = rest.rstrip(b"\0")
    signature = parse(armored) if armored else None
    return UserBlock(magic == RELEASE_MAGIC, signature)


def digest_of(content: bytes | memoryview) -> str:
    """SHA-256 of the bytes that a signature covers, in hexadecimal."""
    return hashlib.sha256(memoryview(content)[USER_BLOCK:]).hexdigest()


def _magic_of(block: bytes) -> bytes:
    for magic in (RELEASE_MAGIC, NOT_PRIVATE_MAGIC):
        if block.startswith(magic):
            return magic
    if (other := _ANY_VERSION.match(block)) is not None:
        raise FormatError(
            f"a release of format {other[1].decode()}, which another version of dpntk reads; "
            f"this one ({version('dpntk')}) reads format {FORMAT_VERSION}"
        )
    raise FormatError("not a dpntk release")
