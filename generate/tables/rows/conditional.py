"""Draw rows that fulfil a condition, by rejection from the classes that can.

Few rows fulfil a rare condition, and the more rows are drawn, the more of them are near copies of
one another (`refinement`). So if rows can be held to a condition, all but the first ones are made
under it (`conditioned`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ....common.arguments import argument, require_kind
from ....common.errors import GeneratorError, SchemaError
from ....common.schema.rules.condition import Condition
from ....common.schema.table import TableSchema
from .values import Values

MakeRows = Callable[[int, int, NDArray[np.float64]], tuple[Values, NDArray[np.bool_]]]
"""Makes rows from a count, a seed and class shares, and says which were repaired."""
MakeUnder = Callable[[Condition, int, int, NDArray[np.float64]], tuple[Values, NDArray[np.bool_]]]
"""The same for rows that are held to a condition. The class shares are the unconditional ones, but
0 where no row can fulfil it."""
RARE: Final = 0.05
"""A condition is rare if a smaller share of the first thousand or more rows fulfils it. Each row
kept would then need more than `_FOR_EACH` draws, the limit."""
_LEAST: Final = 1_000
_MOST: Final = 100_000
_FOR_EACH: Final = 20
"""At most 100,000 rows are drawn, or 20 for each wanted row if that is more."""
_AT_ONCE: Final = 200_000
_MARGIN: Final = 1.2
_FEW: Final = 0.1
"""Drawing stops if a smaller share of the rows held to the condition still fulfils it after
constraints have been repaired."""


def draw_where(
    make: MakeRows,
    where: str,
    schema: TableSchema,
    class_weights: NDArray[np.float64],
    count: int,
    seed: int,
    make_under: MakeUnder | None = None,
) -> tuple[Values, NDArray[np.bool_]]:
    """Draw rows from a generator's distribution given a condition.

    Guarantee:
        Post-processing: rows from a release, and a condition chosen without access to the records.
        (docs/privacy/proofs.md, statement 10.)

    Args:
        make: draws rows without the condition.
        where: the condition.
        schema: of the rows.
        class_weights: share of each class, float64 (c,).
        count: how many rows.
        seed: of the draw.
        make_under: draws rows that are held to the condition, used if it is rare; None if the
            generator does not support it.

    Returns:
        The rows' values, and which of them were repaired, bool (count,).

    Raises:
        GeneratorError: the condition is invalid, no row can fulfil it, or too few do.
    """
    condition = _understood(where, schema)
    weights = class_weights * _classes(condition, schema)
    parts: list[tuple[Values, NDArray[np.bool_]]] = []
    found = drawn = attempt = 0
    most = max(_MOST, _FOR_EACH * count)
    rare = stuck = False
    while found < count and drawn < most and not stuck:
        share = max(found / drawn, 1 / most) if drawn else 1.0
        if rare and make_under is not None:
            wanted = min(round(_MARGIN * (count - found)), _AT_ONCE)
            try:
                values, repaired = make_under(condition, wanted, _seed(seed, attempt), weights)
            except GeneratorError as error:
                raise GeneratorError(f"{_condition(where)}: {error}") from error
        else:
            wanted = max(_LEAST, round(_MARGIN * (count - found) / share))
            wanted = min(wanted, _AT_ONCE, most - drawn)
            values, repaired = make(wanted, _seed(seed, attempt), weights / weights.sum())
        kept = np.flatnonzero(condition.truth(values).holds)[: count - found]
        parts.append(({name: column[kept] for name, column in values.items()}, repaired[kept]))
        stuck = rare and len(kept) < min(count - found, _FEW * wanted)
        found, drawn, attempt = found + len(kept), drawn + wanted, attempt + 1
        rare = rare or (attempt == 1 and make_under is not None and found < RARE * drawn)
    if found < count:
        raise GeneratorError(
            f"{_condition(where)}: {found:,} of {drawn:,} rows fulfil it, and {count:,} are "
            "wanted: ask for fewer, or for what is less rare"
        )
    names = parts[0][0]
    joined = {name: np.concatenate([values[name] for values, _ in parts]) for name in names}
    return joined, np.concatenate([repaired for _, repaired in parts])


def require_condition(where: str, schema: TableSchema) -> None:
    """Refuse early a condition that rows of a schema cannot fulfil; empty means none.

    Raises:
        GeneratorError: the condition is invalid, or no row can fulfil it.
    """
    if where:
        _understood(where, schema)


def _condition(where: str) -> str:
    """A condition as named in errors."""
    return f"{argument('where')}: condition {where!r}"


def _understood(where: str, schema: TableSchema) -> Condition:
    require_kind("where", where, str, "a condition, such as 'age >= 50'", refusal=GeneratorError)
    try:
        condition = schema.condition(where)
    except SchemaError as error:
        raise GeneratorError(f"{argument('where')}: {error}") from error
    if not _classes(condition, schema).any():
        raise GeneratorError(f"{_condition(where)}: no row of any class can fulfil it")
    return condition


def _classes(condition: Condition, schema: TableSchema) -> NDArray[np.bool_]:
    """Which classes can have rows that fulfil a condition."""
    if schema.label is None:
        return np.ones(1, dtype=bool)
    codes = range(len(schema.classes))
    return np.array([condition.possible(schema.by_name, {schema.label: code}) for code in codes])


def _seed(seed: int, attempt: int) -> int:
    if attempt == 0:
        return seed
    return int(np.random.SeedSequence([seed, attempt]).generate_state(1)[0])
