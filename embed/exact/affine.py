"""Arithmetic in float64 whose every bit is defined, whatever the order and the company of records.

In ordinary floating point a sum's last bit depends on the order of its terms, and a library
chooses that order by the size of the batch, the record's place in it and the number of threads. A
hidden activation could then switch a ReLU on or off with its place in a chunk, and so move its
record's feature by far more than rounding: with one record removed, all later ones shift, and no
bound on "rounding" would cover the sum of their jumps.

Here a value is a function of its own record's bytes and of the weights. A float64 holds every
integer up to 2^53, and a sum of integers below that has no rounding error in any order. So weights
lie on a grid of 2^-24; records are whole numbers; values inside the network are rounded to
so many binary digits of the record's largest one that their sums with the weights stay exact: at
least 28, and 32 to 36 in networks of usual widths. What is added up otherwise is
added by elementwise operations in one fixed order, which IEEE 754 defines to the last bit, as it
does products, quotients and square roots (`dpntk.common.numerics.square_root`). Instead of dividing
by a constant, values are multiplied by its reciprocal: CUDA does so whatever is asked for.

Assumed: matrix products and convolutions in float64 only multiply and add (no Strassen-like or
Fourier algorithm), as those of torch do on CPU and, without cuDNN, on CUDA.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ...common.features.ntk.layers import Convolution
from ...common.features.ntk.map import EXACT, HIDDEN_GRID, AffineLayer, largest_sum


def sum_in_fixed_order(values: Tensor) -> Tensor:
    """Sum over the last dimension by halving it: elementwise, so every bit is defined.

    Args:
        values: float64 (..., k).
    """
    return _halve(values.clone())


def sum_of_squares(values: Tensor) -> Tensor:
    """Squared norms of a batch, float64 (b, ...) to (b,), likewise."""
    return _halve((values * values).flatten(1))


def _halve(values: Tensor) -> Tensor:
    width = values.shape[-1]
    while width > 1:
        kept = (width + 1) // 2
        values[..., : width - kept] += values[..., kept:width]
        width = kept
    return values[..., 0]


def round_to_digits(values: Tensor, digits: int) -> Tensor:
    """Round a batch to few binary digits.

    Args:
        values: float64 (b, ...).
        digits: how many.

    Returns:
        Like `values`. A record's entries are whole multiples, at most 2^digits, of a power of two
        that depends on that record alone: the first one above its largest value, by 2^digits.
    """
    flat = values.flatten(1)  # amax and amin are several times faster than aminmax
    largest = torch.maximum(flat.amax(dim=1), -flat.amin(dim=1))
    mantissa, _ = torch.frexp(largest)
    above = torch.where(largest > 0, largest / mantissa, 1.0)  # a power of two, exactly
    # Adding so large a number rounds to multiples of its last binary digit; its 1.5 leaves room
    # for either sign.
    rounder = (above * (1.5 * 2.0 ** (52 - digits))).view(-1, *[1] * (values.dim() - 1))
    return (values + rounder).sub_(rounder)


class ExactAffine:
    """A layer with weights.

    Args:
        layer: the layer.
        levels: of the records, if this is the first layer, which gets whole numbers 0..levels;
            None for a layer inside the network.
        device: where records are.
    """

    def __init__(self, layer: AffineLayer, levels: int | None, device: torch.device) -> None:
        weight = torch.as_tensor(layer.weight, dtype=torch.float64, device=device)
        bias = torch.as_tensor(layer.bias, dtype=torch.float64, device=device)
        self._levels = levels
        self.is_convolution = isinstance(layer.kind, Convolution)
        if self.is_convolution:
            # One dimension is two of which the first is 1.
            self._weight = weight.view(*weight.shape[:2], -1, weight.shape[-1])
            self._bias = bias.view(-1, *[1] * (len(layer.shape) - 1))
        else:
            self._weight, self._bias = weight, bias
        reach = largest_sum(layer.weight, both_ways=levels is None) / HIDDEN_GRID
        self._digits = int(math.log2(EXACT / reach))

    def forward(self, values: Tensor) -> Tensor:
        """(b, *shape before) to (b, *shape after)."""
        if self._levels is not None:  # whole numbers: exact as they are
            return self._apply(values).add_(self._bias * self._levels).mul_(1.0 / self._levels)
        return self._apply(round_to_digits(values, self._digits)).add_(self._bias)

    def backward(self, delta: Tensor) -> Tensor:
        """(b, *shape after) to (b, *shape before)."""
        return self._apply_back(round_to_digits(delta, self._digits))

    def _apply(self, values: Tensor) -> Tensor:
        if not self.is_convolution:
            return values @ self._weight.T
        return self._as_images(torch.nn.functional.conv2d, values)

    def _apply_back(self, delta: Tensor) -> Tensor:
        if not self.is_convolution:
            return delta @ self._weight
        return self._as_images(torch.nn.functional.conv_transpose2d, delta)

    def _as_images(self, function: Callable[..., Tensor], values: Tensor) -> Tensor:
        padding = tuple(side // 2 for side in self._weight.shape[2:])
        images = values.view(*values.shape[:2], -1, values.shape[-1])
        # A GPU's library may convolve by Fourier transforms, which are not exact.
        with torch.backends.cudnn.flags(enabled=False):
            made = function(images, self._weight, padding=padding)
        return made.view(len(values), -1, *values.shape[2:])

    def gradient(self, values: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of a convolution's weights and biases, written out for every record.

        Args:
            values: what the layer got, (b, *shape before).
            delta: (b, *shape after).

        Returns:
            (b, weights) and (b, outputs).
        """
        deltas = delta.flatten(2)
        # Both factors in two slices each, so that sums of products over the places are exact; the
        # product of the smaller slices is below what slices leave out.
        digits = (53 - math.ceil(math.log2(deltas.shape[2]))) // 2
        larger = round_to_digits(deltas, digits)
        smaller = round_to_digits(deltas - larger, digits)
        if self._levels is not None:  # whole numbers below 2^digits
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
        """What the kernel sees at every place, (b, channels x kernel, places)."""
        size = self._weight.shape[2:]
        images = values.view(*values.shape[:2], -1, values.shape[-1])
        padding = tuple(side // 2 for side in size)
        return torch.nn.functional.unfold(images, tuple(size), padding=padding)
