"""One step of the mechanism: the only place where a batch of records becomes a noisy gradient.

The gradient of a record is c_a x + sum_j E_aj X_j (`gradients`). It is clipped, its coefficients
are rounded to integers, and only these are added up. Records and support points are integers too
(in units of 2^-8 and of 2^-16), so a record's contribution is a vector of integers:

    F_a = 2^8 round(w c_a / h) (2^8 x) + sum_j round(w E_aj / h) (2^16 X_j),    h = L / 2^24,

in units of L / 2^40, where L is the clip norm. Sums of integers have no rounding error and do not
depend on the order.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...common.arguments import argument
from ...common.errors import BudgetError
from ...common.numerics.square_root import square_root
from ..file.distilled import UNITS_OF_CLIP_NORM, VALUE_LEVELS
from ..mechanism.discrete_gaussian import discrete_gaussian
from ..mechanism.gaussian import SMOOTHING
from ..mechanism.subsampled_gaussian import LARGEST_MULTIPLIER
from .gradients import Coefficients, SupportLoss

LEVELS: Final = VALUE_LEVELS
"""Records are pixels divided by this: a power of two, so that nothing is rounded."""
PLACES: Final = 1 << 16
"""Support points are multiples of 1 divided by this."""
MOST_INPUTS: Final = 1 << 15
"""The most values in a record for which products of points are exact: 2^15 (8 2^16)^2 = 2^53."""
ONE: Final = UNITS_OF_CLIP_NORM
"""The clip norm in units of the integers that are added up: the sensitivity."""
MOST_RECORDS: Final = 1 << 21
"""The most records whose contributions and noise fit 62 bits."""
_COEFFICIENTS: Final = 1 << 24
_LARGEST_OF_RECORD: Final = 2.0**34
_LARGEST_OF_POINTS: Final = 2.0**42
_ROUGH: Final = 2.0**-8
"""The largest error of a squared norm, relative to it, that need not be made smaller."""
_CHUNK: Final = 512
"""Records whose integers are added up in float64 at a time."""
_TOGETHER: Final = 64
"""Records whose products of two coefficients are computed at a time."""
_CACHED: Final = 1 << 16
"""Numbers that are processed at a time, so that they stay in a processor's cache."""
_BATCH: Final = 2048
"""Records whose gradients are in memory at a time."""


def noisy_gradient(
    loss: SupportLoss,
    records: NDArray[np.uint8],
    targets: Tensor,
    *,
    centre: int,
    clip_norm: float,
    noise_multiplier: float,
) -> NDArray[np.float64]:
    """The sum of clipped gradients over a batch, with noise.

    Guarantee:
        For a batch drawn by `sampling.poisson_sample`, the result is that of the subsampled
        Gaussian mechanism with this noise multiplier for adding or removing a record: the sum of
        integers changes by a vector of norm at most `ONE` (`clipped_sum`), and gets discrete
        Gaussian noise of sigma^2 >= (noise_multiplier ONE)^2 + 9 on every coordinate, drawn
        independently from the operating system's randomness. (docs/privacy/proofs.md, statements 7,
        15 and 16.)

    Args:
        loss: the loss, with the support points.
        records: uint8 (b, D); b may be 0.
        targets: float64 (b, c).
        centre: the pixel value that counts as 0.
        clip_norm: the norm to which longer gradients are clipped.
        noise_multiplier: standard deviation of the noise at sensitivity 1.

    Returns:
        float64 (m, D), over the clip norm.

    Raises:
        BudgetError: the noise does not fit 64 bits.
    """
    sigma = noise_sigma(noise_multiplier)
    sums = clipped_sum(loss, records, targets, centre=centre, clip_norm=clip_norm)
    noise = discrete_gaussian(sums.size, sigma).reshape(sums.shape)
    noisy: NDArray[np.float64] = (sums + noise) / ONE
    return noisy


def exact_gradient(
    loss: SupportLoss, records: NDArray[np.uint8], targets: Tensor, *, centre: int
) -> NDArray[np.float64]:
    """The sum of unclipped gradients over a batch, without noise.

    Guarantee:
        None: it is NOT PRIVATE. Only a distillation that the owner asked for with `--not-private`
        uses it.

    Args:
        loss: the loss, with the support points.
        records: uint8 (b, D); b may be 0.
        targets: float64 (b, c).
        centre: the pixel value that counts as 0.

    Returns:
        float64 (m, D). A record whose gradient is not finite contributes nothing, as with clipping.
    """
    points = loss.points
    of_record, of_points = torch.zeros_like(points), torch.zeros_like(loss.first)
    for start in range(0, len(records), _BATCH):
        part = slice(start, start + _BATCH)
        values = (torch.from_numpy(records[part]).double() - centre) / LEVELS
        found = loss.coefficients(values, targets[part])
        parts = found.of_record, found.own, found.u, found.v
        finite = torch.stack([each.isfinite().all(1) for each in parts]).all(0)[:, None]
        c, d, u, v = (torch.where(finite, each, 0.0) for each in parts)
        of_record += c.T @ values
        half = (u.T @ v) * loss.first
        of_points -= half + half.T
        of_points.diagonal().add_(d.sum(0))
    total: NDArray[np.float64] = (of_record + of_points @ points).numpy()
    return total


def noise_sigma(noise_multiplier: float) -> int:
    """The standard deviation of the noise on every coordinate, in whole units, rounded up.

    Raises:
        BudgetError: sums and noise together could leave 64 bits.
    """
    if not 0 < noise_multiplier <= LARGEST_MULTIPLIER:
        raise BudgetError(f"a noise multiplier of {noise_multiplier:g} is out of range")
    return math.ceil(math.hypot(noise_multiplier * ONE, SMOOTHING) * (1 + 2.0**-40))


def clipped_sum(
    loss: SupportLoss, records: NDArray[np.uint8], targets: Tensor, *, centre: int, clip_norm: float
) -> NDArray[np.int64]:
    """The exact sum of clipped and rounded gradients.

    Guarantee:
        Each record contributes one vector of integers. It is a function of the record and of public
        numbers alone, and its norm is at most `ONE`. (docs/privacy/proofs.md, statement 16.)

    Args:
        loss: the loss, with the support points.
        records: uint8 (b, D).
        targets: float64 (b, c).
        centre: the pixel value that counts as 0.
        clip_norm: the norm to which longer gradients are clipped.

    Returns:
        int64 (m, D), in units of clip_norm / 2^40.
    """
    points = loss.points
    size, inputs = points.shape
    room = (1 - _rounding(points, centre) / ONE) * (1 - 2.0**-40)
    of_record = np.zeros((size, inputs), dtype=np.int64)
    of_points = np.zeros((size, size), dtype=np.int64)
    for start in range(0, len(records), _BATCH):
        pixels = torch.from_numpy(records[start : start + _BATCH]).double() - centre
        found = loss.coefficients(pixels / LEVELS, targets[start : start + _BATCH])
        weights = clip_weights(loss, found, room * clip_norm, clip_norm / _COEFFICIENTS)[:, None]
        counts = weights > 0  # the others may not be finite
        c, d, u, v = (
            torch.where(counts, values, 0.0).split(_CHUNK)
            for values in (
                found.of_record * weights, found.own * weights, found.u * weights, found.v
            )
        )  # fmt: skip
        # Integers below 2^53, exact in whatever order they are multiplied and added up.
        for number, part in enumerate(pixels.split(_CHUNK)):
            of_record += (c[number].round_().T @ part).numpy().astype(np.int64)
            half = _sum_of_halves(u[number], v[number], loss.first).numpy().astype(np.int64)
            of_points -= half + half.T
            of_points.ravel()[:: size + 1] += d[number].round_().sum(0).numpy().astype(np.int64)
    whole = np.rint(points.numpy() * PLACES).astype(np.int64)
    # Products may overflow 64 bits on the way; modulo 2^64 that changes nothing, and the sum fits.
    sums: NDArray[np.int64] = of_record * (PLACES // LEVELS) + of_points @ whole
    return sums


def _sum_of_halves(u: Tensor, v: Tensor, first: Tensor) -> Tensor:
    """Sums over i of u_ia v_ij M_aj, each term rounded to an integer, float64 (m, m)."""
    size = len(first)
    total = torch.zeros_like(first)
    for left, right in zip(u.split(_TOGETHER), v.split(_TOGETHER), strict=True):
        for rows in range(0, size, step := max(1, _CACHED // (_TOGETHER * size))):
            part = slice(rows, rows + step)
            halves = left[:, part, None] * right[:, None]
            total[part] += halves.mul_(first[part]).round_().sum(0)
    return total


def clip_weights(loss: SupportLoss, found: Coefficients, longest: float, unit: float) -> Tensor:
    """Factors that clip gradients to the norm `longest`, divided by `unit`.

    A rough bound on the norm is enough for a gradient that is short, or if it is nearly the norm.

    Returns:
        float64 (b,). 0 for gradients that are not finite, or whose coefficients are so large that
        sums of integers would not be exact.
    """
    squares, error = loss.norms(found, 1)
    enough = (squares + error <= longest**2) | (error <= squares * _ROUGH)  # never if NaN
    (rough,) = torch.where(~enough)
    if len(rough):
        squares[rough], error[rough] = loss.norms(found[rough])
    bound = square_root((squares + error).clamp_min(0.0))  # never below the true norm
    weights = (longest / bound).clamp_max(1.0) / unit
    largest = (found.u.abs() * loss.first.abs().amax(1)).amax(1) * found.v.abs().amax(1)
    largest = torch.maximum(largest, found.own.abs().amax(1))
    fits = weights * largest <= _LARGEST_OF_POINTS  # NaN fails every comparison
    fits &= weights * found.of_record.abs().amax(1) <= _LARGEST_OF_RECORD
    return torch.where(fits & torch.isfinite(bound), weights, 0.0)


def _rounding(points: Tensor, centre: int) -> float:
    """The most that rounding its coefficients can lengthen a gradient, in units of the sums.

    Raises:
        BudgetError: so many support points leave no room for a gradient.
    """
    size, inputs = points.shape
    record = (PLACES // LEVELS) * max(centre, 255 - centre) * math.sqrt(inputs)
    lengths = float(torch.linalg.vector_norm(points, dim=1).sum()) * PLACES
    # Half a unit for each coefficient of the record, one (two halves) for each of the points, and
    # below 2^-9 for each rounded product of at most 2^42, which has three roundings of its own.
    rounding = math.sqrt(size) * (record / 2 + lengths) * (1 + 2.0**-8)
    if not rounding < ONE / 8:
        smaller = f"a smaller {argument('per_class')}"
        raise BudgetError(f"{size:,} support points are too many: choose {smaller}")
    return rounding
