"""One step of the mechanism: the only place where a batch of records becomes noisy sums.

A record's share in the sums (`gradients`, `class_means`) is made of products of two vectors. The
share is clipped, its vectors are rounded to integers, and only these are multiplied and added up.
Sums of integers have no rounding error and do not depend on the order. In units of L / 2^40, where
L is the clip norm, and with the clipping factor w, the integers are

    round(2^27 w a / L) (2^13 x)^T + round(2^27 w b / L) (2^13 y)^T,
    round(2^40 w h / L),      round(2^20 w s / L) (2^20 t)^T.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...common.errors import BudgetError
from ...common.numerics.exact import sum_in_fixed_order, sum_of_squares
from ...common.numerics.square_root import square_root
from ..file.distilled import UNITS_OF_CLIP_NORM, VALUE_LEVELS
from ..mechanism.discrete_gaussian import discrete_gaussian
from ..mechanism.gaussian import SMOOTHING
from ..mechanism.subsampled_gaussian import LARGEST_SAMPLED_MULTIPLIER
from .class_means import ClassMeans
from .gradients import DIRECTION, REST, Contributions, SupportLoss

PLACES: Final = 1 << 16
"""Support points are multiples of 1 divided by this."""
MOST_INPUTS: Final = 1 << 15
"""The most values in a record for which products of points are exact: 2^15 (8 2^16)^2 = 2^53."""
ONE: Final = UNITS_OF_CLIP_NORM
"""The clip norm in units of the integers that are added up: the sensitivity."""
MOST_RECORDS: Final = 1 << 21
"""The most records whose contributions and noise fit 62 bits."""
_LARGEST_COEFFICIENT: Final = 2.0**28
_LARGEST_VALUE: Final = 2.0**16
_ROUNDINGS: Final = 2.0**-51
"""More than what a term of a squared norm is off by, for each of its additions."""
_CHUNK: Final = 256
"""Records whose integers are added up in float64 at a time: 2^8 2^28 2^16 = 2^52."""

Integers = NDArray[np.int64]
Step = SupportLoss | ClassMeans
"""What a step sums, from public numbers alone."""


def noisy_sums(
    step: Step,
    records: NDArray[np.uint8],
    targets: Tensor,
    *,
    centre: int,
    clip_norm: float,
    noise_multiplier: float,
) -> NDArray[np.float64]:
    """The sums of clipped shares over a batch, with noise.

    Guarantee:
        For a batch drawn by `sampling.poisson_sample`, the result is that of the subsampled
        Gaussian mechanism with this noise multiplier for adding or removing a record: the sum of
        integers changes by a vector of norm at most `ONE` (`clipped_sum`), and gets discrete
        Gaussian noise of sigma^2 >= (noise_multiplier ONE)^2 + 9 on every coordinate, drawn
        independently from the operating system's randomness. (docs/privacy/proofs.md, statements 7,
        15 and 16.)

    Args:
        step: what is summed.
        records: uint8 (b, D); b may be 0.
        targets: float64 (b, c).
        centre: the pixel value that counts as 0.
        clip_norm: the norm to which longer shares are clipped.
        noise_multiplier: standard deviation of the noise at sensitivity 1.

    Returns:
        float64, all sums one after the other, over the clip norm.

    Raises:
        BudgetError: the noise does not fit 64 bits.
    """
    sigma = noise_sigma(noise_multiplier)
    sums = clipped_sum(step, records, targets, centre=centre, clip_norm=clip_norm)
    noisy: NDArray[np.float64] = (sums + discrete_gaussian(sums.size, sigma)) / ONE
    return noisy


def gradient_of(step: Step, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The gradient over a batch, from its noisy sums.

    Guarantee:
        It is a function of public numbers and of the sums.

    Args:
        step: what was summed.
        sums: from `noisy_sums`.

    Returns:
        float64 (m, D), over the clip norm.
    """
    parts = torch.from_numpy(sums).split([math.prod(shape) for shape in step.shapes])
    shaped = (part.view(shape) for part, shape in zip(parts, step.shapes, strict=True))
    return step.gradient(*shaped).numpy()


def exact_gradient(
    step: Step, records: NDArray[np.uint8], targets: Tensor, *, centre: int
) -> NDArray[np.float64]:
    """The gradient over a batch, without clipping or noise.

    Guarantee:
        None: it is NOT PRIVATE. Only a distillation that the owner asked for with `--not-private`
        uses it.

    Args:
        step: what is summed.
        records: uint8 (b, D); b may be 0.
        targets: float64 (b, c).
        centre: the pixel value that counts as 0.

    Returns:
        float64 (m, D). A record whose gradient is not finite contributes nothing, as with clipping.
    """
    total = torch.zeros_like(step.points)
    for start in range(0, len(records), _CHUNK):
        part = slice(start, start + _CHUNK)
        values = (torch.from_numpy(records[part]).double() - centre) / VALUE_LEVELS
        total += step.exact_gradient(values, targets[part])
    return total.numpy()


def noise_sigma(noise_multiplier: float) -> int:
    """The standard deviation of the noise on every coordinate, in whole units, rounded up.

    Raises:
        BudgetError: sums and noise together could leave 64 bits.
    """
    if not 0 < noise_multiplier <= LARGEST_SAMPLED_MULTIPLIER:
        raise BudgetError(f"a noise multiplier of {noise_multiplier:g} is out of range")
    return math.ceil(math.hypot(noise_multiplier * ONE, SMOOTHING) * (1 + 2.0**-40))


def clipped_sum(
    step: Step, records: NDArray[np.uint8], targets: Tensor, *, centre: int, clip_norm: float
) -> Integers:
    """The exact sum of clipped and rounded shares.

    Guarantee:
        Each record contributes one vector of integers. It is a function of the record and of public
        numbers alone, and its norm is at most `ONE`. (docs/privacy/proofs.md, statement 16.)

    Args:
        step: what is summed.
        records: uint8 (b, D).
        targets: float64 (b, c).
        centre: the pixel value that counts as 0.
        clip_norm: the norm to which longer shares are clipped.

    Returns:
        int64, all sums one after the other, in units of clip_norm / 2^40.
    """
    sums = [np.zeros(shape, dtype=np.int64) for shape in step.shapes]
    for start in range(0, len(records), _CHUNK):
        part = slice(start, start + _CHUNK)
        pixels = torch.from_numpy(records[part]).double() - centre
        if isinstance(step, ClassMeans):
            pairs = [[step.whole(pixels, targets[part], ONE)]]
        else:
            pairs = _whole(step.shares(pixels / VALUE_LEVELS, targets[part]), clip_norm)
        for total, products in zip(sums, pairs, strict=True):
            for left, right in products:
                # Integers below 2^53, exact in whatever order they are multiplied and added up.
                product = (left.T @ right).numpy()
                total += product.astype(np.int64).reshape(total.shape)
    return np.concatenate([total.ravel() for total in sums])


def _whole(found: Contributions, clip_norm: float) -> list[list[tuple[Tensor, Tensor]]]:
    """Clipped shares as products of integers: for each sum, pairs of (b, k) and (b, l)."""
    weights = clip_weights(found, clip_norm)[:, None]
    counts = weights > 0  # the others may not be finite

    def rounded(values: Tensor, unit: float) -> Tensor:
        return torch.where(counts, values * weights * (unit / clip_norm), 0.0).round_()

    def whole(values: Tensor, unit: int) -> Tensor:
        return torch.where(counts, values * unit, 0.0)

    coefficients = ONE / REST
    return [
        [
            (rounded(found.of_record, coefficients), whole(found.record, REST)),
            (rounded(found.of_rest, coefficients), whole(found.rest, REST)),
        ],
        [(torch.ones_like(weights), rounded(found.own, ONE))],
        [(rounded(found.seen, ONE / DIRECTION), whole(found.direction, DIRECTION))],
    ]


def clip_weights(found: Contributions, clip_norm: float) -> Tensor:
    """Factors by which shares are shortened so that they are at most `clip_norm` when rounded.

    Returns:
        float64 (b,). 0 for shares that are not finite, or whose numbers are so large that sums of
        integers would not be exact.
    """
    bound = _longest(found)
    room = (1.0 - _rounding(found) / ONE) * (1 - 2.0**-40)
    weights = (room * clip_norm / bound).clamp_max(1.0)
    largest = torch.maximum(found.of_record.abs().amax(1), found.of_rest.abs().amax(1))
    fits = weights * largest * (ONE / REST / clip_norm) <= _LARGEST_COEFFICIENT
    fits &= found.rest.abs().amax(1) * REST <= _LARGEST_VALUE  # NaN fails every comparison
    return torch.where(fits & torch.isfinite(bound) & (room > 0.5), weights, 0.0)


def _longest(found: Contributions) -> Tensor:
    """Upper bounds on the norms of shares, float64 (b,)."""
    a, b = found.of_record, found.of_rest
    of_record = sum_of_squares(a) * sum_of_squares(found.record)
    of_rest = sum_of_squares(b) * sum_of_squares(found.rest)
    both = sum_in_fixed_order(a * b) * sum_in_fixed_order(found.record * found.rest)
    others = sum_of_squares(found.own) + sum_of_squares(found.seen) * sum_of_squares(
        found.direction
    )
    times = a.shape[1] + found.own.shape[1] + found.seen.shape[1] + 64
    error = times * _ROUNDINGS * (of_record + of_rest + others)
    return square_root((of_record + of_rest + 2.0 * both + others + error).clamp_min(0.0))


def _rounding(found: Contributions) -> Tensor:
    """The most that rounding can lengthen a share, in units of the sums: half of one for each."""
    lengths = [
        square_root(sum_of_squares(each)) for each in (found.record, found.rest, found.direction)
    ]
    x, y, t = lengths
    rounding = math.sqrt(found.of_record.shape[1]) * REST * (x + y)
    rounding += math.sqrt(found.own.shape[1]) + math.sqrt(found.seen.shape[1]) * DIRECTION * t
    return rounding * (0.5 * (1 + 2.0**-20))
