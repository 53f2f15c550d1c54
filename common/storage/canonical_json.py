"""JSON documents in the one spelling that digests are taken of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def canonical_json(document: Mapping[str, Any]) -> str:
    """The one spelling of a JSON document that digests are taken of."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of a JSON document's canonical spelling, in hexadecimal."""
    return hashlib.sha256(canonical_json(document).encode()).hexdigest()
