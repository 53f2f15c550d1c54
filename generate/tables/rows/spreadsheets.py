"""Cells of a CSV file that a spreadsheet would take for formulas.

Names of columns and categories may be somebody else's words. A cell that begins with = + - or @ is
computed by many spreadsheet programs, and a formula can fetch what it likes from the internet, or
send it there.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from ....common.schema.columns.dtypes import NUMBER
from ....common.schema.csv_format import POINT

SIGNS: Final = "=+-@"
"""How formulas begin."""
_BEFORE_A_FORMULA: Final = re.compile(
    '(^|[,;|\t\r\n])(?=["\\s\0\ufeff]*[=+\\-@\uff1d\uff0b\uff0d\uff20])|^(?=[\t\r\n])'
)
"""Where a cell could begin, if the program takes another separator than the file has, and a sign of
a formula (or its full-width form) follows, maybe after what some programs skip."""


@lru_cache(1 << 12)  # most are categories
def shown_as_text(cell: str, decimal: str = POINT) -> str:
    """A cell that a spreadsheet shows and does not compute: a single quote comes first, if need be.

    Numbers stay as they are, with a sign, too.
    """
    is_number = NUMBER.fullmatch(cell.replace(decimal, POINT))
    return cell if is_number else _BEFORE_A_FORMULA.sub(r"\1'", cell)
