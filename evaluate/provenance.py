"""The origin that synthetic records claim (`provenance.json`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..common.display.console import console
from ..common.display.text import promised
from ..common.errors import DataError
from ..common.schema.image import ImageSchema
from ..common.storage import untrusted_files
from ..common.storage.plain import parse_json
from ..common.storage.synthetic_folder import PROVENANCE
from ..release.file.citation import citation_of, contradictions, is_private
from ..release.file.distilled import AnyOpened
from ..release.file.reader import open_any
from ..release.signing.policy import Acceptance

_LARGEST_FILE: Final = 1 << 26


def read_provenance(folder: Path) -> dict[str, Any]:
    """Read the provenance of a folder's records; empty if it has none.

    Raises:
        DataError: it is not what `dpntk generate` writes.
    """
    file = folder / PROVENANCE
    if not os.path.lexists(file):
        return {}
    damaged = DataError(f"{file}: damaged; generate the records again")
    try:
        document = parse_json(untrusted_files.read(file, _LARGEST_FILE, refusal=DataError))
    except ValueError as error:
        raise damaged from error
    if not isinstance(document, dict):
        raise damaged
    return document


def is_distilled(provenance: Mapping[str, Any]) -> bool:
    """Whether records claim to be points for kernel regression."""
    return "kernel" in provenance


def heading_of(provenance: Mapping[str, Any]) -> str:
    """Describe synthetic records, as the heading of a row of a table."""
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
    """The provenance of records, confirmed by the release that it names.

    `provenance.json` is not signed, so whatever it says about the release is compared with the
    release or replaced by it. That the records were made from the release cannot be verified.

    Args:
        path: of the release.
        acceptance: whose releases to open.
        provenance: of the records.
        classes: the names of their classes.

    Returns:
        The same, with the release's own figures.

    Raises:
        DataError: the records name another release, or say something untrue about this one.
        ReleaseError: the release cannot be accepted.
    """
    opened = open_any(path, acceptance)
    said = confirmed_by(opened, provenance, classes)
    console.print(f"said to be made from {opened.path}, {opened.signed_by}")
    return said


def confirmed_by(
    opened: AnyOpened, provenance: Mapping[str, Any], classes: tuple[str, ...]
) -> dict[str, Any]:
    """Like `confirmed`, with a release that is already open.

    Raises:
        DataError: the records name another release, or say something untrue about this one.
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
