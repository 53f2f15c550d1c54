"""The language of conditions: parsing a text into a `Condition`, checked against the columns.

    rule       = either [ "only if" either ]  |  "if" either "then" either
    either     = both { "or" both }
    both       = single { "and" single }
    single     = "not" single  |  "(" either ")"  |  comparison
    comparison = sum relation sum  |  column relation category
               | column [ "not" ] "in" "(" category { "," category } ")"
               | column [ "not" ] "in" "(" sum { "," sum } ")"
               | column "is" [ "not" ] "missing"
    sum        = [ "-" ] term { ( "+" | "-" ) term }
    term       = number [ "*" column ]  |  column  |  date, such as 2023-12-25T18:30
    relation   = "="  |  "=="  |  "!="  |  "<"  |  "<="  |  ">"  |  ">="

Names of columns with characters other than letters, digits and _ stand in `backticks`, such
categories in "quotes"; dates may stand in quotes, too. When dates are compared, numbers count days.
A column that follows from another one is compared with its values, as a category or a number.
Schemas may come from strangers: texts must be short, nothing in them is executed, and brackets are
limited.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...display.text import meant, some_of
from ...errors import SchemaError
from ..columns.column import Column
from ..columns.dates import DAY, seconds_of
from ..columns.dtypes import LARGEST
from ..columns.kinds import ColumnKind
from ..columns.lookup import LookupColumn
from ..columns.spellings import number_in
from .condition import (
    All,
    Among,
    Comparison,
    Condition,
    Either,
    IsMissing,
    Relation,
    exactness,
)

LONGEST: Final = 1_000
_DEEPEST: Final = 20
_NAMED: Final = 8
"""The most categories that a message names."""
_DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)?"
_OTHER_DATE: Final = re.compile(r"[0-9]{1,4}[./][0-9]{1,2}[./][0-9]{1,4}")
_TOKEN: Final = re.compile(
    rf"""\s*(?:
      (?P<quoted>"[^"]*"|'[^']*')
    | (?P<column>`[^`]+`)
    | (?P<date>{_DATE}(?!\w))
    | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{{1,3}})?(?!\w))
    | (?P<word>\w+)
    | (?P<sign><=|>=|!=|==|[=<>+*(),-])
    )""",
    re.VERBOSE,
)
KEYWORDS: Final = frozenset({"and", "or", "not", "only", "if", "then", "is", "missing", "in"})
_RELATIONS: Final = frozenset({"=", "==", "!=", "<", "<=", ">", ">="})


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str

    @property
    def is_name(self) -> bool:
        return self.kind == "column" or (self.kind == "word" and self.text not in KEYWORDS)


_END: Final = _Token("end", "its end")


def parse_condition(
    text: str,
    columns: Mapping[str, Column],
    lookups: Mapping[str, LookupColumn] = MappingProxyType({}),
) -> Condition:
    """Parse a condition or a rule.

    Args:
        text: its text.
        columns: the table's columns, by name.
        lookups: columns that follow from these, by name; what is said of one becomes a condition on
            the column that it follows from.

    Raises:
        SchemaError: it is invalid, mentions unknown columns or categories, or no row can fulfil it.
    """
    if len(text) > LONGEST:
        raise SchemaError(f"a condition has at most {LONGEST} characters")
    where = f"condition {text!r}"
    try:
        parser = _Parser(_tokens(text), columns, lookups)
        condition = parser.rule()
        parser.expect("end", _END.text)
    except _NotUnderstood as error:
        raise SchemaError(f"{where}: {error}") from None
    if not condition.possible(columns, {}):
        raise SchemaError(f"{where}: no values between the bounds fulfil it")
    return condition


class _NotUnderstood(Exception):
    """A condition cannot be parsed; the message says why."""


def _tokens(text: str) -> list[_Token]:
    found, place, text = [], 0, text.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            hint = " dates are written as 2023-12-25" if _OTHER_DATE.search(text) else ""
            raise _NotUnderstood(f"what is {text[place:].strip()[:20]!r}?{hint}")
        kind, said = match.lastgroup, match[match.lastgroup]
        found.append(_Token(kind, said[1:-1] if kind in ("quoted", "column") else said))
        place = match.end()
    return [*found, _END]


_Listed = TypeVar("_Listed")


@dataclass
class _Sum:
    """A sum of multiples of columns and a number."""

    terms: dict[str, float]
    constant: float = 0.0
    seconds: float = 0.0
    """The total of dates that are written out, in seconds."""
    dates: float = 0.0
    """The number of those dates, counted with their signs."""


class _Parser:
    """A recursive-descent parser, which reverses comparisons under a negation."""

    def __init__(
        self,
        tokens: list[_Token],
        columns: Mapping[str, Column],
        lookups: Mapping[str, LookupColumn],
    ) -> None:
        self._tokens = tokens
        self._columns = columns
        self._lookups = lookups
        self._place = 0
        self._depth = 0
        # A column may be named many times, and have thousands of categories.
        self._codes: dict[str, dict[str, int]] = {}
        self._looked_up: dict[str, NDArray[np.int64]] = {}

    def rule(self) -> Condition:
        if self._take("word", "if"):
            premise = self._either()
            self.expect("word", "then")
            return Either((premise.negated, self._either()))
        condition = self._either()
        if not self._take("word", "only"):
            return condition
        self.expect("word", "if")
        return Either((condition.negated, self._either()))

    def _either(self) -> Condition:
        parts = [self._both()]
        while self._take("word", "or"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _both(self) -> Condition:
        parts = [self._single()]
        while self._take("word", "and"):
            parts.append(self._single())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _single(self) -> Condition:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _NotUnderstood("too many brackets in one another")
        if self._take("word", "not"):
            found = self._single().negated
        elif self._take("sign", "("):
            found = self._either()
            self.expect("sign", ")")
        else:
            found = self._comparison()
        self._depth -= 1
        return found

    def _comparison(self) -> Condition:
        first = self._next
        after = self._tokens[min(self._place + 1, len(self._tokens) - 1)]
        lookup = self._lookups.get(first.text) if first.is_name else None
        if first.is_name and after.kind == "word" and after.text in ("is", "in", "not"):
            self._place += 1
            return self._of_column(lookup or self._column(first))
        if lookup is not None:
            self._place += 1
            relation = self._relation()
            return self._among(lookup, self._related(lookup, relation), inside=relation != "!=")
        if first.is_name and self._is_category(first):
            self._place += 1
            column = self._column(first)
            name, category = column.name, column.categories[-1]
            plain = name.isidentifier() and category.isidentifier()
            example = f", as in {name} = {category}" if plain else ""
            return self._of_category(column, self._relation(example))
        left = self._sum()
        relation = self._relation()
        right = self._next
        if right.is_name and self._is_category(right):
            raise _NotUnderstood(f"write the column {right.text!r} first, and its category last")
        return self._compared(left, relation, self._sum())

    def _of_column(self, column: Column | LookupColumn) -> Condition:
        if self._take("word", "is"):
            wanted = not self._take("word", "not")
            self.expect("word", "missing")
            name = column.of if isinstance(column, LookupColumn) else column.name
            return IsMissing(name, wanted)
        outside = self._take("word", "not")
        self.expect("word", "in")
        if isinstance(column, Column) and column.kind.numeric:
            this = _Sum({column.name: 1.0})
            equal = self._listed(lambda: self._compared(this, "=", self._sum()))
            found = equal[0] if len(equal) == 1 else Either(tuple(equal))
            return found.negated if outside else found
        codes = set(self._listed(lambda: self._category(column)))
        return self._among(column, codes, inside=not outside)

    def _listed(self, one: Callable[[], _Listed]) -> list[_Listed]:
        """What stands in brackets, with commas between."""
        self.expect("sign", "(")
        found = [one()]
        while self._take("sign", ","):
            found.append(one())
        self.expect("sign", ")")
        return found

    def _among(self, column: Column | LookupColumn, codes: set[int], *, inside: bool) -> Condition:
        """That a column has some of its categories, said of the column that it follows from."""
        if isinstance(column, Column):
            return Among(column.name, tuple(sorted(codes)), inside=inside)
        source = self._columns[column.of]
        found = self._looked_up.get(column.name)
        if found is None:
            found = column.looked_up(source, np.arange(len(source.categories)))
            self._looked_up[column.name] = found
        of_source = np.flatnonzero(np.isin(found, list(codes))).tolist()
        return Among(source.name, tuple(of_source), inside=inside)

    def _related(self, column: LookupColumn, relation: str) -> set[int]:
        if relation in ("=", "!="):
            return {self._category(column)}
        if not column.numbers:
            raise _NotUnderstood(f"the values of column {column.name!r} have no order")
        sign = -1.0 if self._take("sign", "-") else 1.0
        if self._next.kind != "number":
            raise _NotUnderstood(f"column {column.name!r} is compared with numbers alone")
        limit = sign * _number(self._next)
        self._place += 1
        holds = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[relation]
        return {code for code, number in enumerate(column.numbers) if holds(number, limit)}

    def _of_category(self, column: Column, relation: str) -> Condition:
        if relation not in ("=", "!=") and column.kind is not ColumnKind.ORDINAL:
            raise _NotUnderstood(f"the categories of column {column.name!r} have no order")
        code = self._category(column)
        match relation:
            case "=" | "!=":
                return Among(column.name, (code,), inside=relation == "=")
            case "<" | ">=":
                return Among(column.name, range(code), inside=relation == "<")
            case _:
                return Among(column.name, range(code + 1), inside=relation == "<=")

    def _category(self, column: Column | LookupColumn) -> int:
        sign = "-" if self._take("sign", "-") else ""  # categories may be negative numbers
        token = self._next
        self._place += 1
        text = sign + token.text
        if column.dtype == "bool":  # programs write True
            text = text.lower()
        codes = self._codes.get(column.name)
        if codes is None:
            codes = {category: code for code, category in enumerate(column.categories)}
            self._codes[column.name] = codes
        if token.kind not in ("quoted", "word", "number", "date") or text not in codes:
            quote = "" if token.kind == "quoted" else "; put one of several words into quotes"
            raise _NotUnderstood(
                f"{text!r} is no category of column {column.name!r}, which has "
                f"{some_of(column.categories, _NAMED)}{quote}"
            )
        return codes[text]

    def _sum(self) -> _Sum:
        found = _Sum({})
        sign = -1.0 if self._take("sign", "-") else 1.0
        self._term(found, sign)
        while (plus := self._take("sign", "+")) or self._take("sign", "-"):
            self._term(found, 1.0 if plus else -1.0)
        return found

    def _term(self, found: _Sum, sign: float) -> None:
        token = self._next
        self._place += 1
        factor = sign
        if token.kind == "number":
            factor *= _number(token)
            if not self._take("sign", "*"):
                found.constant += factor
                return
            token = self._next
            self._place += 1
        elif (date := _date_in(token)) is not None:
            try:
                found.seconds += sign * seconds_of(date)
            except ValueError:
                raise _NotUnderstood(f"{token.text} is no date") from None
            found.dates += sign
            return
        if not token.is_name:
            hint = "; dates are written as 2023-12-25" if _OTHER_DATE.search(token.text) else ""
            raise _NotUnderstood(f"a number or a column is wanted, not {_shown(token)}{hint}")
        column = self._column(token)
        if not column.kind.numeric:
            numbers = all(number_in(text) is not None for text in column.categories)
            hint = "; as a kind of numbers it may list them as values" if numbers else ""
            raise _NotUnderstood(f"column {column.name!r} holds no numbers, but categories{hint}")
        if self._next == _Token("sign", "*"):
            raise _NotUnderstood("a column is only multiplied by a number before it: 2.5 * price")
        found.terms[column.name] = found.terms.get(column.name, 0.0) + factor

    def _compared(self, left: _Sum, relation: str, right: _Sum) -> Condition:
        if relation in (">", ">="):
            left, right, relation = right, left, relation.replace(">", "<")
        terms = dict(left.terms)
        for name, factor in right.terms.items():
            terms[name] = terms.get(name, 0.0) - factor
        terms = {name: factor for name, factor in terms.items() if factor}
        constant, seconds = left.constant - right.constant, left.seconds - right.seconds
        dates = left.dates - right.dates
        if not terms:
            raise _NotUnderstood("there is no column in a comparison, or none that matters")
        columns = [self._columns[name] for name in terms]
        if dates or any(column.kind.timed for column in columns):
            dates += sum(terms[column.name] for column in columns if column.kind.temporal)
            if dates:
                raise _NotUnderstood("dates are compared with dates, their differences with days")
            constant = constant * DAY + seconds
            for column in columns:
                terms[column.name] *= column.seconds if column.kind.timed else DAY
        factors = list(terms.values())
        if max(map(abs, (*factors, constant))) > LARGEST:
            raise _NotUnderstood("a number is too large")
        exact = exactness(columns, factors, constant)
        return Comparison(tuple(terms.items()), constant, Relation(relation), exact)

    def _relation(self, example: str = "") -> str:
        token = self._next
        if token.kind != "sign" or token.text not in _RELATIONS:
            raise _NotUnderstood(f"one of = != < <= > >= is wanted{example}, not {_shown(token)}")
        self._place += 1
        return "=" if token.text == "==" else token.text

    def _is_category(self, token: _Token) -> bool:
        column = self._columns.get(token.text)
        return token.text in self._lookups or (column is not None and not column.kind.numeric)

    def _column(self, token: _Token) -> Column:
        if token.text in self._lookups:
            source = self._lookups[token.text].of
            raise _NotUnderstood(
                f"column {token.text!r} follows from {source!r}: put it first, and compare it with "
                "its values alone"
            )
        if token.text not in self._columns:
            near = meant(token.text, [*self._columns, *self._lookups])
            raise _NotUnderstood(f"there is no column {token.text!r}{near}")
        return self._columns[token.text]

    @property
    def _next(self) -> _Token:
        return self._tokens[min(self._place, len(self._tokens) - 1)]

    def _take(self, kind: str, text: str) -> bool:
        if self._next != _Token(kind, text):
            return False
        self._place += 1
        return True

    def expect(self, kind: str, text: str) -> None:
        if not self._take(kind, text):
            small = self._next.text.lower()
            hint = f"; {small} is written small" if small in KEYWORDS and kind == "end" else ""
            raise _NotUnderstood(f"{text} is wanted, not {_shown(self._next)}{hint}")


def _date_in(token: _Token) -> str | None:
    """The date or time that is written out, perhaps in quotes and with a blank before the time."""
    text = token.text.replace(" ", "T") if token.kind == "quoted" else token.text
    return text if token.kind in ("quoted", "date") and re.fullmatch(_DATE, text) else None


def _shown(token: _Token) -> str:
    return token.text if token is _END else repr(token.text)


def _number(token: _Token) -> float:
    number = float(token.text)
    if number > LARGEST:
        raise _NotUnderstood(f"{token.text} is too large")
    return number
