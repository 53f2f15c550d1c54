"""What stands for a category in a column of codes, beside the numbers of those that are listed."""

from __future__ import annotations

from typing import Final

MISSING: Final = -1
"""The code of a category that is not there."""
UNLISTED: Final = -2
"""The code of one that the schema does not list, where records are only compared with others."""
