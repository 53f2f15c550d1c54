"""Rows that fulfil a condition: drawn from the classes that can, and kept if they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ....common.errors import GeneratorError, SchemaError
from ....common.schema.rules.condition import Condition
from ....common.schema.rules.language import parse_condition
from ....common.schema.table import TableSchema
from .values import Values

MakeRows = Callable[[int, int, NDArray[np.float64]], tuple[Values, NDArray[np.bool_]]]
"""Makes so many rows, with a seed, in such shares of the classes; says which of them were
repaired."""
_LEAST: Final = 1_000
_MOST: Final = 100_000
_FOR_EACH: Final = 20
"""At most 100,000 rows are drawn, or 20 for each that is wanted if that is more."""
_AT_ONCE: Final = 200_000
_MARGIN: Final = 1.2


def draw_where(
    make: MakeRows,
    where: str,
    schema: TableSchema,
    class_weights: NDArray[np.float64],
    count: int,
    seed: int,
) -> tuple[Values, NDArray[np.bool_]]:
    """Draw rows from the distribution that a generator has under a condition.

    Args:
        make: draws rows without it.
        where: the condition.
        schema: of the rows.
        class_weights: share of each class, float64 (c,).
        count: how many rows.
        seed: of the draw.

    Returns:
        The rows' values, and which of them were repaired, bool (count,).

    Raises:
        GeneratorError: it is no condition, no row can fulfil it, or too few do.
    """
    condition = _understood(where, schema)
    weights = class_weights * _classes(condition, schema)
    parts: list[tuple[Values, NDArray[np.bool_]]] = []
    found = drawn = attempt = 0
    most = max(_MOST, _FOR_EACH * count)
    while found < count and drawn < most:
        share = max(found / drawn, 1 / most) if drawn else 1.0
        wanted = min(max(_LEAST, round(_MARGIN * (count - found) / share)), _AT_ONCE, most - drawn)
        values, repaired = make(wanted, _seed(seed, attempt), weights / weights.sum())
        kept = np.flatnonzero(condition.truth(values).holds)[: count - found]
        parts.append(({name: column[kept] for name, column in values.items()}, repaired[kept]))
        found, drawn, attempt = found + len(kept), drawn + wanted, attempt + 1
    if found < count:
        raise GeneratorError(
            f"--where: condition {where!r}: {found:,} of {drawn:,} rows fulfil it, and {count:,} "
            "are wanted: ask for fewer, or for what is less rare"
        )
    names = parts[0][0]
    joined = {name: np.concatenate([values[name] for values, _ in parts]) for name in names}
    return joined, np.concatenate([repaired for _, repaired in parts])


def require_condition(where: str, schema: TableSchema) -> None:
    """Refuse early a condition that rows of a schema cannot fulfil; an empty text is none.

    Raises:
        GeneratorError: it is no condition, or no row can fulfil it.
    """
    if where:
        _understood(where, schema)


def _understood(where: str, schema: TableSchema) -> Condition:
    try:
        condition = parse_condition(where, schema.by_name)
    except SchemaError as error:
        raise GeneratorError(f"--where: {error}") from error
    if not _classes(condition, schema).any():
        raise GeneratorError(f"--where: condition {where!r}: no row of any class can fulfil it")
    return condition


def _classes(condition: Condition, schema: TableSchema) -> NDArray[np.bool_]:
    """Rows of which classes may fulfil a condition."""
    if schema.label is None:
        return np.ones(1, dtype=bool)
    codes = range(len(schema.classes))
    return np.array([condition.possible(schema.by_name, {schema.label: code}) for code in codes])


def _seed(seed: int, attempt: int) -> int:
    if attempt == 0:
        return seed
    return int(np.random.SeedSequence([seed, attempt]).generate_state(1)[0])
