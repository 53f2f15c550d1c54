"""Tangent features of one hidden layer of ReLU units, updated as columns of rows change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from ....common.features.base import FeatureMap
from ....common.features.joint import JointFeatures
from ....common.features.ntk.layers import Activation, Linear
from ....common.features.ntk.map import TangentFeatures
from ....common.runtime.threads import Each, finish
from ....common.schema.encoding import Block
from .counts import Counts
from .energy import Energy

_PAIRS: Final = 1024
"""Pairs of rows in a batch: with fewer, threads wait for the interpreter; with many more, the
working set does not fit into a processor's cache."""
_BATCH: Final = 2_000


def has_relu_features(feature_map: FeatureMap) -> bool:
    """Whether a map has tangent features of one hidden layer of ReLU units, beside marginals."""
    if not isinstance(feature_map, JointFeatures):
        return False
    main = feature_map.main
    if not isinstance(main, TangentFeatures):
        return False
    match main.layers:
        case (Linear(), Activation(function="relu")):
            return True
    return False


class ReluFeatures:
    """Tangent features of one hidden layer of ReLU units, column by column.

    For a record x with h = W x + b they are v_j 1[h_j > 0] (x, 1) for each unit j, sqrt(K) relu(h)
    and sqrt(K), divided by their norm (`dpntk.common.features.ntk.map`). So <theta, phi(x)> depends
    on x only through |x|^2, h, and another vector of the same size, all of which are sums over
    columns.

    Args:
        feature_map: the features.
    """

    def __init__(self, feature_map: TangentFeatures) -> None:
        ((weight, bias),) = feature_map.parameters
        self._weight, self._bias = torch.from_numpy(weight), torch.from_numpy(bias)
        self._readout = torch.from_numpy(feature_map.readout)
        self._outputs = feature_map.outputs
        self._places = feature_map.blocks

    def mean(self, records: Tensor, each: Each = map) -> Tensor:
        """The mean of phi over records (n, record size), values 0..1, computed by `each`."""
        total = torch.zeros(self._places["output_bias"].stop)
        for of_batch in each(self._sum, records.split(_BATCH)):
            total += of_batch
        return total / len(records)

    def along(self, theta: Tensor, records: Tensor, each: Each = map) -> Tensor:
        """<theta, phi(x)> for records (n, record size), values 0..1, computed by `each`, (n,)."""
        return torch.cat(list(each(self._along(theta), records.split(_BATCH))))

    def _sum(self, records: Tensor) -> Tensor:
        hidden, scale, deltas = self._pass(records)
        total = torch.empty(self._places["output_bias"].stop)
        outer = total[self._places["weight_1"]].view_as(self._weight)
        torch.mm(deltas.T, records, out=outer)
        total[self._places["bias_1"]] = deltas.sum(dim=0)
        total[self._places["readout"]] = self._outputs**0.5 * (scale @ hidden)
        total[self._places["output_bias"]] = self._outputs**0.5 * scale.sum()
        return total

    def features(self, records: Tensor) -> Tensor:
        """The features of records (n, record size), values 0..1: (n, d)."""
        hidden, scale, deltas = self._pass(records)
        found = torch.empty(len(records), self._places["output_bias"].stop)
        outer = found[:, self._places["weight_1"]].view(len(records), *self._weight.shape)
        torch.mul(deltas[:, :, None], records[:, None, :], out=outer)
        found[:, self._places["bias_1"]] = deltas
        found[:, self._places["readout"]] = self._outputs**0.5 * scale[:, None] * hidden
        found[:, self._places["output_bias"]] = self._outputs**0.5 * scale[:, None]
        return found

    def _pass(self, records: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The forward and backward pass.

        Returns:
            relu(h), (n, k); one over the norm of the feature, (n,); and the gradient at each unit,
            divided by the norm, (n, k).
        """
        hidden = torch.addmm(self._bias, records, self._weight.T).relu_()
        active = hidden.sign()
        scale = self._norm(active, hidden, records.square().sum(dim=1)).reciprocal()
        return hidden, scale, active * self._readout * scale[:, None]

    def similarity_by_column(
        self, records: Tensor, others: Tensor, blocks: Sequence[Block]
    ) -> Tensor:
        """How much more similar the features of two rows are if they share one column.

        Args:
            records: x, (n, record size), values 0..1.
            others: y, likewise; y_j is y with column j of x.
            blocks: the columns.

        Returns:
            The mean of <phi(x), phi(y_j)> - <phi(x), phi(y)>, (blocks,).
        """
        hidden, scale, deltas = self._pass(records)
        sums, square = torch.addmm(self._bias, others, self._weight.T), others.square().sum(dim=1)
        product = torch.linalg.vecdot(records, others)

        def mean(sums: Tensor, square: Tensor, product: Tensor) -> Tensor:
            other = sums.relu()
            active = other.sign()
            other_scale = self._norm(active, other, square).reciprocal()
            inner = torch.linalg.vecdot(deltas, active * self._readout) * other_scale
            outer = scale * other_scale * (torch.linalg.vecdot(hidden, other) + 1)
            found: Tensor = (inner * (product + 1) + self._outputs * outer).mean()
            return found

        found = []
        for block in blocks:
            of_record, of_other = records[:, block.place], others[:, block.place]
            change = of_record - of_other
            with_column = torch.addmm(sums, change, self._weight[:, block.place].T)
            longer = (change * (of_record + of_other)).sum(dim=1)
            nearer = torch.linalg.vecdot(of_record, change)
            found.append(mean(with_column, square + longer, product + nearer))
        return torch.stack(found) - mean(sums, square, product)

    def swap(
        self,
        records: Tensor,
        theta: Tensor,
        blocks: Sequence[Block],
        random: np.random.Generator,
        energies: Sequence[Energy] = (),
        each: Each = map,
    ) -> None:
        """Pair rows at random, and try to swap the values of each column in turn.

        Args:
            records: (n, record size), values 0..1, changed in place.
            theta: (d,).
            blocks: columns whose values are swapped.
            random: pairs the rows, and decides.
            energies: further parts of the energy.
            each: distributes the work; the result does not depend on how.
        """
        form = self._along(theta)
        order = torch.from_numpy(random.permutation(len(records))[: len(records) // 2 * 2])
        parts = order.split(2 * _PAIRS)

        def exchange(rows: Tensor, draws: np.random.Generator) -> None:
            here = records.index_select(0, rows)
            form.swap(here, blocks, draws, energies)
            records.index_copy_(0, rows, here)

        _share(exchange, parts, random, each)

    def swap_with(
        self,
        records: Tensor,
        others: Tensor,
        theta: Tensor,
        blocks: Sequence[Block],
        random: np.random.Generator,
        energies: Sequence[Energy] = (),
        each: Each = map,
    ) -> None:
        """Try to swap values of each row with some other row, which is then restored.

        Args are those of `swap`, and `others`: rows that values are taken from, (k, record size).
        """
        form = self._along(theta)

        def lent(rows: Tensor, draws: np.random.Generator) -> None:
            chosen = torch.from_numpy(draws.integers(len(others), size=len(rows)))
            both = torch.cat([rows, others[chosen]])
            form.swap(both, blocks, draws, energies)
            rows.copy_(both[: len(rows)])

        _share(lent, records.split(_PAIRS), random, each)

    def resample(
        self,
        records: Tensor,
        others: Tensor,
        theta: Tensor,
        blocks: Sequence[Block],
        random: np.random.Generator,
        tables: Counts | None = None,
        each: Each = map,
    ) -> None:
        """Try to replace each row's value in each column by that of some other row.

        Args are those of `swap_with`, and `tables`: energy that the other rows follow; None if
        their columns are independent.
        """
        form = self._along(theta)

        def replaced(rows: Tensor, draws: np.random.Generator) -> None:
            form.resample(rows, others, blocks, draws, tables)

        _share(replaced, records.split(2 * _PAIRS), random, each)

    def _along(self, theta: Tensor) -> _LinearForm:
        """<theta, phi(x)> as a function of x."""
        parts = {name: theta[place] for name, place in self._places.items()}
        root = self._outputs**0.5
        outer = root * parts["readout"]  # the coefficient of relu(h), which is 1[h > 0] h
        towards = parts["weight_1"].view_as(self._weight) * self._readout[:, None]
        towards += outer[:, None] * self._weight
        constants = parts["bias_1"] * self._readout + outer * self._bias
        return _LinearForm(
            weights=torch.cat([self._weight, towards]).T.contiguous(),
            biases=torch.cat([self._bias, constants]),
            constant=root * parts["output_bias"],
            norm=self._norm,
        )

    def _norm(self, active: Tensor, hidden: Tensor, square: Tensor) -> Tensor:
        """Norm of the feature before normalisation, (n,)."""
        outer = torch.linalg.vecdot(hidden, hidden)
        inner = active @ self._readout.square()
        norm: Tensor = (inner * (square + 1) + self._outputs * (outer + 1)).sqrt()
        return norm


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


def exchange_rows(one: Tensor, other: Tensor, rows: Tensor) -> None:
    """Swap some rows, int64 (m,), of two tensors, in place."""
    given = one.index_select(0, rows)
    _replace(rows, rows, (other, one))
    other.index_copy_(0, rows, given)


def _replace(rows: Tensor, by: Tensor, *pairs: tuple[Tensor, Tensor]) -> None:
    """Copy some rows of each first tensor to rows of the second: indexing takes twice as long."""
    for new, old in pairs:
        old.index_copy_(0, rows, new.index_select(0, by))


@dataclass(frozen=True, eq=False)
class _LinearForm:
    """<theta, phi(x)> for a given theta, updated as single columns of x change.

    Attributes:
        weights: of h, and of what each unit adds to <theta, phi(x)> if h > 0, before normalisation,
            float32 (record size, 2 k).
        biases: likewise, (2 k,).
        constant: what is added in any case, a scalar.
        norm: norm of phi(x) before normalisation, from 1[h > 0], relu(h) and |x|^2.
    """

    weights: Tensor
    biases: Tensor
    constant: Tensor
    norm: Callable[[Tensor, Tensor, Tensor], Tensor]

    def __call__(self, records: Tensor) -> Tensor:
        """Its value for records (n, record size), (n,)."""
        sums = torch.addmm(self.biases, records, self.weights)
        return self._of(sums, torch.linalg.vecdot(records, records))

    def swap(
        self,
        records: Tensor,
        blocks: Sequence[Block],
        random: np.random.Generator,
        energies: Sequence[Energy] = (),
    ) -> None:
        """Swap values between the first half of the rows and the second, in place.

        Pairs of rows that have the same value are left out: in many columns, most have.
        """
        further = [energy.swap_gains(records) for energy in energies]
        half = len(records) // 2
        sums = torch.addmm(self.biases, records, self.weights)
        square = torch.linalg.vecdot(records, records)
        value = self._of(sums, square)
        for block in blocks:
            place = block.place
            one, other = records[:half, place], records[half:, place]
            pairs, change, longer = _differences(one, other)
            rows = torch.cat([pairs, pairs + half])
            new_square = square.index_select(0, rows) + torch.cat([longer, -longer])
            difference = change @ self.weights[place]
            new_sums = sums.index_select(0, rows)
            new_sums[: len(pairs)] += difference
            new_sums[len(pairs) :] -= difference
            new_value = self._of(new_sums, new_square)
            gain = (new_value - value.index_select(0, rows)).view(2, len(pairs)).sum(dim=0)
            gain = gain + sum(gains.gain(block, pairs) for gains in further)
            taken = _accepted(gain, random)
            chosen, moved = pairs[taken], torch.cat([taken, taken + len(pairs)])
            exchange_rows(one, other, chosen)
            new = (new_sums, sums), (new_square, square), (new_value, value)
            _replace(rows[moved], moved, *new)
            for gains in further:
                gains.accept(block, chosen)

    def resample(
        self,
        records: Tensor,
        others: Tensor,
        blocks: Sequence[Block],
        random: np.random.Generator,
        tables: Counts | None,
    ) -> None:
        """Replace whole rows by others, and then values of single columns, in place."""
        sums = torch.addmm(self.biases, records, self.weights)
        square = torch.linalg.vecdot(records, records)
        value = self._of(sums, square)
        # The others follow the tables' distribution, so its energy cancels when whole rows are
        # taken.
        new = others[torch.from_numpy(random.integers(len(others), size=len(records)))]
        new_sums = torch.addmm(self.biases, new, self.weights)
        new_square = torch.linalg.vecdot(new, new)
        new_value = self._of(new_sums, new_square)
        chosen = _accepted(new_value - value, random)
        whole = (new, records), (new_sums, sums), (new_square, square), (new_value, value)
        _replace(chosen, chosen, *whole)
        copies = None if tables is None else tables.copy_gains(records, others)
        for block in blocks:
            place = block.place
            source = torch.from_numpy(random.integers(len(others), size=len(records)))
            old, new = records[:, place], others[source, place]
            rows, change, longer = _differences(old, new)
            source = source[rows]
            new_square = square.index_select(0, rows) + longer
            new_sums = sums.index_select(0, rows)
            new_sums += change @ self.weights[place]
            new_value = self._of(new_sums, new_square)
            gain = new_value - value.index_select(0, rows)
            if copies is not None:
                gain += copies.gain(block, rows, source)
            taken = _accepted(gain, random)
            chosen = rows[taken]
            _replace(chosen, chosen, (new, old))
            _replace(chosen, taken, (new_sums, sums), (new_square, square), (new_value, value))
            if copies is not None:
                copies.accept(block, chosen, source[taken])

    def _of(self, sums: Tensor, square: Tensor) -> Tensor:
        hidden, towards = sums.chunk(2, dim=1)
        hidden = hidden.relu()
        active = hidden.sign()
        found = torch.linalg.vecdot(active, towards) + self.constant
        value: Tensor = found / self.norm(active, hidden, square)
        return value
