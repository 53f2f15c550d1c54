"""A final correction of generated rows to the released one-way marginals."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ....common.numerics.simplex import to_simplex
from ....common.schema.columns.kinds import ColumnKind
from ....common.schema.encoding import Block, NumericEncoding, blocks_of
from ....common.schema.table import TableSchema
from .levels import SmoothCells
from .released import ColumnMarginal

_EMPTY: Final = 1e-12


def match_marginals(
    records: NDArray[np.float32],
    label: int,
    marginals: tuple[ColumnMarginal, ...],
    random: np.random.Generator,
    *,
    posterior_mean: bool = False,
) -> None:
    """Change generated rows of a class minimally to match its released marginals.

    Numbers are moved in their order, which keeps their rank dependence on other columns. Random
    rows change from categories that are too frequent to those that are too rare.

    Args:
        records: float32 (n, record size), values 0..1, changed in place.
        label: index of the class.
        marginals: of the release.
        random: chooses the rows.
        posterior_mean: whether numbers get their posterior mean shares; otherwise the released
            shares are shrunk towards those of the rows (`james_stein`).
    """
    rows = np.arange(len(records))
    for marginal in marginals:
        block, cells = marginal.block, marginal.cells(records)
        if not isinstance(block.encoding, NumericEncoding):
            shares = marginal.posterior_mean[label]
            codes = _rearranged(cells, shares, random)
            records[:, block.shares] = np.eye(len(shares), dtype=np.float32)[codes]
            _rank(records, block, codes)
            continue
        if posterior_mean:
            shares = marginal.posterior_mean[label]
        else:
            made = np.bincount(cells, minlength=marginal.shares.shape[1]) / len(rows)
            shares = james_stein(marginal.shares[label], made, float(marginal.noise[label]))
        there = rows
        if block.missing_place:
            wanted = np.array([shares[:-1].sum(), shares[-1]])
            missing = _rearranged((cells == marginal.points).astype(np.int64), wanted, random)
            records[:, block.place.stop - 1] = missing
            there = np.flatnonzero(missing == 0)
        _quantile_map(records, there, marginal, shares[: marginal.points], random)
        _lift(records, block)


def independent_rows(
    count: int,
    label: int,
    marginals: tuple[ColumnMarginal, ...],
    schema: TableSchema,
    random: np.random.Generator,
) -> NDArray[np.float32]:
    """Draw rows of a class with independent columns, by their posterior mean marginals.

    Args:
        count: how many.
        label: index of the class.
        marginals: of all columns.
        schema: of the table.
        random: of the rows.

    Returns:
        float32 (count, record size), values 0..1, rounded as they will be written.
    """
    records = np.zeros((count, schema.record_size), dtype=np.float32)
    match_marginals(records, label, marginals, random, posterior_mean=True)
    round_to_steps(records, schema)
    return records


def round_to_steps(records: NDArray[np.float32], schema: TableSchema) -> None:
    """Round numbers to their steps, so that rows have the features of what is written.

    Args:
        records: float32 (n, record size), values 0..1, changed in place.
        schema: of the table.
    """
    for block in blocks_of(schema):
        encoding = block.encoding
        if isinstance(encoding, NumericEncoding) and block.column.is_rounded:
            share = records[:, block.place.start].astype(np.float64)
            whole = encoding.share(block.column.rounded(encoding.at(share)))
            records[:, block.place.start] = whole.clip(0, 1)
            _lift(records, block)


def spread(
    records: NDArray[np.float32], marginals: tuple[ColumnMarginal, ...], random: np.random.Generator
) -> None:
    """Spread numbers that are equal because rows were doubled; each stays in its cell.

    Args:
        records: float32 (n, record size), values 0..1, changed in place.
        marginals: of the release; a column without one is left alone.
        random: breaks ties.
    """
    for marginal in marginals:
        block = marginal.block
        if isinstance(block.encoding, NumericEncoding):
            cells = marginal.cells(records)
            there = np.flatnonzero(cells < marginal.points)
            shares = np.bincount(cells[there], minlength=marginal.points) / max(1, len(there))
            _quantile_map(records, there, marginal, shares, random)
            _lift(records, block)


def james_stein(
    noisy: NDArray[np.float64], made: NDArray[np.float64], noise: float
) -> NDArray[np.float64]:
    """Shrink the released shares towards those of the generator.

    The whole difference is scaled by one factor, which minimises the expected squared error (James
    and Stein 1961, "Estimation with quadratic loss", around the generator, which was trained on
    everything released).

    Args:
        noisy: released shares (cells,).
        made: shares among generated rows (cells,).
        noise: standard deviation of the noise.
    """
    difference = noisy - made
    size = float(np.square(difference).sum())
    kept = 0.0 if size == 0 else max(0.0, 1 - len(difference) * noise**2 / size)
    return made + kept * (to_simplex(noisy) - made)


def _quantile_map(
    records: NDArray[np.float32],
    rows: NDArray[np.int64],
    marginal: ColumnMarginal,
    shares: NDArray[np.float64],
    random: np.random.Generator,
) -> None:
    """Move a column's numbers in their order until its cells have these shares."""
    place = marginal.block.place.start
    if not len(rows) or shares.sum() < _EMPTY:
        return
    order = np.lexsort((random.random(len(rows)), records[rows, place]))
    wanted = np.cumsum(shares / shares.sum())
    quantile = (np.arange(len(rows)) + 0.5) / len(rows)
    cell = np.minimum(np.searchsorted(wanted, quantile), len(shares) - 1)
    begin = np.concatenate([[0.0], wanted])[cell]
    within = (quantile - begin) / np.maximum(wanted[cell] - begin, _EMPTY)
    if marginal.levels is not None:
        records[rows[order], place] = marginal.levels.at(cell, within)
    elif marginal.has_values_between:
        records[rows[order], place] = SmoothCells(shares).at(cell, within)
    else:
        records[rows[order], place] = cell / (len(shares) - 1)


def _rank(records: NDArray[np.float32], block: Block, codes: NDArray[np.int64]) -> None:
    """Set an ordinal column's rank from its categories, and 0 where it is missing."""
    if block.column.kind is ColumnKind.ORDINAL:
        count = len(block.column.categories)
        records[:, block.place.start] = np.where(codes < count, codes, 0) / max(1, count - 1)


def _lift(records: NDArray[np.float32], block: Block) -> None:
    """Set a numeric column's soft bins from its value, and all 0 where it is missing."""
    assert isinstance(block.encoding, NumericEncoding)
    knots, start = block.encoding.knots, block.place.start
    bins = block.encoding.bins(records[:, start])
    if block.missing_place:
        missing = records[:, block.place.stop - 1] > 0.5
        records[missing, start] = bins[missing] = 0
    records[:, start + 1 : start + 1 + knots] = bins


def _rearranged(
    codes: NDArray[np.int64], shares: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.int64]:
    """Change as few codes as possible to give them the wanted shares."""
    wanted = np.floor(shares * len(codes)).astype(np.int64)
    rest = shares * len(codes) - wanted
    wanted[np.argsort(-rest, kind="stable")[: len(codes) - int(wanted.sum())]] += 1
    found = np.bincount(codes, minlength=len(shares))
    free = [
        random.choice(np.flatnonzero(codes == code), found[code] - wanted[code], replace=False)
        for code in np.flatnonzero(found > wanted)
    ]
    if not free:
        return codes
    changed = codes.copy()
    lacking = np.maximum(wanted - found, 0)
    new = random.permutation(np.repeat(np.arange(len(shares)), lacking))
    changed[np.concatenate(free)] = new
    return changed
