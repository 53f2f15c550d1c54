"""Class sums of feature vectors in exact integer arithmetic.

Every record's feature is rounded to integers by a rule that looks at that record alone, and these
integers are then added without any error. So the sum does not depend on the order of records, on
how they are split into chunks, on the number of threads, or on the processor; sums of disjoint
sets add up; and one record's contribution has the same bits in every data set that holds it.

That last property is what the guarantee needs. In ordinary floating point a record's hidden
activation may change in its last bit with the record's place in a chunk, which can switch a ReLU
on or off and so move its feature by far more than rounding: with one record removed, all later
ones shift, and no bound on "rounding" would cover the sum of their jumps.

How it is exact. A float64 holds every integer up to 2^53, and a sum of integers below that has no
rounding error, in any order:

- hidden activations: weights are multiples of 2^-24 and records are integers, so A x needs about
  24 + 8 + log2(inputs) bits (checked when the map is built);
- ||delta||^2: the readout is on a grid of 2^-20 (checked likewise);
- ||a||^2 is not exact, but is added in one fixed order by elementwise operations, which IEEE 754
  defines to the last bit; so are the square root and the division;
- class sums: delta / ||.|| is cut to integers q, and the products q x of integers are summed.

The unit g of these integers is that of `grid.Grid`: q = trunc(2^s delta / ||.||), and q times an
integer record is the feature in units of g = 1 / (levels 2^s).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..common.ntk import EXACT, OneHiddenLayerNTK
from .exact_front import ExactFront
from .grid import Grid

LARGEST_CHUNK: Final = 4096
_SAFETY: Final = 1.0 - 2.0**-40
"""Feature vectors are shortened by this factor before they are cut to integers. The computed
norm is off by less than (log2(width) + 10) 2^-53 of itself, far less than 2^-40."""


@dataclass(frozen=True, eq=False)
class IntegerFeatures:
    """Features of a batch in grid units; an outer product stays a pair of factors.

    Attributes:
        blocks: where each parameter's gradient lies in a feature.
        levels: largest integer in `inputs`.
        inputs: float64 (b, inputs), integers 0..levels: what the network got.
        delta: float64 (b, width), integers below 2^s. Times the inputs: the gradient of the hidden
            weights; times levels: that of the hidden biases.
        readout: float64 (b, width), integers: the gradient of the output weights.
        output_bias: float64 (b,), integers: the gradient of the output biases.
    """

    blocks: Mapping[str, slice]
    levels: int
    inputs: Tensor
    delta: Tensor
    readout: Tensor
    output_bias: Tensor

    def norms(self) -> Tensor:
        """Norms in grid units, float64 (b,), off by a few units in the last place."""
        through_hidden = torch.linalg.vector_norm(self.delta, dim=1) * torch.hypot(
            torch.linalg.vector_norm(self.inputs, dim=1),
            torch.tensor(float(self.levels)).to(self.inputs),
        )
        rest = torch.hypot(torch.linalg.vector_norm(self.readout, dim=1), self.output_bias)
        return torch.hypot(through_hidden, rest)

    def add_to(self, column: Tensor, rows: slice) -> None:
        """Add the features of some records to a column of class sums, int64 (d,)."""
        blocks, delta, inputs = self.blocks, self.delta[rows], self.inputs[rows]
        hidden = column[blocks["hidden"]].view(delta.shape[1], inputs.shape[1])
        hidden += (delta.T @ inputs).to(torch.int64)
        column[blocks["bias"]] += delta.sum(dim=0).to(torch.int64) * self.levels
        column[blocks["readout"]] += self.readout[rows].to(torch.int64).sum(dim=0)
        column[blocks["output_bias"]] += self.output_bias[rows].to(torch.int64).sum(dim=0)


class FixedPointNTK:
    """`OneHiddenLayerNTK` with features in whole grid units, in float64 without rounding errors.

    Guarantee:
        The integer feature of a record, times g, is a function of the record's bytes, the weights
        and the grid alone, and its norm is at most 1: each coordinate is the exact feature
        shortened by 2^-40 (more than the norm's floating-point error) and cut towards zero, which
        never lengthens a vector. Signs are kept, so non-negativity of the map carries over.
        Assumes IEEE 754 double arithmetic and matrix products that only multiply and add (no
        Strassen-like algorithm), as those of torch on CPU and CUDA in float64 do.
        (docs/privacy.md, statement 3.)
    """

    def __init__(self, feature_map: OneHiddenLayerNTK, grid: Grid, device: torch.device) -> None:
        self.feature_map = feature_map
        self.grid = grid
        self._front = ExactFront(feature_map.front, feature_map.levels, device)

        def exact(weight: NDArray[np.float32]) -> Tensor:
            return torch.as_tensor(weight, dtype=torch.float64, device=device)

        self._hidden = exact(feature_map.hidden).T.contiguous()
        self._bias = exact(feature_map.bias) * feature_map.levels
        self._readout = exact(feature_map.readout)
        self._squared_readout = self._readout * self._readout

    @property
    def chunk_size(self) -> int:
        """How many records may be summed in float64 before a sum could pass 2^53.

        A coordinate of the hidden weights is |v_j x| / ||.|| with x <= 1, and
        ||.||^2 >= v_j^2 (x^2 + 1) + K, so it is at most |v_j| / sqrt(2 v_j^2 + K).
        """
        squared = float(self._squared_readout.max())
        largest = math.sqrt(squared / (2 * squared + self.feature_map.outputs))
        return max(1, min(LARGEST_CHUNK, int(EXACT / (self.grid.units_per_one * largest))))

    def features(self, records: Tensor) -> IntegerFeatures:
        """Features of a batch.

        Args:
            records: float64 (b, record size), integers 0..levels.
        """
        inputs = self._front(records)
        levels, outputs = self.grid.levels, self.feature_map.outputs
        # In units of 1/levels, exact: every term is a multiple of 2^-24.
        activation = (inputs @ self._hidden).add_(self._bias)
        active = (activation > 0).to(torch.float64)
        activation.clamp_(min=0.0)

        squared_input = (inputs * inputs).sum(dim=1) / levels**2
        squared_delta = active @ self._squared_readout
        squared_activation = _sum_in_fixed_order(activation * activation) / levels**2
        squared_norm = squared_delta * (squared_input + 1.0)
        squared_norm = squared_norm + (squared_activation + 1.0) * outputs

        one = _SAFETY / squared_norm.sqrt()
        delta = active.mul_(self._readout).mul_((one * 2.0**self.grid.shift)[:, None]).trunc_()
        output_bias = one * (math.sqrt(outputs) * self.grid.units_per_one)
        readout = activation.mul_((output_bias / levels)[:, None]).trunc_()
        return IntegerFeatures(
            self.feature_map.blocks, levels, inputs, delta, readout, output_bias.trunc()
        )


def _sum_in_fixed_order(values: Tensor) -> Tensor:
    """Sum over the last dimension by halving it: elementwise, so every bit is defined.

    Args:
        values: (b, k), overwritten.
    """
    width = values.shape[1]
    while width > 1:
        kept = (width + 1) // 2
        values[:, : width - kept] += values[:, kept:width]
        width = kept
    return values[:, 0]
