"""Shrinking noisy shares towards equal ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def shrunk_to_equal(shares: Floats, noise: Floats) -> Floats:
    """Shrink noisy shares of classes to their posterior means.

    Shares have a normal prior of mean 1 / c and variance t, and noise of variance v, so the
    posterior mean keeps t / (t + v) of a deviation from 1 / c. The variance t is estimated as that
    of the noisy deviations minus v (Efron and Morris 1973, "Stein's Estimation Rule and Its
    Competitors").

    Args:
        shares: of sum 1, float64 (c,).
        noise: variances of their noise, positive, float64 (c,).

    Returns:
        float64 (c,).
    """
    differences = shares - 1 / len(shares)
    true = max(0.0, float(np.mean(differences**2 - noise)))
    return 1 / len(shares) + true / (true + noise) * differences
