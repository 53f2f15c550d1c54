"""The strength of association of each pair of columns."""

from __future__ import annotations

from ..table import Table
from .associations import association
from .combinations import MOST_PAIRS, some_combinations
from .correlations import rank_correlations

Pair = tuple[str, str]


def strengths(table: Table) -> dict[Pair, float]:
    """Rank correlations of numeric columns, and associations of all other pairs.

    Args:
        table: rows under a schema.

    Returns:
        Strengths by the names of two columns, in the order of the schema: -1..1, or 0..1 if one is
        categorical. A random selection if there are very many pairs.
    """
    columns = table.schema.columns
    chosen = some_combinations(len(columns), 2, MOST_PAIRS)
    pairs = [(columns[i], columns[j]) for i, j in chosen]
    numeric = [(a.name, b.name) for a, b in pairs if a.kind.numeric and b.kind.numeric]
    found = dict(zip(numeric, rank_correlations(table, numeric).tolist(), strict=True))
    for first, second in pairs:
        if (first.name, second.name) not in found:
            found[first.name, second.name] = association(table, first, second)
    return found
