"""Drafting one column: its kind, and its bounds or categories, from its values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from ...common.arguments import argument
from ...common.display.console import notice
from ...common.display.representations import RedactedRepr
from ...common.display.text import counted, so_many
from ...common.schema.columns.column import Column
from ...common.schema.columns.dtypes import DATE_DTYPES, DURATION_DTYPES
from ...common.schema.columns.kinds import ColumnKind, Missing
from ...common.schema.columns.spellings import number_in
from ...common.schema.csv_format import COMMA, POINT, CsvFormat
from ...common.sources.tables.decimals import with_points
from ...common.sources.tables.rows import missing_in, plain
from .dates import SeenDates
from .disguises import (
    disguise_of,
    has_comma,
    has_groups,
    is_number,
    may_be_number,
    needs_commas,
    number_of,
)
from .durations import SeenDurations
from .numbers import SeenNumbers

if TYPE_CHECKING:
    import pyarrow as pa

TIMED: Final = (*DATE_DTYPES, *DURATION_DTYPES)
_MOST_CATEGORIES: Final = 500
MOST_LABELS: Final = 100
_MANY: Final = 20
_ROWS_OF_A_CLASS: Final = 100
"""With fewer rows per class of a label on average, noise hides the rare classes."""
_CODE: Final = re.compile(r"\+|-?0[0-9]")
"""The beginning of texts that look like numbers, but as no program would write them."""
_PADDED: Final = r"^\s*0[0-9]+\s*$"
"""Texts that are whole numbers with leading zeros, as codes have."""


@dataclass(repr=False)
class SeenColumn(RedactedRepr):
    """What is known so far about a column from its values.

    Attributes:
        name: its name in the header.
        dtype: its type in the file; None for CSV, which has no types.
        form: how a CSV file is written.
        numeric: whether all values may be numbers.
        missing: whether values are missing.
        lacking: the number of rows that lack a value.
        stand_ins: the texts of a CSV file that stand for missing values.
        order: the categories of an ordered type, such as an ordered categorical in pandas, even
            those that no row has; empty if parts of the table disagree.
        texts: the number of values.
        padded: whether a text of a CSV file is a whole number with leading zeros.
        infinite: whether one of the values seen as numbers is infinite.
        named_as_a_value: whether a row has the column's name as its value.
        values: the different values, as texts, as long as they are not too many.
        numbers: the values seen as numbers, if all may be.
        dates: the values seen as dates.
        durations: the values seen as durations.
    """

    name: str
    dtype: str | None
    form: CsvFormat
    numeric: bool = True
    missing: bool = False
    lacking: int = 0
    stand_ins: set[str] = field(default_factory=set)
    order: tuple[str, ...] | None = None
    texts: int = 0
    padded: bool = False
    infinite: bool = False
    named_as_a_value: bool = False
    values: set[str] = field(default_factory=set)
    numbers: SeenNumbers = field(default_factory=SeenNumbers)
    dates: SeenDates = field(default_factory=SeenDates)
    durations: SeenDurations = field(default_factory=SeenDurations)

    def observe(self, column: pa.Array) -> None:
        """Process some more values."""
        import pyarrow
        from pyarrow import compute, types

        if types.is_dictionary(column.type):
            listed = column.dictionary.cast(pyarrow.string()).to_pylist()
            order = tuple(listed) if column.type.ordered and None not in listed else ()
            self.order = order if self.order in (None, order) else ()
            column = column.dictionary_decode()
        if types.is_float16(column.type):  # Arrow writes none as texts
            column = column.cast(pyarrow.float32())
        texts = column.cast(pyarrow.string())
        same = compute.any(compute.equal(texts, self.name)).as_py()
        self.named_as_a_value = self.named_as_a_value or bool(same)
        absent = pyarrow.array(missing_in(plain(column), self.form))
        if self.dtype is None:
            self.stand_ins.update(compute.unique(texts.filter(absent)).to_pylist())
        there = compute.invert(absent)
        lacking = compute.sum(absent).as_py() or 0
        self.missing = self.missing or lacking > 0
        self.lacking += lacking
        self.texts += len(absent) - lacking
        if len(self.values) <= _MOST_CATEGORIES:
            self.values.update(compute.unique(texts.filter(there)).to_pylist())
        if self.dtype in ("string", "bool", *TIMED):
            self.numeric = False
        if self.dates.ranges and self.dtype in (None, "string", *DATE_DTYPES):
            self.dates.observe((texts if self.dtype in (None, "string") else column).filter(there))
        if self.durations.formats and self.dtype in (None, "string", *DURATION_DTYPES):
            stored = self.dtype in DURATION_DTYPES
            self.durations.observe((column if stored else texts).filter(there))
        if self.numeric:
            self._observe_numbers(texts.filter(there))
        if self.numeric and self.dtype is None and not self.padded:
            found = compute.any(compute.match_substring_regex(texts.filter(there), _PADDED))
            self.padded = bool(found.as_py())

    def _observe_numbers(self, texts: pa.StringArray) -> None:
        """Process the texts of some more values that may be numbers."""
        import pyarrow

        try:
            known = with_points(texts, self.form) if self.dtype is None else texts
            numbers = known.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
        except pyarrow.ArrowInvalid:
            self.numeric = False
            return
        self.missing = self.missing or bool(np.isnan(numbers).any())
        self.infinite = self.infinite or bool(np.isinf(numbers).any())
        self.numbers.observe(numbers[np.isfinite(numbers)])

    @property
    def of_codes(self) -> bool:
        """Whether the whole numbers of a CSV file are written with leading zeros."""
        return self.numeric and self.numbers.whole and self.padded

    @property
    def of_numbers(self) -> bool:
        """Whether the values are numbers."""
        return self.numeric and not self.of_codes

    @property
    def has_infinite(self) -> bool:
        """Whether a number is infinite."""
        return self.numeric and self.infinite

    @property
    def is_ordered(self) -> bool:
        """Whether the values are of a type that lists them, texts or numbers, in an order."""
        order = self.order or ()
        written = self.stored == "string" or all(map(is_number, order))
        return 2 < len(order) <= _MOST_CATEGORIES and written

    @property
    def stored(self) -> str:
        """How values are stored, in a schema's terms."""
        if self.dtype is not None:
            return self.dtype
        if not self.of_numbers:
            return "string"
        integral = self.numbers.whole and not any(
            self.form.decimal in v or "e" in v.lower() for v in self.values
        )
        return "int64" if integral else "float64"

    @property
    def all_differ(self) -> bool:
        """Whether no two rows have the same value, as far as that was checked."""
        if self.numeric:
            return self.numbers.different is not None
        return len(self.values) == self.texts

    @property
    def name_may_be_a_value(self) -> bool:
        """Whether the name could be a value of the column, and so part of a record.

        If a file has no header, its first line is a record and becomes the names. Then the name of
        a column of numbers is a number, that of dates a date, that of durations a duration, or the
        name is a value of other rows.
        """
        lacking = self.missing and self.name in self.form.missing
        if self.named_as_a_value or lacking or not self.texts:
            return self.named_as_a_value or lacking
        if self.dtype == "bool":
            return self.name.lower() in ("false", "true")
        if needs_commas(self) and has_comma(self.name):
            return True
        if self.dtype in (None, "string", *TIMED):
            timed = self.dates.reads(self.name, stored=self.dtype in DATE_DTYPES)
            if timed or self.durations.reads(self.name, stored=self.dtype in DURATION_DTYPES):
                return True
        return self.numeric and may_be_number(self.name)

    def describe(self, is_label: bool, called: str) -> Column | None:
        """The drafted column, or None if nothing sensible can be drafted.

        Args:
            is_label: whether it is the label.
            called: its name in notices.
        """
        name = self.name
        dates = None if is_label else self.dates.describe(name, self.dtype, missing=self.missing)
        if dates is not None and self.texts:
            if self.dates.ambiguous:
                notice(f"{called}: day or month first? The draft says {dates.format}")
            return dates
        if not is_label and self.texts:
            durations = self.durations.describe(name, self.dtype, missing=self.missing)
            if durations is not None:
                return durations
        if self.dtype in TIMED or (disguise_of(self) and not is_label):
            return None
        few = len(self.values) <= (MOST_LABELS if is_label else 2)
        listed = 1 <= len(self.values) <= _MOST_CATEGORIES
        if not self.of_numbers and _MANY < len(self.values) > self.texts / 2:
            listed = False  # names, dates or numbers with a comma: most rows have their own
        if self.has_infinite and not is_label:
            return None
        if (not self.of_numbers or few or self.is_ordered) and listed:
            return self._with_categories(is_label, called)
        return self._with_bounds(called) if self.of_numbers else None

    def _with_categories(self, is_label: bool, called: str) -> Column:
        """The column with the categories that were seen; notices call it `called`."""
        stored, texts = self._categories()
        categories = tuple(sorted(texts, key=_as_people_sort))
        kind = ColumnKind.BOOLEAN if len(categories) == 2 else ColumnKind.CATEGORICAL
        if stored == "bool":
            categories = ("false", "true")
            kind = ColumnKind.BOOLEAN
        if self.order and self.is_ordered and stored != "bool":
            categories, kind = self.order, ColumnKind.ORDINAL
        if len({" ".join(text.casefold().split()) for text in categories}) < len(categories):
            notice(
                f"{called}: some categories differ by capitals or blanks alone: if they mean the "
                "same, write them in one way"
            )
        if is_label and 2 < len(categories) > self.texts / _ROWS_OF_A_CLASS:
            notice(
                f"{called}: {counted(len(categories), 'class', 'classes')} for "
                f"{so_many(self.texts, 'row')}: rare ones will be noise; a coarser label has "
                "fewer"
            )
        missing = Missing.CATEGORY if self.missing and not is_label else Missing.REFUSED
        return Column(self.name, kind, stored, categories=categories, missing=missing)

    def _with_bounds(self, called: str) -> Column | None:
        """The column with the numeric bounds that were seen; notices call it `called`."""
        found = self.numbers.describe(self.name, self.stored, missing=self.missing)
        if found is None:
            return None
        different = self.numbers.different
        if self.form.decimal == COMMA and found.decimals == len("000") and has_groups(self.values):
            notice(
                f"{called}: every number has three digits behind its comma: if the comma is "
                "between thousands, write the numbers without it"
            )
        if self.numbers.whole and different is not None and _MANY < len(different) == self.texts:
            notice(
                f"{called}: every row has another number: if it is an identifier, name it in "
                "left_out, or have it made anew by a pattern"
            )
        if found.values and self.numbers.some_are_rare:
            notice(
                f"{called}: the draft lists the {len(found.values)} numbers that nearly all rows "
                "have, and any other counts as the nearest of them: if that is not meant, take "
                "the list out, and say lower and upper"
            )
        if self.numbers.may_be_codes and not found.values:
            notice(
                f"{called}: numbers of equal length, most of which never occur: if they are codes, "
                'list them as categories (kind = "categorical"), or rows will have others'
            )
        if self.numbers.ends_in_a_code:
            notice(
                f"{called}: its largest or smallest number looks like a code, as 999 and -1 are: "
                f"if it stands for a value that is not there, name it with {argument('missing')}, "
                "and all other texts that do"
            )
        return found

    @property
    def unfit(self) -> str:
        """Why nothing sensible can be drafted for columns like this one."""
        if self.dtype == "null" or (self.missing and not self.texts):
            return "no row has a value"
        if self.dtype is not None and self.dtype.startswith("timestamp") and "tz=" in self.dtype:
            return "their times have a time zone (store those of one zone without it)"
        if self.dtype in TIMED:
            return "all dates, times or durations in them are the same"
        if disguised := disguise_of(self):
            return disguised
        if self.has_infinite:
            return "they hold infinite numbers (write what is known, or nothing at all)"
        if self.of_codes:
            return (
                "they look like codes, with zeros before them, and are too many to list (list "
                "those that matter, and an other; or write numbers without the zeros)"
            )
        return (
            "they hold neither numbers (such as 1234.5), dates without a time zone, durations, nor "
            "a few texts"
        )

    def _categories(self) -> tuple[str, set[str]]:
        """How the categories are stored, and their texts, one for each number."""
        if self.stored in ("string", "bool"):
            return self.stored, self.values
        texts = {text.strip().replace(self.form.decimal, POINT) for text in self.values}
        if any(_CODE.match(text) for text in texts):  # 01 and 1 may be two codes
            return "string", self.values
        # Of 1 and 1.0, the shorter text stands for both.
        numbers = {number_in(text): text for text in sorted(texts, key=len, reverse=True)}
        return self.stored, set(numbers.values())


def _as_people_sort(text: str) -> tuple[bool, float, str]:
    """Sort key: numbers by size, then texts."""
    number = number_of(text)
    return number is None, number or 0.0, text
