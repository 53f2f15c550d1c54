"""Canonical JSON: the spelling of documents over which digests are computed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def canonical_json(document: Mapping[str, Any]) -> str:
    """The canonical spelling of a JSON document, over which digests are computed."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of a JSON document's canonical spelling, in hexadecimal."""
    return hashlib.sha256(canonical_json(document).encode()).hexdigest()
