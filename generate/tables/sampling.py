"""Draw rows from a generator, and turn them into a table in the source's form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from numpy.typing import NDArray

from ...common.display.console import progress
from ...common.display.representations import RedactedRepr
from ...common.errors import GeneratorError
from ...common.runtime.threads import one_core_each
from ...common.schema.rules.condition import Condition
from ...common.schema.table import TableSchema
from ..fit.allocation import places_by_class, split_by_shares
from ..fit.descent import finite
from .generators.registry import RowGenerator
from .marginals.matching import independent_rows, match_marginals, spread
from .marginals.released import ColumnMarginal, are_known
from .refinement import Refinement
from .reweighting import Reweighting, Rows
from .rows.conditional import draw_where
from .rows.repair import repair
from .rows.values import Values, table_of, values_of

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH: Final = 4000
_AT_ONCE: Final = 200_000
"""Largest number of rows refined together; all of them are in memory."""


@dataclass(frozen=True, eq=False)
class RowModel:
    """The model that the rows of a table are drawn from.

    Attributes:
        schema: of the table.
        generator: a trained network, in evaluation mode, on the CPU; None if rows are arranged from
            denoised columns.
        marginals: denoised columns; or released ones, to which the network's rows are corrected, if
            there are any.
        reweighting: chooses among the network's rows; None keeps all.
        refinement: arranges rows anew; None leaves them as they are.

    Raises:
        GeneratorError: there is no network, and too little to do without one.
    """

    schema: TableSchema
    generator: RowGenerator | None = None
    marginals: tuple[ColumnMarginal, ...] = ()
    reweighting: Reweighting | None = None
    refinement: Refinement | None = None

    def __post_init__(self) -> None:
        of_columns = self.refinement is not None and are_known(self.marginals, self.schema)
        if self.generator is None and not of_columns:
            raise GeneratorError("there is nothing that its rows could be made from")


@dataclass(frozen=True, eq=False, repr=False)
class Drawn(RedactedRepr):
    """A drawn table.

    Attributes:
        table: with the columns of the schema, valid under it.
        repaired: share of the rows that broke a constraint and were repaired; None without
            constraints.
    """

    table: pa.Table
    repaired: float | None


def draw_rows(
    model: RowModel,
    count: int,
    class_weights: NDArray[np.float64],
    seed: int,
    where: str = "",
) -> Drawn:
    """Draw rows, in random order.

    Args:
        model: what rows are drawn from.
        count: how many rows.
        class_weights: share of each class, float64 (c,); labels follow the shares up to rounding.
        seed: seeds labels, latent codes and draws.
        where: a condition that all rows fulfil; empty for none.

    Raises:
        GeneratorError: the constraints of the schema contradict each other, or too few rows fulfil
            the condition.
    """
    schema = model.schema

    def make(
        count: int, seed: int, weights: NDArray[np.float64]
    ) -> tuple[Values, NDArray[np.bool_]]:
        values = _values(model, count, weights, seed)
        return values, repair(values, schema, seed)

    def make_under(
        condition: Condition, count: int, seed: int, weights: NDArray[np.float64]
    ) -> tuple[Values, NDArray[np.bool_]]:
        values = _values_under(condition, model, count, weights, seed)
        return values, repair(values, schema, seed, (*schema.rules, condition))

    if where:
        under = None if model.refinement is None else make_under
        values, repaired = draw_where(make, where, schema, class_weights, count, seed, under)
    else:
        values, repaired = make(count, seed, class_weights)
    share = float(repaired.mean()) if schema.rules else None
    return Drawn(table_of(schema, values), share)


def _values(model: RowModel, count: int, class_weights: NDArray[np.float64], seed: int) -> Values:
    """Draw rows from a model.

    Encoded rows are many times as large as the values that they encode, so no more exist at a time
    than are refined together.
    """
    random, chances = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    schema, refinement = model.schema, model.refinement
    source = _unrefined(model, random, chances)
    nothing = values_of(schema, np.empty((0, schema.record_size), np.float32), np.empty(0, int))
    values = {name: np.empty(count, column.dtype) for name, column in nothing.items()}

    def put(places: NDArray[np.int64], label: int, records: NDArray[np.float32]) -> None:
        part = values_of(schema, records, np.full(len(records), label))
        for name, column in part.items():
            values[name][places] = column

    with progress("sampling", count, "rows") as advance:
        departures = {} if refinement is None else refinement.departures(source)
        for label, places in places_by_class(count, class_weights, _AT_ONCE, random):
            if refinement is not None:
                made = refinement.draw(label, len(places), source, chances, advance, departures)
                spread(made, model.marginals, chances)
                put(places, label, made)
                continue
            for batch in np.split(places, range(_BATCH, len(places), _BATCH)):
                put(batch, label, source(label, len(batch)))
                advance(len(batch), "")
    return values


def _unrefined(model: RowModel, random: torch.Generator, chances: np.random.Generator) -> Rows:
    """Makes the rows that precede refinement, or that are final without one."""
    marginals, reweighting, refinement = model.marginals, model.reweighting, model.refinement
    if model.generator is None:
        return lambda label, wanted: independent_rows(
            wanted, label, marginals, model.schema, chances
        )
    rows = corrected_rows(model.generator, marginals, random)

    def chosen(label: int, wanted: int) -> NDArray[np.float32]:
        # Only earlier files have a network beside a refinement.
        pooled = refinement is not None and not refinement.swaps(label)
        if reweighting is None or pooled:
            return rows(label, wanted)
        made = reweighting.draw(label, wanted, rows, chances)
        if not reweighting.pooled[label]:
            match_marginals(made, label, marginals, chances, posterior_mean=True)
        return made

    return chosen


def _values_under(
    condition: Condition,
    model: RowModel,
    count: int,
    class_weights: NDArray[np.float64],
    seed: int,
) -> Values:
    """Draw rows that are held to a condition while they are arranged.

    Returns:
        The values of at most `count` rows, in random order; fewer if a class has no value that
        fulfils the condition.
    """
    random, chances = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    schema, refinement = model.schema, model.refinement
    assert refinement is not None
    source = _unrefined(model, random, chances)
    parts: list[Values] = []
    with progress("sampling", count, "rows") as advance, one_core_each() as each:
        departures = refinement.departures(source)
        pools = {
            label: refinement.pool(label, condition, source, departures, chances, each, advance)
            for label in np.flatnonzero(class_weights).tolist()
        }
        shares = np.zeros_like(class_weights)
        for label, pool in pools.items():
            shares[label] = class_weights[label] * pool.share
        wanted = split_by_shares(count, shares if shares.any() else class_weights)
        for label, pool in pools.items():
            if not wanted[label]:
                continue
            made = pool.draw(int(wanted[label])).numpy()
            labels = np.full(len(made), label)
            held = values_of(schema, made, labels)
            spread(made, model.marginals, chances)
            moved = values_of(schema, made, labels)
            fulfils = condition.truth(moved).holds
            parts.append({name: np.where(fulfils, moved[name], held[name]) for name in held})
            advance(len(made), "")
    order = chances.permutation(sum(len(part[schema.columns[0].name]) for part in parts))
    return {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0]}


def corrected_rows(
    generator: RowGenerator, marginals: tuple[ColumnMarginal, ...], random: torch.Generator
) -> Rows:
    """Make rows by a generator, and correct them to marginals.

    Args:
        generator: in evaluation mode, on the CPU.
        marginals: released ones, to which the rows are corrected.
        random: of latent codes and draws; its seed also seeds the correction.
    """
    chances = np.random.default_rng(random.initial_seed())

    @torch.inference_mode()
    def rows(label: int, count: int) -> NDArray[np.float32]:
        code = torch.randn(1, count, generator.spec.code, generator=random)
        made = finite(generator(code, torch.tensor([label]), random)[0])
        records: NDArray[np.float32] = made.numpy()
        match_marginals(records, label, marginals, chances)
        return records

    return rows


def to_table(
    schema: TableSchema, records: NDArray[np.float32], labels: NDArray[np.int64]
) -> pa.Table:
    """Turn encoded rows into a table with the source's types that keeps all constraints.

    Args:
        schema: of the table.
        records: float32 (n, record size), values 0..1.
        labels: int64 (n,).

    Raises:
        GeneratorError: the constraints contradict each other.
    """
    values = values_of(schema, records, labels)
    repair(values, schema, seed=0)
    return table_of(schema, values)
