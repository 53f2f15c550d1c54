"""Cells of a CSV file that a spreadsheet would take for formulas.

Names of columns and categories may come from somebody else. Many spreadsheet programs evaluate a
cell that begins with = + - or @, and a formula can fetch anything from the internet, or send it
there.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from ....common.schema.columns.dtypes import NUMBER
from ....common.schema.csv_format import POINT

SIGNS: Final = "=+-@"
"""The characters that begin a formula."""
_BEFORE_A_FORMULA: Final = re.compile(
    '(^|[,;|\t\r\n])(?=["\\s\0\ufeff]*[=+\\-@\uff1d\uff0b\uff0d\uff20])|^(?=[\t\r\n])'
)
"""Where a formula could begin: at the start of a cell under any separator a program may assume,
followed by a sign (or its full-width form), possibly after characters that some programs skip."""


@lru_cache(1 << 12)  # most are categories
def shown_as_text(cell: str, decimal: str = POINT) -> str:
    """Put a single quote before a formula, so that a spreadsheet shows and does not evaluate it.

    Numbers stay as they are, even with a sign.
    """
    is_number = NUMBER.fullmatch(cell.replace(decimal, POINT))
    return cell if is_number else _BEFORE_A_FORMULA.sub(r"\1'", cell)
