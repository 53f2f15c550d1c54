"""OpenSSH's signature format, for ed25519 keys: what `ssh-keygen -Y sign` writes.

A signature is a sequence of length-prefixed strings (PROTOCOL.sshsig in OpenSSH's source):

    "SSHSIG"  uint32 1  string public key  string namespace  string ""  string "sha512"
    string (string "ssh-ed25519"  string 64 bytes of signature)

and the 64 bytes sign

    "SSHSIG"  string namespace  string ""  string "sha512"  string SHA-512 of the message.

In a file it is base64 between two marker lines. The namespace keeps a signature made for one
purpose from being used for another.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ...common.errors import SignatureError

NAMESPACE: Final = "dpntk-release-v1"
KEY_TYPE: Final = "ssh-ed25519"
_HASH: Final = "sha512"
_MAGIC: Final = b"SSHSIG"
_VERSION: Final = 1
_BEGIN: Final = b"-----BEGIN SSH SIGNATURE-----\n"
_END: Final = b"-----END SSH SIGNATURE-----\n"
_LINE: Final = 70
_KEY_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64


@dataclass(frozen=True)
class PublicKey:
    """An ed25519 public key.

    Attributes:
        raw: its 32 bytes.
    """

    raw: bytes

    @property
    def blob(self) -> bytes:
        """The key as OpenSSH encodes it."""
        return _string(KEY_TYPE.encode()) + _string(self.raw)

    @property
    def fingerprint(self) -> str:
        """The fingerprint as `ssh-keygen -l` shows it, such as SHA256:..."""
        digest = hashlib.sha256(self.blob).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    @property
    def line(self) -> str:
        """The line of an OpenSSH .pub file for this key, without a comment."""
        return f"{KEY_TYPE} {base64.b64encode(self.blob).decode()}"

    @classmethod
    def from_base64(cls, text: str) -> PublicKey:
        """Read the middle word of a .pub file.

        Raises:
            ValueError: it is not an ed25519 key.
        """
        blob = base64.b64decode(text, validate=True)
        reader = _Reader(blob)
        if reader.string() != KEY_TYPE.encode():
            raise ValueError(f"not an {KEY_TYPE} key")
        key = cls(reader.string())
        if len(key.raw) != _KEY_BYTES or key.blob != blob:
            raise ValueError(f"not a well-formed {KEY_TYPE} key")
        return key


@dataclass(frozen=True)
class Signature:
    """A signature as it was read, not verified yet.

    Attributes:
        key: the signer's public key.
        value: the signature's 64 bytes.
    """

    key: PublicKey
    value: bytes

    def armored(self) -> bytes:
        """The only spelling of this signature in a file."""
        blob = (
            _MAGIC
            + struct.pack(">I", _VERSION)
            + _string(self.key.blob)
            + _string(NAMESPACE.encode())
            + _string(b"")
            + _string(_HASH.encode())
            + _string(_string(KEY_TYPE.encode()) + _string(self.value))
        )
        text = base64.b64encode(blob)
        lines = [text[start : start + _LINE] + b"\n" for start in range(0, len(text), _LINE)]
        return _BEGIN + b"".join(lines) + _END

    def require_valid(self, message: bytes | memoryview) -> None:
        """Check that the key's owner signed these bytes.

        Raises:
            SignatureError: they were not signed by it.
        """
        try:
            Ed25519PublicKey.from_public_bytes(self.key.raw).verify(self.value, _signed(message))
        except (InvalidSignature, ValueError) as error:
            raise SignatureError(
                f"the signature of {self.key.fingerprint} does not match: the file was changed or "
                "cut short after it was signed, or the signature belongs to another file"
            ) from error


def sign(private: Ed25519PrivateKey, message: bytes | memoryview) -> Signature:
    """Sign bytes in dpntk's namespace."""
    public = PublicKey(private.public_key().public_bytes_raw())
    return Signature(public, private.sign(_signed(message)))


def parse(armored: bytes) -> Signature:
    """Read a signature.

    Args:
        armored: the text from the first marker line to the last, both included.

    Raises:
        SignatureError: it is damaged, made for another purpose, or not in our format.
    """
    if not (armored.startswith(_BEGIN) and armored.endswith(_END)):
        raise SignatureError("the signature's marker lines are damaged")
    try:
        text = b"".join(armored[len(_BEGIN) : -len(_END)].split(b"\n"))
        reader = _Reader(base64.b64decode(text, validate=True))
        if reader.take(len(_MAGIC)) != _MAGIC:
            raise SignatureError("the signature is not in OpenSSH's format")
        if (version := reader.number()) != _VERSION:
            raise SignatureError(f"the signature's format has version {version}, not {_VERSION}")
        key, namespace, reserved = _Reader(reader.string()), reader.string(), reader.string()
        hash_name, value = reader.string(), _Reader(reader.string())
        reader.require_end()
        for kind in (key.string(), value.string()):
            if kind != KEY_TYPE.encode():
                raise SignatureError(
                    f"the signature is of type {_shown(kind)}; dpntk accepts {KEY_TYPE} only"
                )
        if namespace != NAMESPACE.encode():
            raise SignatureError(
                f"the signature was made for {_shown(namespace)}, not for {NAMESPACE}"
            )
        if hash_name != _HASH.encode():
            raise SignatureError(f"the signature uses {_shown(hash_name)}; dpntk accepts {_HASH}")
        signature = Signature(PublicKey(key.string()), value.string())
        key.require_end()
        value.require_end()
    except (binascii.Error, ValueError, struct.error) as error:
        raise SignatureError("the signature is damaged") from error
    if (
        reserved
        or len(signature.key.raw) != _KEY_BYTES
        or len(signature.value) != _SIGNATURE_BYTES
        or signature.armored() != armored
    ):
        raise SignatureError("the signature is not spelt as OpenSSH spells it")
    return signature


def _signed(message: bytes | memoryview) -> bytes:
    return (
        _MAGIC
        + _string(NAMESPACE.encode())
        + _string(b"")
        + _string(_HASH.encode())
        + _string(hashlib.sha512(message).digest())
    )


def _string(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


def _shown(value: bytes) -> str:
    """Bytes from a stranger, safe to print."""
    return repr(value[:40].decode("ascii", "replace"))


class _Reader:
    """Reads one item after another from bytes, never beyond their end."""

    def __init__(self, content: bytes) -> None:
        self._rest = content

    def take(self, size: int) -> bytes:
        if size > len(self._rest):
            raise ValueError("cut short")
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def number(self) -> int:
        value: int = struct.unpack(">I", self.take(4))[0]
        return value

    def string(self) -> bytes:
        return self.take(self.number())

    def require_end(self) -> None:
        if self._rest:
            raise ValueError("bytes left over")
