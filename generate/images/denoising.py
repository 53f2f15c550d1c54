"""What of noisy images is noise, if they vary about a mean in a known way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_STEPS: Final = 100
_CLOSE: Final = 1e-5
"""So much is left of an image when it is done, relative to the image."""


def noise_in(images: Floats, variance: float, covary: Callable[[Floats], Floats]) -> Floats:
    """The expectation of the noise in images y = x + n: v (K + v)^-1 y.

    By conjugate gradients on (1 + K / v) r = y (Hestenes and Stiefel 1952, "Methods of Conjugate
    Gradients for Solving Linear Systems"), which begin at r = 0. Few steps are enough if there is
    much noise; and if there is little, all that they have not yet found is little as well.

    Args:
        images: y, float64 (k, p).
        variance: v, of the noise on each of their values, above 0.
        covary: images to K times each of them, K being the covariance of x.
    """
    noise, left = np.zeros_like(images), images.copy()
    towards = left.copy()
    length = _squares(left)
    enough = _CLOSE**2 * length
    for _ in range(_STEPS):
        if (length <= enough).all():
            break
        seen = towards + covary(towards) / variance
        step = _over(length, (towards * seen).sum(axis=1, keepdims=True))
        noise += step * towards
        left -= step * seen
        before, length = length, _squares(left)
        towards = left + _over(length, before) * towards
    return noise


def _squares(images: Floats) -> Floats:
    squares: Floats = np.square(images).sum(axis=1, keepdims=True)
    return squares


def _over(one: Floats, other: Floats) -> Floats:
    """A quotient, or 0 where there is nothing left to divide."""
    quotient: Floats = np.divide(one, other, out=np.zeros_like(one), where=other > 0)
    return quotient
