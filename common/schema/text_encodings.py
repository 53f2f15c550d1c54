"""The encodings that a table's texts may have.

Python knows others, some of which take time quadratic in a text's length (`punycode`, `idna`): a
schema that names one of those could block its reader.
"""

from __future__ import annotations

import codecs
from typing import Final

from ..errors import SchemaError

ENCODINGS: Final = frozenset(
    {
        "ascii", "utf-8", "utf-8-sig",
        *(f"utf-{bits}{order}" for bits in (16, 32) for order in ("", "-le", "-be")),
        *(f"iso8859-{part}" for part in range(1, 17) if part != 12),
        *(f"cp{page}" for page in range(1250, 1259)),  # Windows
        *(f"cp{page}" for page in (437, 737, 775, 850, 852, 855, 857, 858, *range(860, 867), 869)),
        *(f"cp{page:03}" for page in (37, 273, 424, 500, 1026, 1140)),  # mainframes
        *(f"mac-{script}" for script in ("roman", "latin2", "cyrillic", "greek", "turkish",
                                         "iceland", "croatian", "romanian")),
        "koi8-r", "koi8-u", "kz1048", "cp1125", "cp874", "tis-620",
        "gb2312", "gbk", "gb18030", "big5", "big5hkscs", "cp950",
        "shift_jis", "cp932", "euc_jp", "euc_kr", "cp949", "johab",
    }
)  # fmt: skip
"""Their names in Python's registry; their aliases are accepted, too."""
_LONGEST_NAME: Final = 40


def require_encoding(name: str) -> None:
    """Check that a table's texts may have an encoding.

    Args:
        name: any of its names, such as "latin-1" or "UTF8".

    Raises:
        SchemaError: there is no such encoding, or it is not allowed.
    """
    known = len(name) <= _LONGEST_NAME
    try:
        known = known and codecs.lookup(name).name in ENCODINGS
    except (LookupError, ValueError):  # an odd character is a UnicodeError, a ValueError
        known = False
    if not known:
        raise SchemaError(
            f"encoding {name[:_LONGEST_NAME]!r}: known are utf-8, utf-16, latin-1, cp1252, cp850, "
            "mac-roman, shift_jis, gb18030, big5, euc-kr and others that texts are usually in"
        )
