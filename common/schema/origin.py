"""Where a piece of public knowledge came from."""

from __future__ import annotations

from enum import Enum


class Origin(Enum):
    """Where a piece of public knowledge came from."""

    DECLARED = "declared"
    """Stated by the data owner."""
    FORMAT = "format"
    """A property of the file format, whatever the file holds: headers, the range of a pixel."""
    FROM_DATA = "from-data"
    """Looked up in the records themselves: outside the guarantee, and every release says so."""
    PRIVATE = "private"
    """Found in the records with differential privacy, by a release that the ledger counts."""
