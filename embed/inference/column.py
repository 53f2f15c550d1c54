"""Which kind of column values look like, and between which bounds: what a draft says of one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ...common.arguments import argument
from ...common.display.console import notice
from ...common.display.representations import RedactedRepr
from ...common.display.text import counted
from ...common.features.cells import MOST_CELLS
from ...common.schema.column import Column
from ...common.schema.csv_format import COMMA, POINT, CsvFormat
from ...common.schema.dtypes import DATE_DTYPES, DURATION_DTYPES, LARGEST
from ...common.schema.kinds import ColumnKind, Missing, Transform
from ...common.sources.tables.decimals import with_points
from ...common.sources.tables.rows import missing_in, plain
from .dates import SeenDates
from .durations import SeenDurations

if TYPE_CHECKING:
    import pyarrow as pa

TIMED: Final = (*DATE_DTYPES, *DURATION_DTYPES)
_MOST_CATEGORIES: Final = 500
MOST_LABELS: Final = 100
_MANY: Final = 20
_MOST_DIFFERENT: Final = 1 << 18
_ROWS_OF_A_CLASS: Final = 100
"""Where there are fewer in the mean, rare classes of a label are hidden by noise."""
_CODE: Final = re.compile(r"\+|-?0[0-9]")
"""How texts begin that look like numbers and are written as no program writes numbers."""
_PADDED: Final = r"^\s*0[0-9]+\s*$"
"""Texts that are whole numbers, were it not for zeros before them: codes are written so."""
_WITH_COMMA: Final = re.compile(r"\s*[+-]?[0-9]+(,[0-9]+)?\s*")
_WITH_SIGNS: Final = re.compile(
    r"\s*[+-]?[$€£¥]?\s*[+-]?[0-9][0-9.,'\u2019\u00a0\u202f]*\s*[$€£¥%]?\s*"
)
"""Texts that a person would read as numbers: digits in groups, amounts of money, percentages."""
_NINES: Final = re.compile(r"9+")
_BESIDE_TEXTS: Final = 50
"""So many different numbers are measurements and no codes, whatever texts stand beside them."""
_MOST_DECIMALS: Final = 4
_ONE: Final = 10**_MOST_DECIMALS
_CHANCE: Final = 100
"""Numbers are said to be multiples of more than their last digit if those with that digit would all
be so by chance less than one in so many times."""
_SPREAD: Final = 20
_LARGE: Final = 20
"""Values up to here and beyond, with a mean below a 20th of the range, are looked at on a
logarithmic scale; and so are whole numbers, counts most often, where not each has a cell. Of
numbers with both signs it is the mean of absolute values."""


@dataclass(repr=False)
class SeenColumn(RedactedRepr):
    """What was seen of a column so far."""

    name: str
    dtype: str | None
    """As the file says; None for CSV, which says nothing."""
    form: CsvFormat
    numeric: bool = True
    whole: bool = True
    missing: bool = False
    lacking: int = 0
    """In how many rows a value is missing."""
    stand_ins: set[str] = field(default_factory=set)
    """The texts of a CSV file that stood for missing values."""
    lower: float = np.inf
    upper: float = -np.inf
    order: tuple[str, ...] | None = None
    """The categories of an ordered type, such as an ordered categorical of pandas, also those that
    no row has; none if parts of the table disagree."""
    ends: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    """The two smallest and the two largest different numbers, sorted; fewer if there are not so
    many."""
    total: float = 0.0
    magnitude: float = 0.0
    """The sum of absolute values."""
    count: int = 0
    texts: int = 0
    padded: bool = False
    """Whether a text of a CSV file is a whole number with zeros before it."""
    named_as_a_value: bool = False
    """Whether a row has the column's name for its value."""
    values: set[str] = field(default_factory=set)
    dates: SeenDates = field(default_factory=SeenDates)
    durations: SeenDurations = field(default_factory=SeenDurations)
    divisor: int = 0
    """The greatest common divisor of whole numbers."""
    different: NDArray[np.float64] | None = field(default_factory=lambda: np.empty(0))
    """All numbers, as long as no two are the same and they are not too many; None from then on."""
    decimals: int = 0
    """How many digits behind the point all numbers have at the most; too many stand for any."""
    fraction: int = 0
    """The greatest common divisor of numbers and 1, in units of the last of `_MOST_DECIMALS`."""
    with_last_digit: int = 0
    """How many numbers have as many digits behind the point as `decimals`."""

    def look_at(self, column: pa.Array) -> None:
        """Take note of some more values."""
        import pyarrow
        from pyarrow import compute, types

        if types.is_dictionary(column.type):
            listed = column.dictionary.cast(pyarrow.string()).to_pylist()
            order = tuple(listed) if column.type.ordered and None not in listed else ()
            self.order = order if self.order in (None, order) else ()
            column = column.dictionary_decode()
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
        if not self.looks_numeric:
            self.numeric = False
        if self.dates.ranges and self.dtype in (None, "string", *DATE_DTYPES):
            self.dates.look_at((texts if self.dtype in (None, "string") else column).filter(there))
        if self.durations.formats and self.dtype in (None, "string", *DURATION_DTYPES):
            stored = self.dtype in DURATION_DTYPES
            self.durations.look_at((column if stored else texts).filter(there))
        if self.numeric:
            self._look_at_numbers(texts.filter(there))
        if self.numeric and self.dtype is None and not self.padded:
            found = compute.any(compute.match_substring_regex(texts.filter(there), _PADDED))
            self.padded = bool(found.as_py())

    def _look_at_numbers(self, texts: pa.StringArray) -> None:
        """Take note of some more values that may be numbers, in the texts that stand for them."""
        import pyarrow

        try:
            known = with_points(texts, self.form) if self.dtype is None else texts
            numbers = known.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
        except pyarrow.ArrowInvalid:
            self.numeric = False
            return
        self.missing = self.missing or bool(np.isnan(numbers).any())
        numbers = numbers[np.isfinite(numbers)]
        if len(numbers):
            self._note_sizes(numbers)
            self._note_steps(numbers)

    def _note_sizes(self, numbers: NDArray[np.float64]) -> None:
        """Take note of how large some finite numbers are, and whether any two are the same."""
        self.lower = min(self.lower, float(numbers.min()))
        self.upper = max(self.upper, float(numbers.max()))
        self.total += float(numbers.sum())
        self.magnitude += float(np.abs(numbers).sum())
        self.count += len(numbers)
        inner = numbers[(numbers > self.lower) & (numbers < self.upper)]
        others = [inner.min(), inner.max()] if len(inner) else []
        known = np.unique([self.lower, self.upper, *self.ends, *others])
        self.ends = np.unique([*known[:2], *known[-2:]])
        if self.different is not None:
            self.different = _if_different(np.concatenate([self.different, numbers]))

    def _note_steps(self, numbers: NDArray[np.float64]) -> None:
        """Take note of what some finite numbers are multiples of; their sizes are noted already."""
        self.whole = self.whole and bool((numbers == np.rint(numbers)).all())
        if self.whole and max(-self.lower, self.upper) <= LARGEST:
            self.divisor = int(np.gcd.reduce(numbers.astype(np.int64), initial=self.divisor))
        before = self.decimals
        while self.decimals <= _MOST_DECIMALS and _longer(numbers, self.decimals):
            self.decimals += 1
        if self.decimals > before:
            self.with_last_digit = 0
        if 0 < self.decimals <= _MOST_DECIMALS:
            self.with_last_digit += _longer(numbers, self.decimals - 1)
        if self.decimals <= _MOST_DECIMALS and self._are_exact(_MOST_DECIMALS):
            units = np.rint(numbers * _ONE).astype(np.int64)
            self.fraction = int(np.gcd.reduce(units, initial=self.fraction or _ONE))

    @property
    def looks_numeric(self) -> bool:
        """Whether the file's type leaves it open that values are numbers."""
        return self.dtype not in ("string", "bool", *TIMED)

    @property
    def of_codes(self) -> bool:
        """Whether the whole numbers of a CSV file are written with zeros before them."""
        return self.numeric and self.whole and self.padded

    @property
    def of_numbers(self) -> bool:
        """Whether values are numbers."""
        return self.numeric and not self.of_codes

    @property
    def has_signs(self) -> bool:
        """Whether the many values of a CSV file would be numbers, were it not for signs in them."""
        return self._reads_as_text and all(map(_WITH_SIGNS.fullmatch, self.values))

    @property
    def has_texts_beside_numbers(self) -> bool:
        """Whether the values of a CSV file are many numbers and a few texts, such as <0.5."""
        if not self._reads_as_text:
            return False
        numbers = sum(_is_number(text) for text in self.values)
        return numbers > _BESIDE_TEXTS and numbers > 0.9 * len(self.values)

    @property
    def _reads_as_text(self) -> bool:
        """Whether the values of a CSV file are no numbers, and too many for codes."""
        return self.dtype is None and not self.numeric and len(self.values) > _BESIDE_TEXTS

    @property
    def needs_commas(self) -> bool:
        """Whether the values of a CSV file are no numbers, but look so with a decimal comma."""
        if self.dtype is not None or self.numeric or self.form.decimal != POINT:
            return False
        return bool(self.values) and all(_WITH_COMMA.fullmatch(text) for text in self.values)

    @property
    def stored(self) -> str:
        """How values are stored, as a schema says it."""
        if self.dtype is not None:
            return self.dtype
        if not self.of_numbers:
            return "string"
        integral = self.whole and not any(
            self.form.decimal in v or "e" in v.lower() for v in self.values
        )
        return "int64" if integral else "float64"

    @property
    def all_differ(self) -> bool:
        """Whether no two rows have the same value, as far as that was looked at."""
        if self.numeric:
            return self.different is not None
        return len(self.values) == self.texts

    @property
    def ends_in_a_code(self) -> bool:
        """Whether the largest or smallest number may stand for a missing value.

        So does one of nines that is farther from the next one than all others are from each other,
        and -1 or one of nines below numbers that are not negative.
        """
        if len(self.ends) < 3:
            return False
        smallest, second = self.ends[:2]
        next_largest, largest = self.ends[-2:]
        above = _NINES.fullmatch(f"{largest:.0f}") and largest == np.rint(largest)
        below = _NINES.fullmatch(f"{-smallest:.0f}") or smallest == -1
        return bool(
            (above and largest - next_largest > next_largest - smallest)
            or (below and second >= 0 and smallest == np.rint(smallest))
        )

    @property
    def name_may_be_a_value(self) -> bool:
        """Whether the name could be a value of the column: then it may be a record's.

        The first line of a file without a header is a record, and becomes the names. So it is a
        number in a column of numbers, a date or duration in one of such, or a value of other rows.
        """
        lacking = self.missing and self.name in self.form.missing
        if self.named_as_a_value or lacking or not self.texts:
            return self.named_as_a_value or lacking
        if self.dtype == "bool":
            return self.name.lower() in ("false", "true")
        if self.needs_commas and _WITH_COMMA.fullmatch(self.name):
            return True
        if self.dtype in (None, "string", *TIMED):
            timed = self.dates.reads(self.name, stored=self.dtype in DATE_DTYPES)
            if timed or self.durations.reads(self.name, stored=self.dtype in DURATION_DTYPES):
                return True
        return self.numeric and _is_number(self.name)

    def describe(self, is_label: bool, called: str) -> Column | None:
        """The column, or None if nothing sensible can be said of it.

        Args:
            is_label: whether it tells a record's class.
            called: what notices call it.
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
        disguised = self.needs_commas or self.has_signs or self.has_texts_beside_numbers
        if self.dtype in TIMED or (disguised and not is_label):
            return None
        few = len(self.values) <= (MOST_LABELS if is_label else 2)
        listed = 1 <= len(self.values) <= _MOST_CATEGORIES
        if not self.of_numbers and _MANY < len(self.values) > self.texts / 2:
            listed = False  # names, dates, or numbers with a comma: most rows have one of their own
        if (not self.of_numbers or few) and listed:
            return self._with_categories(is_label, called)
        if not self.of_numbers or not self.lower < self.upper:
            return None
        return self._with_bounds(called)

    def _with_categories(self, is_label: bool, called: str) -> Column:
        """The column, as one of the categories that were seen; `called` so in notices."""
        stored, texts = self._categories()
        categories = tuple(sorted(texts, key=_as_people_sort))
        kind = ColumnKind.BOOLEAN if len(categories) == 2 else ColumnKind.CATEGORICAL
        if stored == "bool":
            categories = ("false", "true")
            kind = ColumnKind.BOOLEAN
        if self.order and stored == "string" and 2 < len(self.order) <= _MOST_CATEGORIES:
            categories, kind = self.order, ColumnKind.ORDINAL
        if len({" ".join(text.casefold().split()) for text in categories}) < len(categories):
            notice(
                f"{called}: some categories differ by capitals or blanks alone: if they mean the "
                "same, write them in one way"
            )
        if is_label and 2 < len(categories) > self.texts / _ROWS_OF_A_CLASS:
            notice(
                f"{called}: {counted(len(categories), 'class', 'classes')} for "
                f"{counted(self.texts, 'row')}: rare ones will be noise; a coarser label has "
                "fewer"
            )
        missing = Missing.CATEGORY if self.missing and not is_label else Missing.REFUSED
        return Column(self.name, kind, stored, categories=categories, missing=missing)

    def _with_bounds(self, called: str) -> Column:
        """The column, as one of numbers between bounds that were seen; `called` so in notices."""
        if self.whole and self.different is not None and _MANY < len(self.different) == self.texts:
            notice(
                f"{called}: every row has another number: if it is an identifier, name it in "
                "left_out, or have it made anew by a pattern"
            )
        if self.ends_in_a_code:
            notice(
                f"{called}: its largest or smallest number looks like a code, as 999 and -1 are: "
                f"if it stands for a value that is not there, name it with {argument('missing')}, "
                "and all other texts that do"
            )
        kind = ColumnKind.INTEGER if self.whole else ColumnKind.CONTINUOUS
        number, step = int if self.whole else float, self._step()
        lower, upper = self.lower, self.upper
        if self.stored == "float32" and not self.whole and step is self._decimals() is None:
            # They were looked at as texts, which are rounded; bounds have to hold what is stored.
            lower, upper = (float(np.float32(bound)) for bound in (lower, upper))
        return Column(
            self.name,
            kind,
            self.stored,
            number(lower),
            number(upper),
            transform=self._transform(),
            missing=Missing.INDICATOR if self.missing else Missing.REFUSED,
            step=step,
            decimals=None if step else self._decimals(),
        )

    @property
    def unfit(self) -> str:
        """Why nothing sensible can be said of columns like this one."""
        if self.dtype == "null" or (self.missing and not self.texts):
            return "no row has a value"
        if self.dtype is not None and self.dtype.startswith("timestamp") and "tz=" in self.dtype:
            return "their times have a time zone (store those of one zone without it)"
        if self.dtype in TIMED:
            return "all dates, times or durations in them are the same"
        if self.needs_commas:
            say = argument("decimal", ",")
            return f"they look like numbers with a decimal comma (if they are, say {say})"
        if self.of_codes:
            return (
                "they look like codes, with zeros before them, and are too many to list (list "
                "those that matter, and an other; or write numbers without the zeros)"
            )
        if self.has_signs:
            return (
                "they look like numbers with signs in them (write 1234.5 for 1,234.5, for $1234.5 "
                "and for 1234.5%)"
            )
        if self.has_texts_beside_numbers:
            return (
                "they hold many numbers and a few texts, as <0.5 and n/a are (if these stand for a "
                f"value that is not there, name them with {argument('missing')}, and all others "
                "that do; otherwise write numbers in their place)"
            )
        return (
            "they hold neither numbers (such as 1234.5), dates without a time zone, durations, nor "
            "a few texts"
        )

    def _categories(self) -> tuple[str, set[str]]:
        """How they are stored, and their texts: one for each number, where they are numbers."""
        if self.stored in ("string", "bool"):
            return self.stored, self.values
        texts = {text.strip().replace(self.form.decimal, POINT) for text in self.values}
        if any(_CODE.match(text) for text in texts):  # 01 and 1 may be two codes
            return "string", self.values
        # Of 1 and 1.0, the shorter one stands for both.
        numbers = {float(text): text for text in sorted(texts, key=len, reverse=True)}
        return self.stored, set(numbers.values())

    def _are_exact(self, digits: int) -> bool:
        """Whether numbers with so many digits behind the point can be told apart."""
        return bool(max(-self.lower, self.upper) * 10**digits <= LARGEST)

    def _step(self) -> float | None:
        """What all numbers are multiples of, if that is more than their last digit."""
        if self.whole:
            return self.divisor if self.divisor > 1 else None
        coarser = self._decimals() is not None and self._are_exact(_MOST_DECIMALS)
        digit = 10 ** max(0, _MOST_DECIMALS - self.decimals)
        by_chance = (digit / self.fraction) ** self.with_last_digit if coarser else 1.0
        return self.fraction / _ONE if by_chance * _CHANCE < 1 else None

    def _decimals(self) -> int | None:
        if self.whole or self.decimals > _MOST_DECIMALS or not self._are_exact(self.decimals):
            return None
        return self.decimals

    def _transform(self) -> Transform:
        spread = self.upper - self.lower
        least = MOST_CELLS if self.whole else _LARGE
        signed = self.lower < 0
        usual = self.magnitude / self.count if signed else self.total / self.count - self.lower
        if spread < least or usual > spread / _SPREAD:
            return Transform.NONE
        return Transform.SIGNED_LOG if signed else Transform.LOG1P


def _if_different(numbers: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Some numbers, sorted, if no two are the same and they are not too many to look at."""
    if len(numbers) > _MOST_DIFFERENT:
        return None
    found: NDArray[np.float64] = np.unique(numbers)
    return found if len(found) == len(numbers) else None


def _longer(numbers: NDArray[np.float64], digits: int) -> int:
    """How many numbers have more digits behind the point."""
    return int(np.count_nonzero(np.round(numbers, digits) != numbers))


def _is_number(text: str) -> bool:
    """Whether a text is a number, with a point or a decimal comma."""
    try:
        float(text.replace(COMMA, POINT))
    except ValueError:
        return False
    return True


def _as_people_sort(text: str) -> tuple[bool, float, str]:
    """Numbers by size, then texts."""
    try:
        return False, float(text), text
    except ValueError:
        return True, 0.0, text
