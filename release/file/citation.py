"""Citations: how files made from a release refer to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .distilled import KIND, AnyOpened, holds_points

_OF_THE_READER: Final = {"signer", "fingerprint", "statement"}
"""Entries that depend on the reader: who vouched for the release, and the statement's wording."""


def citation_of(opened: AnyOpened) -> dict[str, Any]:
    """The identity and the promise of a release, as plain JSON."""
    release, guarantee = opened.release, opened.release.guarantee
    return {
        "id": release.release_id,
        "digest": opened.digest,
        "signer": opened.signed_by.name,
        "fingerprint": opened.signed_by.fingerprint,
        "created": release.created,
        "private": guarantee.private,
        "epsilon": release.epsilon if guarantee.private else "inf",
        "delta": guarantee.delta,
        "adjacency": guarantee.adjacency.value,
        "statement": release.statement,
        **({"kind": KIND} if holds_points(opened) else {}),
    }


def contradictions(cited: Mapping[str, Any], opened: AnyOpened) -> list[str]:
    """The names of a citation's entries that are not true of the release.

    Args:
        cited: a citation as from `citation_of`, in a file that anybody may have written.
        opened: the release.
    """
    own = citation_of(opened)
    return [
        name
        for name in own
        if name not in _OF_THE_READER and name in cited and cited[name] != own[name]
    ]


def is_private(provenance: Mapping[str, Any]) -> bool | None:
    """Whether records claim to come from a release with noise; None if they do not say.

    Args:
        provenance: the records' provenance, maybe from a file, with a citation under "release".
    """
    release = provenance.get("release")
    return release.get("private") is True if isinstance(release, dict) else None
