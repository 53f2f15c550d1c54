"""Tangent features of one hidden layer of ReLU units, column by column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from ....common.features.base import FeatureMap
from ....common.features.joint import JointFeatures
from ....common.features.ntk.layers import Activation, Linear
from ....common.features.ntk.map import TangentFeatures
from ....common.runtime.threads import Each
from ....common.schema.encoding import Block

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
        return torch.cat(list(each(self.linear_form(theta), records.split(_BATCH))))

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

    def linear_form(self, theta: Tensor) -> LinearForm:
        """<theta, phi(x)> as a function of x."""
        parts = {name: theta[place] for name, place in self._places.items()}
        root = self._outputs**0.5
        outer = root * parts["readout"]  # the coefficient of relu(h), which is 1[h > 0] h
        towards = parts["weight_1"].view_as(self._weight) * self._readout[:, None]
        towards += outer[:, None] * self._weight
        constants = parts["bias_1"] * self._readout + outer * self._bias
        return LinearForm(
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


@dataclass(frozen=True, eq=False)
class LinearForm:
    """<theta, phi(x)> for a given theta, as a function of sums over columns of x.

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
        return self.value(self.sums(records), torch.linalg.vecdot(records, records))

    def sums(self, records: Tensor) -> Tensor:
        """What a value follows from besides |x|^2, (n, 2 k); a column adds x @ `weights` there."""
        return torch.addmm(self.biases, records, self.weights)

    def value(self, sums: Tensor, square: Tensor) -> Tensor:
        """Its value, (n,), from `sums` and the squared norms |x|^2, (n,)."""
        hidden, towards = sums.chunk(2, dim=1)
        hidden = hidden.relu()
        active = hidden.sign()
        found = torch.linalg.vecdot(active, towards) + self.constant
        value: Tensor = found / self.norm(active, hidden, square)
        return value
