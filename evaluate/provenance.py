"""What synthetic records say of where they come from (`provenance.json`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..common.console import console
from ..common.errors import DataError
from ..common.words import promised
from ..release.acceptance import Acceptance
from ..release.reader import open_any


def is_private(provenance: Mapping[str, Any]) -> bool | None:
    """Whether the release that the records come from had noise; None if unknown."""
    release = provenance.get("release")
    return release.get("private") is True if isinstance(release, dict) else None


def described(provenance: Mapping[str, Any]) -> str:
    """Synthetic records in words, as they head a row of a table."""
    private = is_private(provenance)
    if private is None:
        return "synthetic"
    if not private:
        return "synthetic (NOT PRIVATE)"
    epsilon = provenance["release"].get("epsilon")
    return f"synthetic (epsilon {promised(epsilon)})" if isinstance(epsilon, float) else "synthetic"


def require_made_from(path: Path, acceptance: Acceptance, provenance: Mapping[str, Any]) -> None:
    """Check that records say that they come from a release, and that its signer is trusted.

    Raises:
        DataError: they do not say so.
        ReleaseError: the release cannot be accepted.
    """
    opened = open_any(path, acceptance)
    made_from = provenance.get("release")
    if not isinstance(made_from, dict) or made_from.get("digest") != opened.digest:
        raise DataError(f"the synthetic records do not say that they come from {path}")
    console.print(f"made from {path}, {opened.signed_by}")
