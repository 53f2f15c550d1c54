"""The format of CSV files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from ..arguments import require_kind, set_plain
from ..display.representations import BriefRepr
from ..errors import SchemaError
from .names import require_name
from .text_encodings import require_encoding

POINT: Final = "."
COMMA: Final = ","
"""Decimal marks, which may precede the fractional digits of a number."""
MISSING_TEXTS: Final = ("", "NA", "NaN", "nan", "null", "NULL")
"""Texts that drafts of schemas take for missing values."""


@dataclass(frozen=True, repr=False)
class CsvFormat(BriefRepr):
    """The format of a CSV file; for Parquet, only `missing` matters.

    Attributes:
        separator: the one character between values.
        encoding: the encoding of texts, such as "utf-8" or "latin-1"; see `text_encodings`.
        missing: the texts that stand for a missing value; the first one is written. A number stands
            for every value that is the same float, however it is stored; a date, time or duration
            for every value that is the same to the second.
        decimal: the decimal mark, "." or ",". Points never group digits.

    Raises:
        SchemaError: a mark or an encoding is none, or a missing value cannot be written.
    """

    separator: str = ","
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ("",)
    decimal: str = POINT

    def __post_init__(self) -> None:
        for name in ("separator", "encoding", "decimal"):
            require_kind(name, getattr(self, name), str, "a text", refusal=SchemaError)
        wanted = "a tuple of texts, such as ('', 'NA')"
        require_kind("missing", self.missing, (tuple, list), wanted, refusal=SchemaError)
        for text in self.missing:
            require_kind("each of missing", text, str, "a text", refusal=SchemaError)
        set_plain(self, missing=tuple(self.missing))
        if self.decimal not in (POINT, COMMA):
            raise SchemaError(f"decimal {self.decimal!r}: it is a point or a comma")
        if len(self.separator) != 1 or self.separator in '"\r\n' or ord(self.separator) > 127:
            raise SchemaError(f"separator {self.separator!r}: it is one character, such as ;")
        require_encoding(self.encoding)
        if not self.missing or len(self.missing) > 100:
            raise SchemaError("missing: name the texts that stand for missing values")
        for text in self.missing:
            require_name(text, "a missing value", empty=True)
        try:
            self.missing[0].encode(self.encoding)
        except UnicodeError as error:
            raise SchemaError(
                f"missing: {self.encoding} cannot write {self.missing[0]!r}, which stands for "
                "missing values: put another text first"
            ) from error

    def to_json(self) -> dict[str, Any]:
        """A plain mapping that `from_json` reads back."""
        return {
            "separator": self.separator,
            "encoding": self.encoding,
            "missing": list(self.missing),
            **({} if self.decimal == POINT else {"decimal": self.decimal}),
        }

    @classmethod
    def from_json(cls, document: object) -> CsvFormat:
        """Read what `to_json` wrote.

        Raises:
            SchemaError: something is unknown, of the wrong type, or out of range.
        """
        if not isinstance(document, Mapping) or set(document) - {f.name for f in fields(cls)}:
            raise SchemaError("csv: it has the entries separator, encoding, missing and decimal")
        values = dict(document)
        missing = values.pop("missing", [""])
        if not isinstance(missing, list) or not all(isinstance(text, str) for text in missing):
            raise SchemaError("csv: missing is a list of texts")
        if not all(isinstance(text, str) for text in values.values()):
            raise SchemaError("csv: separator, encoding and decimal are texts")
        return cls(**values, missing=tuple(missing))
