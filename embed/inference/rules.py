"""Drafting constraints: rules that all rows of a table keep.

A rule is proposed if no row breaks it, and if many rows would break it were its columns
independent. Rules are sought in the first rows and then checked on all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, permutations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...common.display.representations import RedactedRepr
from ...common.schema.columns.column import Column
from ...common.schema.columns.dates import DAY
from ...common.schema.rules.condition import is_missing
from ...common.schema.rules.language import KEYWORDS, LONGEST, parse_condition

_FIRST: Final = 1 << 14
"""The number of rows in which rules are sought."""
_BROKEN: Final = 20
"""How many of these rows must break a rule once columns are shuffled. A rule that fewer rows break
says nothing."""
_MOST: Final = 40
_MOST_NUMBERS: Final = 40
"""With more numeric columns than this, not all sums of three are tried."""
_TRIED: Final = 64
"""The number of rows in which sums are sought."""
MOST_CATEGORIES: Final = 20
"""From a column with more categories, no other is concluded by a rule."""
MOST_CONCLUDED: Final = 8
"""A column with more categories is not concluded from another by a rule: such columns are codes.
They may be looked up (`lookups`)."""
_LUMP: Final = 0.05
"""From this share of rows on, the smallest number is a case of its own, as 0 often is."""
_WORD: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)

Values = Mapping[str, NDArray[Any]]


def proposed_constraints(columns: Sequence[Column], parts: Iterable[Values]) -> tuple[str, ...]:
    """The rules that a draft proposes, in the constraint language.

    Guarantee:
        None: whether a rule holds is looked up in the records, and a single record decides.

    Args:
        columns: the table's columns.
        parts: all its rows, in parts, each of which maps a column's name to its values
            (`common.schema.rules.condition.Values`).

    Returns:
        Sums (total = drugs + care), orders (discharge >= admission) and cases (if died = no then
        death is missing).
    """
    by_name = {column.name: column for column in columns}
    rest = iter(parts)
    first = _first_rows(rest)
    said = (text for text in _candidates(columns, first) if len(text) <= LONGEST)
    rules = {text: parse_condition(text, by_name) for text in said}
    for values in chain([first], rest):
        rules = {text: rule for text, rule in rules.items() if not rule.truth(values).fails.any()}
    return tuple(rules)[:_MOST]


def _first_rows(parts: Iterator[Values]) -> Values:
    """The first parts joined into one, with the number of rows in which rules are sought."""
    found: list[Values] = []
    rows = 0
    for values in parts:
        found.append(values)
        rows += len(next(iter(values.values())))
        if rows >= _FIRST:
            break
    return {name: np.concatenate([part[name] for part in found]) for name in found[0]}


def _candidates(columns: Sequence[Column], values: Values) -> Iterator[str]:
    """Rules that these rows keep, and not by chance; sums were tried on some rows only."""
    known = [column for column in columns if "`" not in column.name]
    summed: list[frozenset[str]] = []
    for names, text in _sums(known, values):
        summed.append(names)
        yield text
    yield from _orders(known, values, summed)
    yield from _cases(known, values)


def _sums(columns: Sequence[Column], values: Values) -> Iterator[tuple[frozenset[str], str]]:
    """Rules that a column is the sum of two or three others, or the days between two dates.

    Each comes with the added columns: orders among them say nothing more.
    """
    plain = [
        column.name
        for column in columns
        if column.kind.numeric
        and not column.kind.timed
        and not np.isnan(values[column.name]).any()
        and np.count_nonzero(values[column.name]) >= _BROKEN
        and len(np.unique(values[column.name])) > 2
    ]
    if not plain:
        return
    tried = np.random.default_rng(0).permutation(len(values[plain[0]]))[:_TRIED]
    numbers = np.array([values[name][tried] for name in plain])
    found: list[frozenset[str]] = []
    for count in (2, 3):
        if len(plain) > _MOST_NUMBERS and count == 3:
            break
        for places in combinations(range(len(plain)), count):
            total = numbers[list(places)].sum(axis=0)
            slack = 1e-9 * np.abs(numbers[list(places)]).max(axis=0)
            equal = (np.abs(numbers - total) <= slack).all(axis=1)
            for target in np.flatnonzero(equal).tolist():
                names = frozenset(plain[place] for place in (*places, target))
                if len(names) <= count or any(known <= names for known in found):
                    continue
                found.append(names)
                addends = " + ".join(_name(plain[place]) for place in places)
                yield names, f"{_name(plain[target])} = {addends}"
    for earlier, later in permutations([c for c in columns if c.kind.temporal], 2):
        days = (_seconds(later, values) - _seconds(earlier, values)) / DAY
        for name in plain:
            same = values[name] == days
            if (same | np.isnan(days)).all() and np.count_nonzero(same & (days != 0)) >= _BROKEN:
                text = f"{_name(name)} = {_name(later.name)} - {_name(earlier.name)}"
                yield frozenset({name}), text


def _orders(
    columns: Sequence[Column], values: Values, summed: Sequence[frozenset[str]]
) -> Iterator[str]:
    """Rules that one column never exceeds another of its kind, unless other rules imply it."""
    groups: dict[object, list[Column]] = {}
    for column in columns:
        if column.kind.temporal:
            groups.setdefault("dates and times", []).append(column)
        elif column.kind.numeric:  # numbers with equally many decimals are comparable
            groups.setdefault((column.kind, column.decimals), []).append(column)
    for group in groups.values():
        numbers = {column.name: _seconds(column, values) for column in group[:_MOST_NUMBERS]}
        places = {name: place for place, name in enumerate(numbers)}
        below = {
            (low, high)
            for low, high in permutations(numbers, 2)
            if _never_above(numbers[low], numbers[high])
        }
        for low, high in sorted(below, key=lambda pair: [places[name] for name in pair]):
            if (high, low) in below:  # they are equal
                if places[low] < places[high]:
                    yield f"{_name(low)} = {_name(high)}"
                continue
            follows = any(
                (low, mid) in below and (mid, high) in below and (mid, low) not in below
                and ((high, mid) not in below or places[mid] < places[high])
                and not np.isnan(numbers[mid]).any()
                for mid in numbers
            )  # fmt: skip
            if not follows and not any({low, high} <= names for names in summed):
                yield f"{_name(low)} <= {_name(high)}"


def _never_above(low: NDArray[np.float64], high: NDArray[np.float64]) -> bool:
    """Whether no number of `low` exceeds that of `high`, though many would if shuffled."""
    there = ~np.isnan(low) & ~np.isnan(high)
    low, high = low[there], high[there]
    if (low > high).any():
        return False
    shuffled = np.random.default_rng(0).permutation(high)
    return bool(np.count_nonzero(low > shuffled) >= max(_BROKEN, 0.01 * len(low)))


@dataclass(frozen=True, eq=False, repr=False)
class _Case(RedactedRepr):
    """A statement that may be true of a row.

    Attributes:
        column: its column.
        text: the statement, such as "n = 0".
        rows: whether it is true of each row, bool (n,).
        key: tells the cases of a column apart; `denied` marks the opposite.
    """

    column: str
    text: str
    rows: NDArray[np.bool_]
    key: object
    denied: object

    def follows_from(self, premise: NDArray[np.bool_]) -> bool:
        """Whether it is true of all these rows, but not of as many other rows."""
        others = 1.0 - float(self.rows.mean())
        return bool(premise.sum() * others >= _BROKEN and not (premise & ~self.rows).any())


def _cases(columns: Sequence[Column], values: Values) -> Iterator[str]:
    """Rules on when a value is missing, is the smallest, or is a certain category."""
    alone, together = _told_apart(columns, values)
    yield from together
    seen: set[frozenset[object]] = set()
    concluded = [*alone, *_categories(columns, values)]
    for conclusion in concluded:
        premises = [
            *(case for case in alone if case.column != conclusion.column),
            *_of_categories(columns, values, conclusion),
        ]
        for premise in premises:
            clause = frozenset({premise.denied, conclusion.key})
            if clause not in seen and conclusion.follows_from(premise.rows):
                seen.add(clause)
                yield f"if {premise.text} then {conclusion.text}"


def _told_apart(columns: Sequence[Column], values: Values) -> tuple[list[_Case], list[str]]:
    """Cases of missing values and smallest numbers with opposites, and rules for equal cases.

    The first of several cases that are true of the same rows stands for all.
    """
    cases: dict[bytes, tuple[_Case, _Case]] = {}
    rules: list[str] = []
    for column in columns:
        name, found = _name(column.name), values[column.name]
        lacking = is_missing(found)
        if lacking.any():
            rows, texts = lacking, (f"{name} is missing", f"{name} is not missing")
        elif column.kind.numeric and not column.kind.timed:
            least = found.min()
            rows, texts = found == least, (f"{name} = {least:g}", f"{name} > {least:g}")
            if float(f"{least:g}") != least or rows.mean() < _LUMP:
                continue
        else:
            continue
        if rows.all() or min(rows.sum(), (~rows).sum()) < _BROKEN:
            continue
        this = _Case(column.name, texts[0], rows, (column.name, True), (column.name, False))
        that = _Case(column.name, texts[1], ~rows, this.denied, this.key)
        same = rows.tobytes()
        if same not in cases:
            cases[same] = this, that
            continue
        for first, second in zip(cases[same], (this, that), strict=True):
            if second.follows_from(first.rows):
                rules.append(f"if {first.text} then {second.text}")
    return [case for pair in cases.values() for case in pair], rules


def _categories(columns: Sequence[Column], values: Values) -> Iterator[_Case]:
    """The categories of columns with few categories, as conclusions."""
    for column in columns:
        codes = values[column.name]
        if 2 <= len(column.categories) <= MOST_CONCLUDED and not is_missing(codes).any():
            everything = frozenset(range(len(column.categories)))
            for code, category in enumerate(column.categories):
                if (said := _category(category)) is not None:
                    chosen = frozenset({code})
                    yield _Case(
                        column.name, f"{_name(column.name)} = {said}", codes == code,
                        (column.name, chosen), (column.name, everything - chosen),
                    )  # fmt: skip


def _of_categories(columns: Sequence[Column], values: Values, conclusion: _Case) -> Iterator[_Case]:
    """Categories of other columns that imply a conclusion; a column's categories are joined."""
    others = 1.0 - float(conclusion.rows.mean())
    for column in columns:
        if column.name == conclusion.column or not 2 <= len(column.categories) <= MOST_CATEGORIES:
            continue
        codes = values[column.name]
        sizes = np.bincount(codes[codes >= 0], minlength=len(column.categories))
        denying = np.bincount(
            codes[(codes >= 0) & ~conclusion.rows], minlength=len(column.categories)
        )
        alike = np.flatnonzero((denying == 0) & (sizes * others >= _BROKEN / 4))
        said = [_category(column.categories[code]) for code in alike]
        if not 0 < len(alike) < np.count_nonzero(sizes) or None in said:
            continue
        listed = ", ".join(filter(None, said))
        text = f"in ({listed})" if len(said) > 1 else f"= {listed}"
        chosen = frozenset(alike.tolist())
        denied = frozenset(range(len(column.categories))) - chosen
        yield _Case(
            column.name, f"{_name(column.name)} {text}", np.isin(codes, alike),
            (column.name, chosen), (column.name, denied),
        )  # fmt: skip


def _seconds(column: Column, values: Values) -> NDArray[np.float64]:
    """The values of a numeric column; dates, times and durations in seconds."""
    found: NDArray[np.float64] = values[column.name] * (column.seconds if column.kind.timed else 1)
    return found


def _name(name: str) -> str:
    """A column's name as the language writes it; it contains no backtick."""
    return name if _WORD.fullmatch(name) and name not in KEYWORDS else f"`{name}`"


def _category(category: str) -> str | None:
    """A category as the language writes it; None if it cannot."""
    if _WORD.fullmatch(category) and category not in KEYWORDS:
        return category
    return next((f"{q}{category}{q}" for q in ('"', "'") if q not in category), None)
