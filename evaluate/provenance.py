"""What synthetic records say of where they come from (`provenance.json`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..common.display.console import console
from ..common.display.text import promised
from ..common.errors import DataError
from ..common.schema.image import ImageSchema
from ..common.storage import door
from ..common.storage.plain import parse_json
from ..common.storage.synthetic_folder import PROVENANCE
from ..release.file.citation import citation_of, contradictions, is_private
from ..release.file.distilled import AnyOpened
from ..release.file.reader import open_any
from ..release.signing.policy import Acceptance

_LARGEST_FILE: Final = 1 << 26


def read_provenance(folder: Path) -> dict[str, Any]:
    """What a folder says of where its records come from; nothing if it says nothing.

    Raises:
        DataError: what is there is not what `dpntk generate` writes.
    """
    file = folder / PROVENANCE
    if not os.path.lexists(file):
        return {}
    damaged = DataError(f"{file}: damaged; generate the records again")
    try:
        document = parse_json(door.read(file, _LARGEST_FILE, refusal=DataError))
    except ValueError as error:
        raise damaged from error
    if not isinstance(document, dict):
        raise damaged
    return document


def is_distilled(provenance: Mapping[str, Any]) -> bool:
    """Whether records say that they are points for kernel regression."""
    return "kernel" in provenance


def described(provenance: Mapping[str, Any]) -> str:
    """Synthetic records in words, as they head a row of a table."""
    private = is_private(provenance)
    if private is None:
        return "synthetic"
    if not private:
        return "synthetic (NOT PRIVATE)"
    epsilon = provenance["release"].get("epsilon")
    return f"synthetic (epsilon {promised(epsilon)})" if isinstance(epsilon, float) else "synthetic"


def confirmed(
    path: Path, acceptance: Acceptance, provenance: Mapping[str, Any], classes: tuple[str, ...]
) -> dict[str, Any]:
    """What records say of where they come from, once a release has confirmed it.

    Nobody signs `provenance.json`, so whatever it says of the release is compared with the release
    or replaced by it. That the records came out of it, nothing can show.

    Args:
        path: of the release.
        acceptance: whose releases to open.
        provenance: what the records say.
        classes: the names of their classes.

    Returns:
        The same, with the release's own figures.

    Raises:
        DataError: they say that they come from elsewhere, or something that is not true of it.
        ReleaseError: the release cannot be accepted.
    """
    opened = open_any(path, acceptance)
    said = confirmed_by(opened, provenance, classes)
    console.print(f"said to be made from {opened.path}, {opened.signed_by}")
    return said


def confirmed_by(
    opened: AnyOpened, provenance: Mapping[str, Any], classes: tuple[str, ...]
) -> dict[str, Any]:
    """Like `confirmed`, with a release that is open already.

    Raises:
        DataError: the records say that they come from elsewhere, or something that is not true.
    """
    cited = provenance.get("release")
    if not isinstance(cited, dict) or cited.get("digest") != opened.digest:
        raise DataError(f"the synthetic records do not say that they come from {opened.path}")
    schema = opened.release.schema
    wrong = contradictions(cited, opened)
    if classes != schema.classes or provenance.get("schema", schema.to_json()) != schema.to_json():
        wrong.append("schema")
    prepared = schema.preparation.to_json() if isinstance(schema, ImageSchema) else {}
    if provenance.get("preparation", {}) != prepared:
        wrong.append("preparation")
    if wrong:
        raise DataError(
            f"what the synthetic records say of {opened.path} is not true of it: {', '.join(wrong)}"
        )
    return {**provenance, "release": citation_of(opened)}
