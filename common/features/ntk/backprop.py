"""One forward and one backward pass through a network, which keep the factors of gradients.

The gradient of a linear layer's weights at one record is the outer product of delta, the gradient
with respect to the layer's outputs, and the layer's inputs; that of a convolution is a sum of such
products over positions. So the inputs and deltas of the layers with weights suffice, and no
per-record array of the weights' size is needed (Goodfellow 2015, "Efficient Per-Example Gradient
Computations").

The pass is written once and runs in two arithmetics: exact, for sums over sensitive records
(`dpntk.embed.exact.tangent`), and in floating point, for generated ones
(`dpntk.generate.kernels.tangent`). They differ in how layers with weights and sums are computed;
everything else here is elementwise and has the same bits in every batch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ...numerics.square_root import square_root
from .layers import (
    LAYER_NORM_EPSILON,
    LEAKY_SLOPE,
    Activation,
    Affine,
    AveragePool,
    Flatten,
    Layer,
    LayerNorm,
)

Backward = Callable[[Tensor], Tensor]
Total = Callable[[Tensor], Tensor]
"""A function that sums over the last dimension."""


class AffineMap(Protocol):
    """A layer with weights, in some arithmetic."""

    def forward(self, values: Tensor) -> Tensor:
        """Map inputs (b, *shape before) to outputs (b, *shape after)."""
        ...

    def backward(self, delta: Tensor) -> Tensor:
        """The gradient with respect to the inputs, from that with respect to the outputs."""
        ...


@dataclass(frozen=True, eq=False)
class Pass:
    """The results of one forward and backward pass, for every record.

    Attributes:
        inputs: the inputs of each layer with weights, (b, *shape before).
        deltas: the gradients with respect to its outputs, (b, *shape after).
        last: the last layer's inputs, (b, values), which are the gradient of its weights.
    """

    inputs: tuple[Tensor, ...]
    deltas: tuple[Tensor, ...]
    last: Tensor


def forward_and_back(
    layers: Sequence[Layer],
    affine: Sequence[AffineMap],
    readout: Tensor,
    values: Tensor,
    total: Total,
) -> Pass:
    """Pass a batch forward, and the gradient of the sum of outputs back through a network.

    Args:
        layers: the network without its last layer.
        affine: the layers with weights, in some arithmetic.
        readout: v, the sum of the last layer's weights over the outputs.
        values: (b, *shape).
        total: sums, in the same arithmetic.
    """
    inputs: list[Tensor] = []
    steps: list[Backward | None] = []  # None marks a layer with weights
    for layer in layers:
        if isinstance(layer, Affine):
            inputs.append(values)
            values = affine[len(inputs) - 1].forward(values)
            steps.append(None)
        else:
            values, step = _without_weights(layer, values, total)
            steps.append(step)
    delta = readout.expand_as(values)
    deltas: list[Tensor] = []
    for back in reversed(steps):
        if back is not None:
            delta = back(delta)
            continue
        deltas.append(delta)
        if len(deltas) == len(inputs):
            break  # the gradient with respect to the record is not needed
        delta = affine[len(inputs) - len(deltas)].backward(delta)
    return Pass(tuple(inputs), tuple(reversed(deltas)), values)


def _without_weights(layer: Layer, values: Tensor, total: Total) -> tuple[Tensor, Backward]:
    match layer:
        case Activation(function):
            after, slope = _activate(function, values)
            return after, lambda delta: delta * slope
        case AveragePool(size):
            return _pool(values, size), lambda delta: _spread(delta, values.shape, size)
        case Flatten():
            return values.flatten(1), lambda delta: delta.reshape(values.shape)
        case LayerNorm():
            return _normalise(values, total)
    raise TypeError(f"{layer!r} has weights")


def _activate(function: str, values: Tensor) -> tuple[Tensor, Tensor]:
    """The function's value and its slope; at a kink, the slope that torch takes."""
    match function:
        case "relu":
            return values.clamp(min=0.0), (values > 0).to(values.dtype)
        case "leaky_relu":
            slope = torch.where(values > 0, 1.0, LEAKY_SLOPE).to(values.dtype)
            return values * slope, slope
        case "relu6":
            return values.clamp(0.0, 6.0), ((values > 0) & (values < 6)).to(values.dtype)
        case "softsign":
            size = values.abs() + 1.0
            return values / size, 1.0 / (size * size)
    raise TypeError(f"no activation {function!r} is known")


def _pool(values: Tensor, size: int) -> Tensor:
    sides = values.shape[2:]
    total = torch.zeros((), dtype=values.dtype, device=values.device)
    for offsets in itertools.product(range(size), repeat=len(sides)):
        places = tuple(
            slice(offset, side // size * size, size)
            for offset, side in zip(offsets, sides, strict=True)
        )
        total = total + values[(slice(None), slice(None), *places)]
    return total * (1.0 / float(size ** len(sides)))


def _spread(delta: Tensor, shape: torch.Size, size: int) -> Tensor:
    sides = shape[2:]
    delta = delta * (1.0 / float(size ** len(sides)))
    padding: list[int] = []
    for dimension, side in enumerate(sides, start=2):
        delta = delta.repeat_interleave(size, dim=dimension)
        padding = [0, side - delta.shape[dimension], *padding]
    return torch.nn.functional.pad(delta, padding)


def _normalise(values: Tensor, total: Total) -> tuple[Tensor, Backward]:
    count = math.prod(values.shape[1:])

    def mean(some: Tensor) -> Tensor:
        return (total(some.flatten(1)) * (1.0 / count)).view(-1, *[1] * (values.dim() - 1))

    centred = values - mean(values)
    scale = 1.0 / square_root(mean(centred * centred) + LAYER_NORM_EPSILON)
    after = centred * scale
    return after, lambda delta: scale * (delta - mean(delta) - after * mean(delta * after))
