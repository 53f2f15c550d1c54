"""All errors, as one tree of exceptions.

    DpntkError
    ├── DataError       records that cannot be read as they are
    ├── SchemaError     records and their declared shape disagree
    ├── BudgetError     a privacy parameter that makes no sense or would break the promise
    ├── RunError        an interrupted pass, or several processes, that cannot go on together
    ├── EmbeddingError  a file that is not an embedding, or not a whole one
    ├── MergeError      embeddings that cannot be added up
    ├── ReleaseError    a release that cannot be used
    │   ├── SignatureError  nobody has signed these bytes, or not in the way that counts
    │   ├── UntrustedSigner signed, but by somebody who is not trusted
    │   └── FormatError     its bytes are not those of a release
    ├── SigningKeyError a private key that cannot be used
    ├── TrustError      a list of signers, or a public key, that cannot be used
    ├── ModuleError     a module file that cannot be used
    ├── AuditError      a guarantee that an audit has refuted
    ├── GeneratorError  a generator that cannot be trained, read or used for what is asked
    ├── DeviceError     a device that is not here
    └── OutputError     a result that cannot be written where it should go

Every message is one line that says what failed, where, and what to do. The command line prints
it to stderr and exits with 1; library users catch `DpntkError`.

Messages end up in logs and in questions to colleagues, so none quotes a record. A record's value is
kept apart, in `value`, for the command line to show it to the owner.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "AuditError",
    "BudgetError",
    "DataError",
    "DeviceError",
    "DpntkError",
    "EmbeddingError",
    "FormatError",
    "GeneratorError",
    "MergeError",
    "ModuleError",
    "OutputError",
    "ReleaseError",
    "RunError",
    "SchemaError",
    "SignatureError",
    "SigningKeyError",
    "TrustError",
    "UntrustedSigner",
]


_LONGEST_VALUE: Final = 300
"""The most characters of a value that are shown."""


class DpntkError(Exception):
    """Base of every error that dpntk raises on purpose.

    Attributes:
        value: SENSITIVE: the data at the place that the message names, if that helps to find the
            mistake. It is not part of the message, nor of any other exception that a traceback
            would show beside this one.
    """

    def __init__(self, message: object = "", value: str | None = None) -> None:
        super().__init__(message)
        self.value = value

    @property
    def with_value(self) -> str:
        """The message with the data at that place, for the owner's eyes only."""
        if self.value is None:
            return str(self)
        return f"{self} ({self.value[:_LONGEST_VALUE]!r})"


class DataError(DpntkError):
    """Records that cannot be read: missing, truncated, or of an unknown kind."""


class SchemaError(DpntkError):
    """Records that do not fit the schema: wrong size, unknown label, too many of them."""


class BudgetError(DpntkError):
    """A privacy parameter outside the range in which the guarantee means anything."""


class RunError(DpntkError):
    """An interrupted pass that cannot be continued, or processes that do not fit together."""


class EmbeddingError(DpntkError):
    """A file that is not a dpntk embedding, or one that is damaged."""


class MergeError(DpntkError):
    """Embeddings that cannot be added up: other plans, or the same records twice."""


class ReleaseError(DpntkError):
    """A release that cannot be used."""


class SignatureError(ReleaseError):
    """A release without a signature, or with an invalid one."""


class UntrustedSigner(ReleaseError):
    """A release that was signed by somebody who is not trusted."""


class FormatError(ReleaseError):
    """Bytes that are not those of a release file."""


class SigningKeyError(DpntkError):
    """A private key that is missing, unsafe, of another kind, or locked."""


class TrustError(DpntkError):
    """A list of trusted signers, or a public key, that cannot be used."""


class ModuleError(DpntkError):
    """A module file that is missing, is the wrong one, or cannot serve as a feature map."""


class AuditError(DpntkError):
    """A guarantee that an audit has refuted."""


class GeneratorError(DpntkError):
    """Training that diverged, an unusable saved generator, or an unsuitable request."""


class DeviceError(DpntkError):
    """A device that does not exist here, or is not supported."""


class OutputError(DpntkError):
    """A result that cannot be written: no space, no permission, or something in the way."""
