"""Checking whether several conditions can hold together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .condition import All, Among, Columns, Comparison, Condition, Relation

_GAP: Final = 1e-6
_SECONDS: Final = 5.0
_MOST: Final = 200
"""The most comparisons that are checked together; nobody writes more."""
_INFEASIBLE: Final = 2


def can_hold_together(conditions: Iterable[Condition], columns: Columns) -> bool:
    """Whether one row may fulfil all conditions, as far as a linear program can tell.

    Alternatives (`or`, `only if`) and inequations (`!=`) are ignored, and numbers may lie between
    their steps. So every contradiction that is found is real, but not every one is found.

    Args:
        conditions: the conditions, each of which can be fulfilled by itself.
        columns: the table's columns, by name.
    """
    parts = list(_parts(conditions))
    allowed: dict[str, NDArray[np.bool_]] = {}
    for part in parts:
        if isinstance(part, Among):
            found = part.allowed(columns[part.name])
            allowed[part.name] = allowed.get(part.name, found) & found
    if not all(found.any() for found in allowed.values()):
        return False
    sums = [p for p in parts if isinstance(p, Comparison) and p.relation is not Relation.UNEQUAL]
    return len(sums) < 2 or _feasible(sums[:_MOST], columns)


def _parts(conditions: Iterable[Condition]) -> Iterator[Condition]:
    for condition in conditions:
        if isinstance(condition, All):
            yield from _parts(condition.parts)
        else:
            yield condition


def _feasible(sums: list[Comparison], columns: Columns) -> bool:
    """Whether numbers between the bounds fulfil all; they are fractions 0..1 of the way."""
    from scipy.optimize import linprog

    names = sorted(frozenset().union(*(part.names for part in sums)))
    factors, rest = np.zeros((len(sums), len(names))), np.zeros(len(sums))
    for row, part in enumerate(sums):
        rest[row] = part.constant
        for name, factor in part.terms:
            lower, upper = columns[name].bounds
            factors[row, names.index(name)] = factor * (upper - lower)
            rest[row] += factor * lower
    scale = np.abs(factors).max(axis=1)
    strict = np.array([part.relation is Relation.BELOW for part in sums])
    least = np.array([0.0 if part.exact else 1.0 for part in sums])  # for integers
    rest = np.where(strict, np.maximum(least, _GAP * scale), 0.0) + rest
    equal = np.array([part.relation is Relation.EQUAL for part in sums])
    factors, rest = factors / scale[:, None], rest / scale
    found = linprog(
        np.zeros(len(names)),
        A_ub=factors[~equal],
        b_ub=-rest[~equal],
        A_eq=factors[equal],
        b_eq=-rest[equal],
        bounds=(0, 1),
        options={"time_limit": _SECONDS},
    )
    return bool(found.status != _INFEASIBLE)
