"""How frequent classes are, as far as the noise on their counts lets it be known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...release.file.model import Release


def shrunk_shares(release: Release) -> NDArray[np.float64]:
    """The released shares, drawn towards equal ones as far as noise explains their differences.

    Shares differ from 1 / c by a normal variable of variance t, and the released ones from these
    by the noise, of variance v: the expectation of the former keeps t / (t + v) of a difference.
    t is what the released differences leave when v is taken off (Efron and Morris 1973, "Stein's
    Estimation Rule and Its Competitors"). With 1,000 records at epsilon 1 a count of 100 is off by
    22; a mean feature that is divided by it is as wrong, as a whole.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)

    Returns:
        float64 (c,), positive, of sum 1; the released ones where there is no noise on them.
    """
    shares, weight = release.class_weights, release.guarantee.count_weight
    if not weight:
        return shares
    differences = shares - 1 / len(shares)
    noise = (release.noise_per_coordinate / weight) ** 2
    true = max(0.0, float(np.mean(differences**2)) - noise)
    kept = true / (true + noise) if noise else 1.0
    shrunk: NDArray[np.float64] = 1 / len(shares) + kept * differences  # adds up to 1 as well
    return shrunk
