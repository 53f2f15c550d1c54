"""Stage two: add noise to an embedding once, and write a signed file that may be shared.

Example, after that of `dpntk.embed`::

    from dpntk.release import PrivacyParameters, open_release, release

    release("embedding.h5", "release.h5", PrivacyParameters(epsilon=1.0))
    print(open_release("release.h5").release.statement)

The public names, by what they are for:

- Make a release: `release`, with `PrivacyParameters`; in these, `Adjacency` says which data sets
  are indistinguishable, and `ClassCounts` how the shares of classes become known. If there are
  earlier releases, `compose` is asked about their joint guarantee, a `Total`.
- Open a release, your own or another's: `open_release`, or `open_any` for a distilled set as well;
  `Acceptance` says whose releases to open.
- Read an `Opened` release: an `OpenedRelease` holds a `Release` with its `EmbeddingGuarantee`, an
  `OpenedDistilled` a `DistilledRelease` with its `DistilledGuarantee`; either guarantee is a
  `Guarantee`. `SignedBy` says who vouches for the file.
- Sign with your own key (`SigningKey`): `load_key`, `make_key`, and `own_key` for this machine's.

`dpntk.release.distill` makes another kind of release: a few labelled points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.lazy import attach

if TYPE_CHECKING:
    from ..common.adjacency import Adjacency
    from .file.distilled import DistilledGuarantee, DistilledRelease, OpenedDistilled
    from .file.model import EmbeddingGuarantee, Guarantee, Opened, OpenedRelease, Release
    from .file.reader import open_any, open_release
    from .mechanism.composition import Total
    from .publishing.parameters import ClassCounts, PrivacyParameters
    from .publishing.pipeline import release
    from .signing.keys import SigningKey, load_key, make_key, own_key
    from .signing.policy import Acceptance, SignedBy

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
    "Total",
    "load_key",
    "make_key",
    "open_any",
    "open_release",
    "own_key",
    "release",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Acceptance": ".signing.policy",
        "Adjacency": "..common.adjacency",
        "ClassCounts": ".publishing.parameters",
        "DistilledGuarantee": ".file.distilled",
        "DistilledRelease": ".file.distilled",
        "EmbeddingGuarantee": ".file.model",
        "Guarantee": ".file.model",
        "Opened": ".file.model",
        "OpenedDistilled": ".file.distilled",
        "OpenedRelease": ".file.model",
        "PrivacyParameters": ".publishing.parameters",
        "Release": ".file.model",
        "SignedBy": ".signing.policy",
        "SigningKey": ".signing.keys",
        "Total": ".mechanism.composition",
        "load_key": ".signing.keys",
        "make_key": ".signing.keys",
        "open_any": ".file.reader",
        "open_release": ".file.reader",
        "own_key": ".signing.keys",
        "release": ".publishing.pipeline",
    },
)
