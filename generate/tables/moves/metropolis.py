"""Metropolis moves of rows, whose density is exp of <theta, phi(x)> and of further energies.

A move is made with probability min(1, exp(gain)), where the gain is what it adds to the exponent
(Metropolis et al. 1953, "Equation of state calculations by fast computing machines"). Rows move
column by column; the sums that <theta, phi(x)> follows from (`LinearForm`) move with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import torch
from torch import Tensor

from ....common.runtime.threads import Each, finish
from ....common.schema.encoding import Block
from ..energies.base import Energy
from ..energies.count import CountEnergy
from ..energies.relu_features import LinearForm
from ..energies.row_copies import copy_rows, exchange_rows

_PAIRS: Final = 1024
"""Pairs of rows in a batch: with fewer, threads wait for the interpreter; with many more, the
working set does not fit into a processor's cache."""


def try_swaps(
    form: LinearForm,
    records: Tensor,
    blocks: Sequence[Block],
    random: np.random.Generator,
    energies: Sequence[Energy] = (),
    each: Each = map,
) -> None:
    """Pair rows at random, and try to swap the values of each column in turn.

    Args:
        form: <theta, phi(x)>.
        records: (n, record size), values 0..1, changed in place.
        blocks: columns whose values are swapped.
        random: pairs the rows, and decides.
        energies: further parts of the energy.
        each: distributes the work; the result does not depend on how.
    """
    order = torch.from_numpy(random.permutation(len(records))[: len(records) // 2 * 2])

    def swap(rows: Tensor, draws: np.random.Generator) -> None:
        here = records.index_select(0, rows)
        _swap_halves(form, here, blocks, draws, energies)
        records.index_copy_(0, rows, here)

    _share(swap, order.split(2 * _PAIRS), random, each)


def try_swaps_with(
    form: LinearForm,
    records: Tensor,
    others: Tensor,
    blocks: Sequence[Block],
    random: np.random.Generator,
    energies: Sequence[Energy] = (),
    each: Each = map,
) -> None:
    """Try to swap values of each row with some other row, which is then restored.

    Args are those of `try_swaps`, and `others`: rows that values are taken from, (k, record size).
    """

    def swap(rows: Tensor, draws: np.random.Generator) -> None:
        chosen = torch.from_numpy(draws.integers(len(others), size=len(rows)))
        both = torch.cat([rows, others[chosen]])
        _swap_halves(form, both, blocks, draws, energies)
        rows.copy_(both[: len(rows)])

    _share(swap, records.split(_PAIRS), random, each)


def try_replacements(
    form: LinearForm,
    records: Tensor,
    others: Tensor,
    blocks: Sequence[Block],
    random: np.random.Generator,
    tables: CountEnergy | None = None,
    each: Each = map,
) -> None:
    """Try to replace each row, and then its value in each column, by those of some other row.

    Args are those of `try_swaps_with`, and `tables`: energy that the other rows follow; None if
    their columns are independent.
    """

    def replace(rows: Tensor, draws: np.random.Generator) -> None:
        _replace_values(form, rows, others, blocks, draws, tables)

    _share(replace, records.split(2 * _PAIRS), random, each)


def _swap_halves(
    form: LinearForm,
    records: Tensor,
    blocks: Sequence[Block],
    random: np.random.Generator,
    energies: Sequence[Energy],
) -> None:
    """Swap values between the first half of the rows and the second, in place.

    Pairs of rows that have the same value are left out: in many columns, most have.
    """
    further = [energy.swap_gains(records) for energy in energies]
    half = len(records) // 2
    sums = form.sums(records)
    square = torch.linalg.vecdot(records, records)
    value = form.value(sums, square)
    for block in blocks:
        place = block.place
        one, other = records[:half, place], records[half:, place]
        pairs, change, longer = _differences(one, other)
        rows = torch.cat([pairs, pairs + half])
        new_square = square.index_select(0, rows) + torch.cat([longer, -longer])
        difference = change @ form.weights[place]
        new_sums = sums.index_select(0, rows)
        new_sums[: len(pairs)] += difference
        new_sums[len(pairs) :] -= difference
        new_value = form.value(new_sums, new_square)
        gain = (new_value - value.index_select(0, rows)).view(2, len(pairs)).sum(dim=0)
        gain = gain + sum(gains.gain(block, pairs) for gains in further)
        taken = _accepted(gain, random)
        chosen, moved = pairs[taken], torch.cat([taken, taken + len(pairs)])
        exchange_rows(one, other, chosen)
        new = (new_sums, sums), (new_square, square), (new_value, value)
        copy_rows(rows[moved], moved, *new)
        for gains in further:
            gains.accept(block, chosen)


def _replace_values(
    form: LinearForm,
    records: Tensor,
    others: Tensor,
    blocks: Sequence[Block],
    random: np.random.Generator,
    tables: CountEnergy | None,
) -> None:
    """Replace whole rows by others, and then values of single columns, in place."""
    sums = form.sums(records)
    square = torch.linalg.vecdot(records, records)
    value = form.value(sums, square)
    # The others follow the tables' distribution, so its energy cancels when whole rows are taken.
    new = others[torch.from_numpy(random.integers(len(others), size=len(records)))]
    new_sums = form.sums(new)
    new_square = torch.linalg.vecdot(new, new)
    new_value = form.value(new_sums, new_square)
    chosen = _accepted(new_value - value, random)
    whole = (new, records), (new_sums, sums), (new_square, square), (new_value, value)
    copy_rows(chosen, chosen, *whole)
    copies = None if tables is None else tables.copy_gains(records, others)
    for block in blocks:
        place = block.place
        source = torch.from_numpy(random.integers(len(others), size=len(records)))
        old, new = records[:, place], others[source, place]
        rows, change, longer = _differences(old, new)
        source = source[rows]
        new_square = square.index_select(0, rows) + longer
        new_sums = sums.index_select(0, rows)
        new_sums += change @ form.weights[place]
        new_value = form.value(new_sums, new_square)
        gain = new_value - value.index_select(0, rows)
        if copies is not None:
            gain += copies.gain(block, rows, source)
        taken = _accepted(gain, random)
        chosen = rows[taken]
        copy_rows(chosen, chosen, (new, old))
        copy_rows(chosen, taken, (new_sums, sums), (new_square, square), (new_value, value))
        if copies is not None:
            copies.accept(block, chosen, source[taken])


def _share(
    move: Callable[[Tensor, np.random.Generator], None],
    parts: Sequence[Tensor],
    random: np.random.Generator,
    each: Each,
) -> None:
    """Move parts of the rows, each with its own draws, so that scheduling does not matter."""
    draws = random.spawn(len(parts))
    finish(each(lambda part: move(*part), zip(parts, draws, strict=True)))


def _differences(old: Tensor, new: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """How two tensors (n, k) differ.

    Returns:
        The rows in which they do, int64 (m,); there, the second minus the first, (m, k), and the
        same of their squared norms, (m,).
    """
    change = new - old
    rows = change.any(dim=1).nonzero()[:, 0]
    change = change.index_select(0, rows)
    return rows, change, torch.linalg.vecdot(change, change + 2 * old.index_select(0, rows))


def _accepted(gain: Tensor, random: np.random.Generator) -> Tensor:
    """Which of some moves are made, with probability min(1, exp(gain)): int64 (m,)."""
    chance = torch.from_numpy(-random.standard_exponential(len(gain), dtype=np.float32))
    return (chance < gain).nonzero()[:, 0]
