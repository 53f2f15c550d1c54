"""Float64 arithmetic whose every bit is defined, for any order and batching of records.

In ordinary floating point, a sum's last bit depends on the order of its terms, and a library
chooses that order by the size of the batch, the record's place in it and the number of threads. A
hidden activation could then switch a ReLU on or off depending on its place in a chunk, and so move
its record's feature by far more than rounding. If one record is removed, all later ones shift, and
no bound on "rounding" would cover the sum of their jumps.

Here a value is a function of its own record's bytes and of the weights. A float64 holds every
integer up to 2^53, and a sum of integers below that has no rounding error in any order. So weights
lie on a grid, of 2^-24 in the first layer and of 2^-16 in later ones, and records are integers.
Values inside the network are rounded to so few binary digits of the record's largest one that their
sums with the weights stay exact: to at least 28 digits, and to 32 to 36 in networks of usual
widths. All other sums use elementwise operations in one fixed order, which IEEE 754 defines to the
last bit, as it does products, quotients and square roots (`dpntk.common.numerics.square_root`).
Instead of dividing by a constant, values are multiplied by its reciprocal, because CUDA does so
anyway.

It is assumed that float64 matrix products only multiply and add (no Strassen-like algorithm, and no
emulation by shorter numbers), as torch's do on CPU and CUDA. Convolutions are written as such
products, because libraries may compute theirs by Fourier transforms.
"""

from __future__ import annotations

import torch
from torch import Tensor


def sum_in_fixed_order(values: Tensor) -> Tensor:
    """Sum over the last dimension by halving it: elementwise, so every bit is defined.

    Args:
        values: float64 (..., k).
    """
    return _halve(values.clone())


def sum_of_squares(values: Tensor) -> Tensor:
    """Squared norms of a batch, float64 (b, ...) to (b,), also summed in a fixed order."""
    return _halve((values * values).flatten(1))


def _halve(values: Tensor) -> Tensor:
    width = values.shape[-1]
    while width > 1:
        kept = (width + 1) // 2
        values[..., : width - kept].add_(values[..., kept:width])  # += would copy it onto itself
        width = kept
    return values[..., 0]


def first_largest(values: Tensor) -> Tensor:
    """The index of each row's largest number, and of the first one if there are several.

    `argmax` does not specify which one.

    Args:
        values: int64 (b, k), so small that k times a value fits int64.

    Returns:
        int64 (b,).
    """
    count = values.shape[1]
    before: Tensor = torch.arange(count - 1, -1, -1, device=values.device)
    return (values * count + before).argmax(dim=1)


def round_to_digits(values: Tensor, digits: int) -> Tensor:
    """Round a batch to few binary digits.

    Args:
        values: float64 (b, ...).
        digits: the number of binary digits.

    Returns:
        Like `values`. A record's entries are multiples, by at most 2^digits, of a power of two that
        depends on that record alone: the first power above its largest value, divided by 2^digits.
    """
    flat = values.flatten(1)  # amax and amin are several times faster than aminmax
    largest = torch.maximum(flat.amax(dim=1), -flat.amin(dim=1))
    mantissa, _ = torch.frexp(largest)
    above = torch.where(largest > 0, largest / mantissa, 1.0)  # a power of two, exactly
    # Adding such a large number rounds to multiples of its last binary digit; the factor 1.5 leaves
    # room for either sign.
    rounder = (above * (1.5 * 2.0 ** (52 - digits))).view(-1, *[1] * (values.dim() - 1))
    return (values + rounder).sub_(rounder)
