"""Numbers in texts, written as CSV files of several countries have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...schema.csv_format import COMMA, CsvFormat

if TYPE_CHECKING:
    import pyarrow as pa

_NO_DIGIT: Final = "_"


def with_points(texts: pa.Array, form: CsvFormat) -> pa.Array:
    """Texts whose numbers are numbers to Arrow, without spaces around.

    With a decimal comma a text with a point is none: 1.234 would be another number.
    """
    from pyarrow import compute

    texts = compute.utf8_trim_whitespace(texts)
    if form.decimal != COMMA:
        return texts
    return compute.replace_substring(compute.replace_substring(texts, ".", _NO_DIGIT), ",", ".")
