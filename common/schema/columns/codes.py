"""Special codes for categories, beside the indices of the listed ones."""

from __future__ import annotations

from typing import Final

MISSING: Final = -1
"""The code of a missing value."""
UNLISTED: Final = -2
"""The code of a category that the schema does not list, if records are only compared."""
