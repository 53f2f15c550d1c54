"""The cells of a table's columns, and of groups of them, from its schema."""

from __future__ import annotations

from collections.abc import Sequence

from ...display.text import counted
from ...errors import SchemaError
from ...schema.columns.kinds import ColumnKind, Missing
from ...schema.encoding import Block, blocks_of
from ...schema.table import TableSchema
from .cells import MOST_CELLS, MarginalColumn, MarginalGroup
from .spec import MOST


def column_of(block: Block, usual: int) -> MarginalColumn:
    """The cells of a single column.

    Args:
        block: its place in a record.
        usual: the number of cells of a numeric column, unless it has few integers.
    """
    column, start = block.column, block.place.start
    if not column.kind.numeric:
        ranked = column.kind is ColumnKind.ORDINAL
        return MarginalColumn(start + ranked, column.choices, 0, -1)
    values = column.different
    cells = usual if values is None or values > MOST_CELLS else values
    missing = column.missing is Missing.INDICATOR
    return MarginalColumn(start, 1, cells, block.place.stop - 1 if missing else -1)


def level_column_of(block: Block, column: MarginalColumn) -> MarginalColumn | None:
    """A numeric column by level; None if each of its values has a cell already.

    Args:
        block: its place in a record.
        column: its cells as a single column.
    """
    if not block.column.kind.numeric or column.cells == block.column.different:
        return None
    return column.by_level(block.shares.stop - block.shares.start - block.missing_place)


def binned(block: Block) -> MarginalColumn:
    """A column by its categories or soft bins, including missing values."""
    return MarginalColumn(block.shares.start, block.shares.stop - block.shares.start, 0, -1)


def groups_of(
    schema: TableSchema, names: Sequence[tuple[str, ...]], sides: Sequence[MarginalColumn]
) -> tuple[MarginalGroup, ...]:
    """Groups of columns, in the order of the columns.

    Args:
        schema: the table's schema.
        names: the names of each group's columns.
        sides: each column of the schema as a side of a group.

    Raises:
        SchemaError: a name is not that of a column other than the label, a group occurs twice, or
            the groups have too many cells together.
    """
    order = {block.column.name: number for number, block in enumerate(blocks_of(schema))}
    found: dict[tuple[int, ...], MarginalGroup] = {}
    for group in names:
        said = " and ".join(group)
        if len(set(group)) != len(group) or not all(name in order for name in group):
            raise SchemaError(f"marginals: {said} are not two or three different columns")
        key = tuple(sorted(order[name] for name in group))
        if key in found:
            raise SchemaError(f"marginals: {said} are there twice")
        found[key] = MarginalGroup(tuple(sides[number] for number in key))
    cells = sum(group.dimension for group in found.values())
    if cells > MOST:
        raise SchemaError(
            f"marginals: {counted(len(found), 'group')} of columns have {cells:,} cells, and "
            f"{MOST:,} is the limit: choose fewer, or columns with fewer categories"
        )
    return tuple(found[key] for key in sorted(found))
