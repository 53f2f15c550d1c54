"""Numbers in texts, with the decimal marks of different countries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...schema.csv_format import COMMA, CsvFormat

if TYPE_CHECKING:
    import pyarrow as pa

_NO_DIGIT: Final = "_"


def with_points(texts: pa.Array, form: CsvFormat) -> pa.Array:
    """Convert numbers in texts to the form that Arrow reads, without surrounding spaces.

    With a decimal comma, a text with a point is not a number: 1.234 would be another one.
    """
    from pyarrow import compute

    texts = compute.utf8_trim_whitespace(texts)
    if form.decimal != COMMA:
        return texts
    return compute.replace_substring(compute.replace_substring(texts, ".", _NO_DIGIT), ",", ".")
