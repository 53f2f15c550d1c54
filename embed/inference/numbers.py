"""The bounds, steps and scale of a column of numbers."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...common.display.representations import RedactedRepr
from ...common.features.marginals.cells import MOST_CELLS
from ...common.schema.columns.checks import MOST_VALUES
from ...common.schema.columns.column import Column
from ...common.schema.columns.dtypes import LARGEST
from ...common.schema.columns.kinds import ColumnKind, Missing, Transform

_MOST_DIFFERENT: Final = 1 << 18
_MOST_LISTED: Final = 64
"""At most so many different numbers are listed."""
_MOST_COUNTED: Final = 1024
"""At most so many different numbers are counted, the rare ones among them included."""
_ROWS_OF_A_VALUE: Final = 10
"""Numbers are listed if they occur at least so often: a rarer one may be a single person's."""
_UNLISTED_ROWS: Final = 0.01
"""Largest share of rows whose number is rarer than that."""
_ROUNDED_BY: Final = 0.05
"""Largest root mean square of what rounding to listed numbers changes, in standard deviations. The
tail of a count is rare too, but rounding would cut it off."""
_NINES: Final = re.compile(r"9+")
_CODES: Final = re.compile(r"9+[6-9]|9{2,}")
_LEAST_CODE: Final = 100
_FEWEST_CODES: Final = 20
_UNUSED: Final = 4
"""Numbers of several digits may be codes if there are at least so many different ones, and so many
times as many between the smallest and the largest."""
_MOST_DECIMALS: Final = 4
_ONE: Final = 10**_MOST_DECIMALS
_ERRORS: Final = 4
"""The rounding error allowed in numbers, in units in the last place: 0.1 + 0.2 counts as having one
decimal."""
_GAPS: Final = 2
"""Multiples of a step are listed if this many times as many lie between the bounds."""
_CHANCE: Final = 100
"""Numbers are taken to be multiples of more than one unit of their last digit if chance alone would
make all of them such multiples less than once in this many cases."""
_SPREAD: Final = 10
_LARGE: Final = 20
"""A column that reaches this value and has a mean below a tenth of its range is put on a
logarithmic scale. Whole numbers, which are mostly counts, must reach `MOST_CELLS` instead. If
numbers have both signs, the mean of absolute values counts."""


@dataclass(repr=False)
class SeenNumbers(RedactedRepr):
    """What is known so far about the finite numbers of a column.

    Attributes:
        whole: whether all are whole numbers.
        lower: the smallest.
        upper: the largest.
        ends: the two smallest and the two largest different numbers, sorted, float64; fewer if
            there are fewer.
        total: their sum.
        magnitude: the sum of their absolute values.
        count: how many there are.
        divisor: the greatest common divisor of whole numbers.
        different: all numbers, float64, as long as no two are equal and they are not too many; None
            from then on.
        decimals: the most decimals that a number has; a value above the limit means any number of
            decimals.
        fraction: the greatest common divisor of the numbers and 1, in units of
            10^-`_MOST_DECIMALS`.
        with_last_digit: how many numbers have as many decimals as `decimals`.
        few: how often each number occurs, as long as not too many differ; None from then on.
    """

    whole: bool = True
    lower: float = np.inf
    upper: float = -np.inf
    ends: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    total: float = 0.0
    magnitude: float = 0.0
    count: int = 0
    divisor: int = 0
    different: NDArray[np.float64] | None = field(default_factory=lambda: np.empty(0))
    decimals: int = 0
    fraction: int = 0
    with_last_digit: int = 0
    few: Counter[float] | None = field(default_factory=Counter)

    def observe(self, numbers: NDArray[np.float64]) -> None:
        """Process some more finite numbers, float64 (n,)."""
        if len(numbers):
            self._note_sizes(numbers)
            self._note_steps(numbers)

    def _note_sizes(self, numbers: NDArray[np.float64]) -> None:
        """Record how large some numbers are, and whether any two are equal."""
        self.lower = min(self.lower, float(numbers.min()))
        self.upper = max(self.upper, float(numbers.max()))
        with np.errstate(over="ignore"):  # a sum may well be infinite
            self.total += float(numbers.sum())
            self.magnitude += float(np.abs(numbers).sum())
        self.count += len(numbers)
        inner = numbers[(numbers > self.lower) & (numbers < self.upper)]
        others = [inner.min(), inner.max()] if len(inner) else []
        known = np.unique([self.lower, self.upper, *self.ends, *others])
        self.ends = np.unique([*known[:2], *known[-2:]])
        if self.different is not None:
            self.different = _if_different(np.concatenate([self.different, numbers]))
        if self.few is not None:
            numbers, times = np.unique(numbers, return_counts=True)
            if len(numbers) <= _MOST_COUNTED:
                self.few.update(dict(zip(numbers.tolist(), times.tolist(), strict=True)))
            if max(len(numbers), len(self.few)) > _MOST_COUNTED:
                self.few = None

    def _note_steps(self, numbers: NDArray[np.float64]) -> None:
        """Record the steps of some numbers; their sizes are recorded already."""
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
    def ends_in_a_code(self) -> bool:
        """Whether the largest or smallest number may stand for a missing value.

        That is the case for a number of nines that is farther from the next number than all others
        are from each other, and for -1 or a number of nines with a minus sign if no other number is
        negative.
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
            or self._ends_in_codes
        )

    @property
    def _ends_in_codes(self) -> bool:
        """Whether the largest look like several codes, as 98 and 99 beside answers of 1 to 5."""
        numbers = sorted(self.few or ())
        codes = [number for number in numbers if _CODES.fullmatch(f"{number:g}")]
        others = [number for number in numbers if number < min(codes, default=0)]
        return (
            bool(others)
            and len(codes) + len(others) == len(numbers)
            and codes[0] - others[-1] > others[-1] - others[0]
        )

    @property
    def may_be_codes(self) -> bool:
        """Whether they are more likely codes than amounts.

        Some whole numbers of equal length come again and again, and most between them never.
        """
        if not self.whole or not self.few or len(f"{self.lower:.0f}") != len(f"{self.upper:.0f}"):
            return False
        different, between = len(self.few), (self.upper - self.lower) / max(self.divisor, 1) + 1
        return (
            self.lower >= _LEAST_CODE
            and different >= _FEWEST_CODES
            and self.count >= _ROWS_OF_A_VALUE * different
            and between >= _UNUSED * different
        )

    def describe(self, name: str, dtype: str, *, missing: bool) -> Column | None:
        """The drafted column, or None if there are no two different numbers.

        Args:
            name: the column's name.
            dtype: how the numbers are stored, in a schema's terms.
            missing: whether there are missing values.
        """
        if not self.lower < self.upper:
            return None
        number, step, decimals = int if self.whole else float, self._step(), self._decimals()
        lower, upper = self.lower, self.upper
        if dtype == "float32" and not self.whole and step is decimals is None:
            # They were read as texts, which are rounded; bounds must include the stored numbers.
            lower, upper = (float(np.float32(bound)) for bound in (lower, upper))
        elif step is not None or decimals is not None:
            lower, upper = (round(bound, _MOST_DECIMALS) for bound in (lower, upper))
        found = Column(
            name,
            ColumnKind.INTEGER if self.whole else ColumnKind.CONTINUOUS,
            dtype,
            number(lower),
            number(upper),
            transform=self.transform,
            missing=Missing.INDICATOR if missing else Missing.REFUSED,
            step=step,
            decimals=None if step else decimals,
        )
        return replace(found, **self._listed(found))

    def _listed(self, column: Column) -> dict[str, Any]:
        """Entries that list a column's numbers, if they are few, but not in equal steps.

        Such are the middles of brackets, and figures of places rather than of people.
        """
        seen = self._frequent()
        if seen is None:
            return {}
        steps = column.different
        if steps is not None and steps <= min(MOST_VALUES, _GAPS * len(seen)):
            return {}
        stored = np.float32 if column.dtype == "float32" else np.float64
        seen = seen if column.decimals is None else np.round(seen, column.decimals)
        number = int if self.whole else float
        values = tuple(number(value) for value in np.unique(seen.astype(stored)))
        plain = {"step": None, "decimals": None, "transform": Transform.NONE}
        return {**plain, "values": values, "lower": values[0], "upper": values[-1]}

    @property
    def some_are_rare(self) -> bool:
        """Whether some of the numbers, if they are counted, are too rare to be listed."""
        return any(times < _ROWS_OF_A_VALUE for times in (self.few or {}).values())

    def _frequent(self) -> NDArray[np.float64] | None:
        """The numbers that nearly all rows have, sorted; None if they are many.

        None, too, if the others are far from them.
        """
        if self.few is None:
            return None
        numbers = np.array(sorted(self.few))
        times = np.array([self.few[number] for number in numbers.tolist()])
        often = times >= _ROWS_OF_A_VALUE
        frequent: NDArray[np.float64] = numbers[often]
        rare = times[~often].sum() > _UNLISTED_ROWS * self.count
        if rare or not 2 <= len(frequent) <= _MOST_LISTED:
            return None
        sizes = numbers / np.abs(numbers).max()  # squares of the numbers could overflow
        nearest = np.abs(sizes[:, None] - sizes[often]).min(axis=1)
        deviations = sizes - np.average(sizes, weights=times)
        changed, spread = (np.average(each**2, weights=times) for each in (nearest, deviations))
        return frequent if changed <= _ROUNDED_BY**2 * spread else None

    def _are_exact(self, digits: int) -> bool:
        """Whether numbers with so many decimals can be told apart."""
        return bool(max(-self.lower, self.upper) * 10**digits <= LARGEST)

    def _step(self) -> float | None:
        """The step of which all numbers are multiples, if it exceeds one unit of the last digit."""
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

    @property
    def transform(self) -> Transform:
        """The scale on which they are best spread out."""
        spread = self.upper - self.lower
        least = MOST_CELLS if self.whole else _LARGE
        signed = self.lower < 0
        usual = self.magnitude / self.count if signed else self.total / self.count - self.lower
        if spread < least or usual > spread / _SPREAD:
            return Transform.NONE
        return Transform.SIGNED_LOG if signed else Transform.LOG1P


def _if_different(numbers: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Some numbers, sorted, if no two are equal and they are not too many to keep."""
    if len(numbers) > _MOST_DIFFERENT:
        return None
    found: NDArray[np.float64] = np.unique(numbers)
    return found if len(found) == len(numbers) else None


def _longer(numbers: NDArray[np.float64], digits: int) -> int:
    """How many numbers have more decimals than `digits`, apart from rounding errors."""
    errors = np.minimum(_ERRORS * np.spacing(np.abs(numbers)), 10.0**-digits / _ONE)
    return int(np.count_nonzero(np.abs(np.round(numbers, digits) - numbers) > errors))
