"""Separate noise from images whose covariance is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_STEPS: Final = 100
_TOLERANCE: Final = 1e-5
"""Relative residual at which the iteration stops."""


def noise_in(
    images: Floats, variance: float, covariance_times: Callable[[Floats], Floats]
) -> Floats:
    """The posterior mean of the noise in images y = x + n: v (K + v)^-1 y.

    Solves (1 + K / v) r = y by conjugate gradients from r = 0 (Hestenes and Stiefel 1952, "Methods
    of Conjugate Gradients for Solving Linear Systems"). With much noise, few steps are enough; with
    little noise, what they miss is small as well.

    Args:
        images: y, float64 (k, p).
        variance: v, the variance of the noise on each value, above 0.
        covariance_times: multiplies images by K, the covariance of x, into a new array.
    """
    noise, left = np.zeros_like(images), images.copy()
    towards = left.copy()
    length = _squares(left)
    enough = _TOLERANCE**2 * length
    for _ in range(_STEPS):
        if (length <= enough).all():
            break
        seen = covariance_times(towards)
        seen /= variance
        seen += towards
        step = _over(length, np.einsum("kp,kp->k", towards, seen)[:, None])
        noise += step * towards
        left -= np.multiply(step, seen, out=seen)
        before, length = length, _squares(left)
        towards *= _over(length, before)
        towards += left
    return noise


def _squares(images: Floats) -> Floats:
    squares: Floats = np.einsum("kp,kp->k", images, images)[:, None]
    return squares


def _over(one: Floats, other: Floats) -> Floats:
    """A quotient, or 0 where the divisor is not positive."""
    quotient: Floats = np.divide(one, other, out=np.zeros_like(one), where=other > 0)
    return quotient
