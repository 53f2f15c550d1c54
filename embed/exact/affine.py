"""Layers with weights, in arithmetic that defines every bit (`dpntk.common.numerics.exact`)."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from ...common.features.ntk.layers import Convolution
from ...common.features.ntk.map import EXACT, HIDDEN_GRID, AffineLayer, largest_sum
from ...common.numerics.exact import round_to_digits, sum_in_fixed_order


class ExactAffine:
    """A layer with weights.

    A convolution, too, is computed as a matrix product: to use only multiplications and additions,
    libraries would have to convolve one record at a time.

    Args:
        layer: the layer.
        levels: the levels of the records, if this is the first layer, whose inputs are integers
            0..levels; None for a layer inside the network.
        device: where the records are.
    """

    def __init__(self, layer: AffineLayer, levels: int | None, device: torch.device) -> None:
        weight = torch.as_tensor(layer.weight, dtype=torch.float64, device=device)
        bias = torch.as_tensor(layer.bias, dtype=torch.float64, device=device)
        self._levels = levels
        self.is_convolution = isinstance(layer.kind, Convolution)
        if self.is_convolution:
            weight = _as_images(weight)
            self._size = tuple(weight.shape[2:])
            self._padding = tuple(side // 2 for side in self._size)
            bias = bias.view(-1, *[1] * (len(layer.shape) - 1))
        self._weight, self._bias = weight, bias
        reach = largest_sum(layer.weight, both_ways=levels is None) / HIDDEN_GRID
        self._digits = int(math.log2(EXACT / reach))

    def forward(self, values: Tensor) -> Tensor:
        """Map inputs (b, *shape before) to outputs (b, *shape after)."""
        if self._levels is not None:  # integers are exact as they are
            return self._apply(values).add_(self._bias * self._levels).mul_(1.0 / self._levels)
        return self._apply(round_to_digits(values, self._digits)).add_(self._bias)

    def backward(self, delta: Tensor) -> Tensor:
        """Map output gradients (b, *shape after) to input gradients (b, *shape before)."""
        return self._apply_back(round_to_digits(delta, self._digits))

    def _apply(self, values: Tensor) -> Tensor:
        if not self.is_convolution:
            return values @ self._weight.T
        made = self._weight.flatten(1) @ self._patches(values)
        return made.view(len(values), -1, *values.shape[2:])

    def _apply_back(self, delta: Tensor) -> Tensor:
        if not self.is_convolution:
            return delta @ self._weight
        at_places = self._weight.flatten(1).T @ delta.flatten(2)
        sides = _as_images(delta).shape[2:]
        made = functional.fold(at_places, sides, self._size, padding=self._padding)
        return made.view(len(delta), -1, *delta.shape[2:])

    def gradient(self, values: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
        """Per-record gradients of a convolution's weights and biases, written out.

        Args:
            values: the layer's inputs, (b, *shape before).
            delta: the gradients of its outputs, (b, *shape after).

        Returns:
            (b, weights) and (b, outputs).
        """
        deltas = delta.flatten(2)
        # Each factor is split into two slices, so that sums of products over the positions are
        # exact. The product of the two smaller slices is below what the slices leave out.
        digits = (53 - math.ceil(math.log2(deltas.shape[2]))) // 2
        larger = round_to_digits(deltas, digits)
        smaller = round_to_digits(deltas - larger, digits)
        if self._levels is not None:  # integers below 2^digits
            patches = self._patches(values).mT
            weights = larger @ patches + smaller @ patches
        else:
            rounded = round_to_digits(values, digits)
            patches = self._patches(rounded).mT
            rest = self._patches(round_to_digits(values - rounded, digits)).mT
            weights = larger @ rest + smaller @ patches + larger @ patches
        weights = weights.flatten(1)
        if self._levels is not None:
            weights = weights * (1.0 / self._levels)
        return weights, sum_in_fixed_order(deltas)

    def _patches(self, values: Tensor) -> Tensor:
        """The patch under the kernel at every position, (b, channels x kernel, positions)."""
        (high, wide), (above, before) = self._size, self._padding
        images = functional.pad(_as_images(values), (before, before, above, above))
        windows = images.unfold(2, high, 1).unfold(3, wide, 1)
        return windows.permute(0, 1, 4, 5, 2, 3).flatten(1, 3).flatten(2)


def _as_images(values: Tensor) -> Tensor:
    """Treat one spatial dimension as two, the first of size 1."""
    return values.view(*values.shape[:2], -1, values.shape[-1])
