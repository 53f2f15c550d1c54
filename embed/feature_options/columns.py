"""The pairs, triples and products of columns that a release measures."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from ...common.arguments import argument
from ...common.errors import SchemaError
from ...common.features.marginals.map import MarginalFeatures
from ...common.features.moments import MomentFeatures
from ...common.schema.encoding import blocks_of
from ...common.schema.table import TableSchema

WORDS: Final = ("all", "triples", "none")
_MOST_PAIRS: Final = 1 << 12
_MOST_CELLS: Final = 1 << 24
"""The most pairs that are counted for a release to choose among, and the most cells that they may
have in all classes together: 128 MiB."""
_LEAST_CELLS: Final = 1 << 21
"""So many they may have in each class in any case."""


def read_pairs(said: Sequence[str], schema: TableSchema) -> list[tuple[str, ...]]:
    """Parse pairs and triples: names with commas between them, or all of a kind.

    Args:
        said: "all" means all pairs, "triples" all triples of columns with two values, and "none"
            none.
        schema: of the table.

    Raises:
        SchemaError: a name is not a column's, or comes twice.
    """
    names = [column.name for column in schema.features]
    if "none" in said and len(said) > 1:
        raise SchemaError(f"{argument('pairs', 'none')}: it goes with no others")
    found: list[tuple[str, ...]] = []
    for text in (text for text in said if text not in WORDS):
        parts = text.split(",")
        cuts = [c for k in (1, 2) for c in itertools.combinations(range(1, len(parts)), k)]
        # A name may itself contain commas.
        ways = [
            tuple(
                ",".join(parts[start:stop]) for start, stop in itertools.pairwise((0, *cut, None))
            )
            for cut in cuts
        ]
        known = [way for way in ways if set(way) <= set(names) and len(set(way)) == len(way)]
        if len(known) != 1:
            this = argument("pairs", text)
            if any(schema.label in way for way in ways):
                raise SchemaError(
                    f"{this}: {schema.label} is the label, and all marginals are taken "
                    "class by class as it is"
                )
            raise SchemaError(
                f"{this}: two or three different columns with commas between them, all, "
                f"triples or none; there are {', '.join(names)}"
            )
        found += known
    every: list[tuple[str, ...]] = []
    if "all" in said:
        every += itertools.combinations(names, 2)
    if "triples" in said:
        two = [column.name for column in schema.features if column.choices == 2]
        every += itertools.combinations(two, 3)
        if len(two) < 3:
            this = argument("pairs", "triples")
            raise SchemaError(f"{this}: there are no three columns of two values")
    there = {frozenset(way) for way in every}
    return every + [way for way in found if frozenset(way) not in there]


def products_of_columns(schema: TableSchema, target: str | None) -> MomentFeatures | None:
    """The products of a table's columns, if any; products with the target weigh more.

    Args:
        schema: of the table.
        target: name of the numeric column that the others are to predict, if any.

    Raises:
        SchemaError: the target is not a numeric column that is released.
    """
    moments = MomentFeatures.of(schema)
    if target is None:
        return moments
    columns = {block.column.name: block for block in blocks_of(schema)}
    numeric = [column.name for column in schema.features if column.kind.numeric]
    wrong, names = f"{argument('target', target)}: ", ", ".join(numeric) or "none"
    if target == schema.label:
        raise SchemaError(
            f"{wrong}it is the label, and all is released class by class as it is: without a "
            "target, classes are what other columns predict"
        )
    if target in schema.left_out:
        raise SchemaError(f"{wrong}the schema leaves it out; numeric columns are {names}")
    if target in (column.name for column in schema.made):
        raise SchemaError(f"{wrong}it is made anew, not read; numeric columns are {names}")
    if target not in columns:
        raise SchemaError(f"{wrong}there is no such column; numeric columns are {names}")
    if target not in numeric:
        raise SchemaError(
            f"{wrong}its values are categories: make it the label of the schema, and leave "
            f"{argument('target')} out; numeric columns are {names}"
        )
    return moments and moments.aiming_at(columns[target].place.start)


def pairs_to_choose_among(
    schema: TableSchema, moments: MomentFeatures, named: Sequence[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """All pairs of columns among which a release can choose by their products.

    If there are too many, those with the target come first, then those of two numbers, all of which
    a release measures in few cells, and then those with the fewest cells. If some are named, no
    others than those of two numbers are needed.

    Args:
        schema: of the table.
        moments: its products.
        named: pairs and triples that the release is to take, if any.
    """
    blocks, columns = blocks_of(schema), MarginalFeatures.of(schema).columns
    cells = {
        block.column.name: column.dimension
        for block, column in zip(blocks, columns, strict=True)
        if block.first in moments.places
    }
    numbers = {block.column.name for block in blocks if block.column.kind.numeric}
    ranks = {block.column.name for block in blocks if block.by_rank}
    pairs = itertools.combinations(cells, 2)
    if named:
        pairs = itertools.combinations([name for name in cells if name in numbers], 2)
    sizes = {(one, other): cells[one] * cells[other] for one, other in pairs}
    target = moments.target_in(schema)

    def urgency(pair: tuple[str, str]) -> tuple[bool, bool, int, int]:
        of_ranks = sum(name in ranks for name in pair)
        return target not in pair, not numbers.issuperset(pair), of_ranks, sizes[pair]

    first = sorted(sizes, key=urgency)[:_MOST_PAIRS]
    so_far = itertools.accumulate(sizes[pair] for pair in first)
    most = max(_MOST_CELLS // len(schema.classes), _LEAST_CELLS)
    among = [pair for pair, total in zip(first, so_far, strict=True) if total <= most]
    there = set(map(frozenset, named))
    return [*named, *(pair for pair in among if frozenset(pair) not in there)]
