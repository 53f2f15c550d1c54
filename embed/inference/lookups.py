"""Drafting columns that follow from another one, such as a region from a district."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...common.display.console import notice
from ...common.display.representations import RedactedRepr
from ...common.schema.columns.column import Column
from ...common.schema.columns.kinds import ColumnKind
from ...common.schema.columns.lookup import LookupColumn
from ...common.schema.columns.unread import in_places
from ...common.schema.rules.condition import is_missing
from ...common.schema.table import TableSchema
from .rules import MOST_CATEGORIES, MOST_CONCLUDED

_BROKEN: Final = 20.0
"""How many rows must contradict a lookup, in expectation, once columns are shuffled."""
_MOST_COLUMNS: Final = 200
"""The most columns of which all pairs are tried."""
_UNSEEN: Final = np.iinfo(np.int64).min


def with_lookups(
    schema: TableSchema, parts: Callable[[], Iterable[Mapping[str, NDArray[Any]]]]
) -> TableSchema:
    """A drafted schema in which columns that follow from another one are looked up by it.

    A column is looked up if every category of another one goes with a single value of it, in all
    rows, and would not if columns were shuffled, and if the two have too many categories for rules
    (`rules`). Of several such columns the one with the most categories is chosen. The label is
    never looked up.

    Guarantee:
        None: values are looked up in the records, and a single record decides whether one follows.

    Args:
        schema: of the table.
        parts: reads all rows, in parts, each of which maps a column's name to its values.
    """
    candidates = _candidates(schema)
    if not candidates:
        return schema
    for values in parts():
        candidates = [each for each in candidates if each.observe(values)]
        if not candidates:
            return schema
    found: dict[str, LookupColumn] = {}
    sources: set[str] = set()
    for each in sorted(candidates, key=lambda one: -len(one.source.categories)):
        name, source = each.column.name, each.source.name
        if name not in found and name not in sources and source not in found and each.holds:
            found[name] = each.lookup()
            sources.add(source)
            notice(f"{name}: follows from {source} in all rows: drafted as a lookup, not read")
    return replace(
        schema, **in_places(found.get(column.name, column) for column in schema.described)
    )


@dataclass(eq=False, repr=False)
class _Candidate(RedactedRepr):
    """A column that may follow from another one.

    Attributes:
        column: the column.
        source: the column that it may follow from.
        of: its value for each category of the source, `_UNSEEN` for categories that are in no row,
            int64 (categories,).
        rows: the number of rows of each category, int64 (categories,).
    """

    column: Column
    source: Column
    of: NDArray[np.int64]
    rows: NDArray[np.int64]

    def observe(self, values: Mapping[str, NDArray[Any]]) -> bool:
        """Whether the column still follows from its source, with further rows."""
        codes, found = values[self.source.name], values[self.column.name]
        known = ~is_missing(codes)
        if not np.array_equal(known, ~is_missing(found)):
            return False
        codes, found = codes[known], found[known].astype(np.int64)
        unseen = self.of[codes] == _UNSEEN
        self.of[codes[unseen]] = found[unseen]
        self.rows += np.bincount(codes, minlength=len(self.rows))
        return bool((self.of[codes] == found).all())

    @property
    def holds(self) -> bool:
        """Whether rows leave no category without a value, and would contradict by chance."""
        different, places = np.unique(self.of, return_inverse=True)
        few = len(self.of) <= MOST_CATEGORIES and len(different) <= MOST_CONCLUDED
        if few or not self.rows.all():
            return False
        several = (self.rows - 1).sum()
        shares = np.bincount(places, weights=self.rows) / self.rows.sum()
        return bool(several * (1 - shares.max()) >= _BROKEN)

    def lookup(self) -> LookupColumn:
        """The drafted column, whose place is to be set."""
        column = self.column
        texts = column.categories if not column.kind.numeric else None
        return LookupColumn(
            column.name,
            self.source.name,
            {
                category: str(value) if texts is None else texts[value]
                for category, value in zip(self.source.categories, self.of.tolist(), strict=True)
            },
            column.dtype,
        )


def _candidates(schema: TableSchema) -> list[_Candidate]:
    sources = [column for column in schema.columns if len(column.categories) > 1]
    columns = [
        column
        for column in schema.columns
        if column.name != schema.label
        and column.dtype != "bool"
        and (column.categories or column.kind is ColumnKind.INTEGER)
        and column.other is None
    ]
    if len(sources) > _MOST_COLUMNS or len(columns) > _MOST_COLUMNS:
        return []
    return [
        _Candidate(
            column,
            source,
            np.full(len(source.categories), _UNSEEN),
            np.zeros(len(source.categories), dtype=np.int64),
        )
        for source in sources
        for column in columns
        if column is not source
        and source.other is None
        and len(column.categories) <= len(source.categories)
    ]
