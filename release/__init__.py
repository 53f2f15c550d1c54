"""Stage two: the privacy barrier.

`release` reads an embedding and so reaches the sensitive room; `open_release` does not. The first
is therefore imported on first use, and `generate` and `evaluate` import
`dpntk.release.file.reader`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from ..common.adjacency import Adjacency
from .file.distilled import DistilledGuarantee, DistilledRelease, OpenedDistilled
from .file.model import EmbeddingGuarantee, Guarantee, Opened, OpenedRelease, Release
from .file.reader import open_any, open_release
from .signing.keys import SigningKey, load_key, make_key, own_key
from .signing.policy import Acceptance, SignedBy

if TYPE_CHECKING:
    from .publishing.parameters import ClassCounts, PrivacyParameters
    from .publishing.pipeline import release

__all__ = [
    "Acceptance",
    "Adjacency",
    "ClassCounts",
    "DistilledGuarantee",
    "DistilledRelease",
    "EmbeddingGuarantee",
    "Guarantee",
    "Opened",
    "OpenedDistilled",
    "OpenedRelease",
    "PrivacyParameters",
    "Release",
    "SignedBy",
    "SigningKey",
    "load_key",
    "make_key",
    "open_any",
    "open_release",
    "own_key",
    "release",
]


_LAZY: Final = {
    "ClassCounts": "publishing.parameters",
    "PrivacyParameters": "publishing.parameters",
    "release": "publishing.pipeline",
}
"""Name to the module that it is in."""


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
