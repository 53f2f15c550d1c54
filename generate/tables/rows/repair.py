"""Repair rows that break a rule of the schema, with as little change as possible.

First, rows of a class swap values, from near to far in the order of a column, which changes no
column's marginal. In rows that still break a rule, the value is set that has to move least,
relative to its bounds. Where it only has to be above or below a number (`refund > 0`), it becomes
that of another row, since the nearest such number would be an odd one in many rows. If a category
determines whether a value is present (a skip pattern), the category stays and the value follows: it
is removed, or computed from an equality. If rules conflict, all values in them are copied from
another row that keeps the rules, with the same categories if there is one.

Everything is a function of the schema, the rows and a seed, and reveals nothing beyond the release.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ....common.errors import GeneratorError
from ....common.schema.columns.codes import MISSING
from ....common.schema.columns.column import Column
from ....common.schema.encoding import from_scale, to_scale
from ....common.schema.rules.condition import (
    All,
    Among,
    Comparison,
    Condition,
    Either,
    IsMissing,
    Relation,
)
from ....common.schema.table import TableSchema
from .values import Values, stored

_EXCHANGES: Final = 300
_NEAR: Final = 12
"""A row tries up to 300 partners: at first within 2^-12 of the class, in the end anywhere."""
_FOR_EACH: Final = 25
"""All rows together try at most 25 times as many partners as there are rows."""
_MOST_WORK: Final = 4 * 10**9
"""The most comparisons of a row that are spent on swaps and on careful changes: about a minute. The
rules of a stranger's release may need far more; then rows are changed less carefully, or copied."""
_ROWS_AT_LEAST: Final = 5_000
"""Comparing a few rows takes about as long as comparing this many."""
_ROUNDS: Final = 10
_SIMPLE_ROUNDS: Final = 5
"""In later rounds, a change that breaks other rules is avoided: one may undo what another did."""
_OF_BREAKING: Final = 10.0
"""Cost of another rule that is broken then."""
_OF_LABEL: Final = 4.0
"""Cost of changing a label; any other category costs 1, and a number its move relative to its
range."""
_OF_FOLLOWING: Final = 0.1
"""Discount for a value whose presence depends on a category, so that it follows the others."""
_FUZZ: Final = 1e-9


def repair(
    values: Values, schema: TableSchema, seed: int, rules: Sequence[Condition] | None = None
) -> NDArray[np.bool_]:
    """Make all rows keep the rules of their schema, or other rules.

    Guarantee:
        Post-processing: rows from a release, and rules from its schema, which is public.
        (docs/privacy/proofs.md, statement 10.)

    Args:
        values: of all columns, changed in place.
        schema: of the rows.
        seed: of random choices.
        rules: the rules to keep; those of the schema if None.

    Returns:
        Which rows broke a rule, bool (n,).

    Raises:
        GeneratorError: rules contradict each other: no row keeps all of them.
    """
    rules, random = schema.rules if rules is None else rules, np.random.default_rng(seed)
    if not rules:
        return np.zeros(len(values[schema.columns[0].name]), dtype=bool)
    broken = _broken(rules, values)
    if not broken.any():
        return broken
    repairs = _Repairs(values, schema, rules, random)
    for rule in rules:
        repairs.exchange(rule)
    for attempt in range(_ROUNDS):
        for rule in rules:
            repairs.fulfil(rule, careful=attempt >= _SIMPLE_ROUNDS)
        if not _broken(rules, values).any():
            return broken
    repairs.copy()
    return broken


def _broken(rules: Sequence[Condition], values: Values) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.logical_or.reduce([rule.truth(values).fails for rule in rules])
    return found


def _part(values: Values, names: Sequence[str], rows: NDArray[np.int64]) -> Values:
    return {name: values[name][rows] for name in names}


class _Repairs:
    """Rows that are being repaired."""

    def __init__(
        self,
        values: Values,
        schema: TableSchema,
        rules: Sequence[Condition],
        random: np.random.Generator,
    ) -> None:
        self._values = values
        self._schema = schema
        self._rules = rules
        self._random = random
        self._names = sorted(frozenset().union(*(rule.names for rule in rules)))
        self._careful = False
        self._work_left = _MOST_WORK
        self._following = _following(rules)
        count = len(next(iter(values.values())))
        self._labels = (
            np.zeros(count, dtype=np.int64) if schema.label is None else values[schema.label]
        )

    def exchange(self, rule: Condition) -> None:
        """Swap values between rows that break a rule and rows of their class, where that helps."""
        if isinstance(rule, Comparison) and rule.relation is Relation.EQUAL:
            return  # random swaps would not achieve it
        for name in sorted(rule.names - {self._schema.label}):
            concerned = [one for one in self._rules if name in one.names]
            names = sorted(frozenset().union(*(one.names for one in concerned)))
            for label in np.unique(self._labels):
                mine = np.flatnonzero(self._labels == label)
                order = mine[np.argsort(self._values[name][mine], kind="stable")]
                broken = rule.truth(_part(self._values, names, order)).fails
                places, left = np.flatnonzero(broken), _FOR_EACH * len(order)
                for attempt in range(_EXCHANGES if len(order) > 1 else 0):
                    left -= len(places)
                    if not len(places) or left < 0 or self._work_left < 0:
                        break
                    far = min(1.0, 2.0 ** (attempt - _NEAR))
                    reach = max(1, round((len(order) - 1) * far))
                    self._exchange(name, order, places, reach, concerned, names)
                    broken = rule.truth(_part(self._values, names, order[places])).fails
                    places = places[broken]

    def _exchange(
        self,
        name: str,
        order: NDArray[np.int64],
        places: NDArray[np.int64],
        reach: int,
        rules: Sequence[Condition],
        names: Sequence[str],
    ) -> None:
        """Swap a column's values between some rows and one partner each, where it helps.

        Args:
            name: of the column.
            order: the rows of a class, sorted by the column.
            places: positions of the rows in this order.
            reach: largest distance to a partner in this order.
            rules: the rules that involve the column.
            names: of all columns in these rules.
        """
        steps = self._random.integers(1, reach + 1, len(places))
        partners = (places + self._random.choice([-1, 1], len(places)) * steps) % len(order)
        # Every row takes part at most once.
        _, first = np.unique(np.concatenate([places, partners]), return_index=True)
        taken = np.zeros(2 * len(places), dtype=bool)
        taken[first] = True
        free = taken[: len(places)] & taken[len(places) :]
        one, other = order[places[free]], order[partners[free]]
        rows = np.concatenate([one, other])
        before = _part(self._values, names, rows)
        after = dict(before)
        after[name] = np.concatenate([before[name][len(one) :], before[name][: len(one)]])
        gain = np.zeros(len(rows), dtype=np.int64)
        self._spend(rules, 2 * len(rows))
        for rule in rules:
            gain += rule.truth(before).fails
            gain -= rule.truth(after).fails.astype(np.int64)
        better = gain[: len(one)] + gain[len(one) :] > 0
        both = np.concatenate([better, better])
        self._values[name][rows[both]] = after[name][both]

    def _spend(self, rules: Iterable[Condition], rows: int) -> None:
        """Count the work of comparing so many rows by some rules."""
        self._work_left -= sum(rule.size for rule in rules) * max(rows, _ROWS_AT_LEAST)

    def fulfil(self, rule: Condition, *, careful: bool = False) -> None:
        """Set values in the rows that break a rule, so that they keep it.

        Args:
            rule: the rule.
            careful: whether to avoid changes that break other rules.
        """
        self._careful = careful
        rows = np.flatnonzero(rule.truth(self._values).fails)
        if not len(rows):
            return
        # Other rules' columns are included: they may determine a value that was missing.
        changed, _ = self._fulfilled(rule, _part(self._values, self._names, rows))
        for name in sorted(rule.names):
            self._values[name][rows] = changed[name]

    def _fulfilled(
        self, condition: Condition, values: Values
    ) -> tuple[Values, NDArray[np.float64]]:
        """Change values so that a condition does not fail, if possible; also return the cost."""
        match condition:
            case Comparison():
                return self._moved(condition, values)
            case All():
                total = np.zeros(len(next(iter(values.values()))))
                for part in condition.parts:
                    values, cost = self._fulfilled(part, values)
                    total += cost
                return values, total
            case Either():
                found = [
                    self._fulfilled(part, values)
                    for part in condition.parts
                    if part.possible(self._schema.by_name, {})
                ]
                return _cheapest(
                    condition, [changed for changed, _ in found], [c for _, c in found]
                )
            case Among() | IsMissing():
                fails = condition.truth(values).fails
                name = condition.name
                wanted = self._drawn(condition, int(fails.sum()))
                changed = {**values, name: values[name].copy()}
                changed[name][fails] = wanted
                price = _OF_LABEL if name == self._schema.label else 1.0
                if isinstance(condition, IsMissing):
                    price *= self._eagerness(name)
                    changed[name] = np.where(fails, self._derived(name, changed), changed[name])
                return changed, np.where(fails, price, 0.0)
            case _:
                raise NotImplementedError(type(condition))

    def _drawn(self, condition: Among | IsMissing, count: int) -> NDArray[Any]:
        """Draw values that fulfil a condition on one column, as frequent as among all rows."""
        values, column = self._values[condition.name], self._schema.by_name[condition.name]
        nothing = np.nan if column.kind.numeric else MISSING
        if isinstance(condition, IsMissing) and condition.wanted:
            return np.full(count, nothing, dtype=values.dtype)
        there = np.flatnonzero(condition.truth(self._values).holds)
        if len(there):
            drawn: NDArray[Any] = values[self._random.choice(there, count)]
            return drawn
        if isinstance(condition, Among):
            return np.full(count, condition.allowed(column).argmax(), dtype=values.dtype)
        return np.full(count, column.lower if column.kind.numeric else 0, dtype=values.dtype)

    def _eagerness(self, name: str) -> float:
        return _OF_FOLLOWING if name in self._following else 1.0

    def _derived(self, name: str, values: Values) -> NDArray[Any]:
        """Compute a column from equalities with others, where values and bounds allow it."""
        for rule in self._rules:
            if isinstance(rule, Comparison) and rule.relation is Relation.EQUAL:
                for factor in (factor for term, factor in rule.terms if term == name):
                    values, _ = _move(rule, values, self._schema.by_name[name], factor)
        return values[name]

    def _moved(self, comparison: Comparison, values: Values) -> tuple[Values, NDArray[np.float64]]:
        """Move one number in each row as far as necessary; or several, as far as they can."""
        terms: Sequence[tuple[str, float]] = comparison.terms
        several = [terms]
        careful = self._careful and self._work_left > 0
        if careful:
            several = [[term for term in terms if term is not one] for one in terms] + several
        found: list[Values] = []
        costs: list[NDArray[np.float64]] = []
        for way in [*([term] for term in terms), *several]:
            moved, total = values, np.zeros(len(next(iter(values.values()))))
            for name, factor in way:
                moved, cost = _move(comparison, moved, self._schema.by_name[name], factor)
                total = total + cost
            if comparison.relation is Relation.BELOW and len(terms) == len(way) == 1:
                moved = self._spread(comparison, values, moved)
            found.append(moved)
            costs.append(total * self._eagerness(way[0][0]) if len(way) == 1 else total + 1.0)
            if careful:
                others = [rule for rule in self._rules if rule is not comparison]
                self._spend(others, len(total))
                costs[-1] += _OF_BREAKING * sum(rule.truth(moved).fails for rule in others)
        return _cheapest(comparison, found, costs)

    def _spread(self, comparison: Comparison, values: Values, moved: Values) -> Values:
        """Values beyond a number, in place of the nearest ones, in rows that are not beyond it.

        They are those of other rows; if there are none, they lie anywhere up to the bound.

        Args:
            comparison: of one column with a number, which it has to be above or below.
            values: of some rows.
            moved: the same with the nearest values that hold.
        """
        ((name, factor),) = comparison.terms
        column, fails = self._schema.by_name[name], comparison.truth(values).fails
        nearest, count = moved[name][fails], int(fails.sum())
        there = np.flatnonzero(comparison.truth(self._values).holds)
        if len(there):
            beyond = self._values[name][self._random.choice(there, count)]
        else:
            bound = column.bounds[0 if factor > 0 else 1]
            near = to_scale(nearest, column.transform)
            far = to_scale(np.full(count, bound), column.transform)
            within = near + self._random.random(count) * (far - near)
            up = np.full(count, -np.sign(factor))
            # Rounded towards the bound, and not back beyond the number.
            beyond = _onto_step(column, from_scale(within, column.transform), up)
            beyond = stored(column, beyond.clip(*column.bounds))
        changed = {**moved, name: moved[name].copy()}
        changed[name][fails] = beyond
        still = comparison.truth(changed).fails
        changed[name][still] = moved[name][still]
        return changed

    def copy(self) -> None:
        """Copy the values in rules from other rows, where rules are still broken."""
        broken = _broken(self._rules, self._values)
        if broken.all():
            raise GeneratorError(
                "constraints: no row was found that keeps all of them: do they contradict each "
                "other?"
            )
        rows, whole = np.flatnonzero(broken), np.flatnonzero(~broken)
        for alike in (self._kinds(), self._labels, np.zeros_like(self._labels)):
            order = whole[np.argsort(alike[whole], kind="stable")]
            begin = np.searchsorted(alike[order], alike[rows])
            end = np.searchsorted(alike[order], alike[rows], side="right")
            there = end > begin
            chosen = order[self._random.integers(begin[there], end[there])]
            for name in self._names:
                self._values[name][rows[there]] = self._values[name][chosen]
            rows = rows[~there]

    def _kinds(self) -> NDArray[np.int64]:
        """Number the combinations of class and categories that occur in rules, int64 (n,)."""
        names = [name for name in self._names if not self._schema.by_name[name].kind.numeric]
        kinds = np.stack([self._labels, *(self._values[name] for name in names)], axis=1)
        numbers: NDArray[np.int64] = np.unique(kinds, axis=0, return_inverse=True)[1].reshape(-1)
        return numbers


def _following(rules: Sequence[Condition]) -> frozenset[str]:
    """Columns whose presence depends on categories of other columns: skip patterns."""
    found = set[str]()
    for rule in rules:
        parts = rule.parts if isinstance(rule, Either) else ()
        for part in parts:
            gates = [other for other in parts if other is not part]
            if not all(isinstance(gate, Among) for gate in gates):
                continue
            singles = part.parts if isinstance(part, All) else (part,)
            names = {single.name for single in singles if isinstance(single, IsMissing)}
            found |= names.difference(*(gate.names for gate in gates))
    return frozenset(found)


def _move(
    comparison: Comparison, values: Values, column: Column, factor: float
) -> tuple[Values, NDArray[np.float64]]:
    """Move one column's numbers where a comparison fails until it holds, or to a bound."""
    lower, upper = column.bounds
    fails = comparison.truth(values).fails
    total, slack = comparison.sums(values)
    before, spread = values[column.name], upper - lower
    least = _least_step(column)
    wanted = before - total / factor
    up = np.full(len(before), -np.sign(factor))
    match comparison.relation:
        case Relation.EQUAL:
            wanted = stored(column, wanted.clip(lower, upper))
        case Relation.AT_MOST:
            wanted = _onto_step(column, wanted, up)
        case Relation.BELOW:
            beyond = np.maximum(least, 2 * slack / abs(factor))
            wanted = _onto_step(column, wanted, up)
            wanted = np.where(np.abs(wanted - (before - total / factor)) < beyond / 2,
                              wanted + up * beyond, wanted)  # fmt: skip
        case Relation.UNEQUAL:
            up = np.where(before < upper, 1.0, -1.0)
            wanted = before + up * np.maximum(least, 2 * slack / abs(factor))
    if column.values and comparison.relation is not Relation.EQUAL:
        wanted = _onto_step(column, wanted, up)
    moved = stored(column, wanted.clip(lower, upper))
    after = np.where(fails, moved, before)
    cost = np.where(fails, np.abs(after - before) / spread, 0.0)
    return {**values, column.name: after}, cost


def _least_step(column: Column) -> float:
    if column.values:  # less than to the next one, onto which it is rounded then
        return float(np.diff(column.values).min()) / 2
    if column.granule is not None:
        return column.granule.size
    fine, (lower, upper) = 1e-5 if column.dtype == "float32" else _FUZZ, column.bounds
    return fine * (upper - lower)


def _onto_step(
    column: Column, values: NDArray[np.float64], up: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Round up or down to multiples of a column's step, or to its listed values."""
    if column.values:
        listed = np.array(column.values, dtype=np.float64)
        least = _FUZZ * np.diff(listed).min()
        above = np.searchsorted(listed, values - least, side="left").clip(max=len(listed) - 1)
        below = (np.searchsorted(listed, values + least, side="right") - 1).clip(min=0)
        nearest: NDArray[np.float64] = listed[np.where(up > 0, above, below)]
        return nearest
    if column.granule is None:
        return values
    number, digits = column.granule
    steps = values * 10.0**digits / number
    onto = np.where(up > 0, np.ceil(steps - _FUZZ), np.floor(steps + _FUZZ))
    multiples: NDArray[np.float64] = onto * number / 10.0**digits
    return multiples


def _cheapest(
    condition: Condition, found: list[Values], costs: list[NDArray[np.float64]]
) -> tuple[Values, NDArray[np.float64]]:
    """In each row, choose the cheapest change that makes the condition not fail."""
    paid = np.stack([
        np.where(condition.truth(changed).fails, np.inf, cost)
        for changed, cost in zip(found, costs, strict=True)
    ])  # fmt: skip
    best = paid.argmin(axis=0)
    cost = paid.min(axis=0)
    # Where none does, the last one comes nearest.
    best = np.where(np.isinf(cost), len(found) - 1, best)
    chosen = {
        name: np.stack([changed[name] for changed in found])[best, np.arange(len(best))]
        for name in found[0]
    }
    return chosen, cost
