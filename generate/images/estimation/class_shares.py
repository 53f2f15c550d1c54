"""Estimates of the class shares, from noisy counts and pixel sums."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from ....common.features.pixels import PixelFeatures
from ....common.schema.image import ImageSchema
from ....release.file.model import Release
from ..spectral_basis import spectral_basis
from .class_means import noisy_means
from .denoising import Floats
from .template_prior import TemplatePrior

_USUAL_SPREAD: Final = 0.3
"""Typical spread of the classes' brightness, relative to how much records differ from the common
image: .1 to .5 in sets of digits and clothes, dark and bright."""
_SPREAD_DEVIATION: Final = 1.0
"""Prior standard deviation of the logarithm of that spread around `_USUAL_SPREAD`."""
_SPREADS: Final = tuple(float(each) for each in np.geomspace(0.002, 0.5, 24))
"""Candidate spreads of the classes' brightness, relative to its mean."""
_LEAST: Final = 0.01
"""Records are taken to differ at least this much from the common image."""


def posterior_shares(release: Release) -> Floats:
    """Estimate class shares from counts and, where pixels are released, from pixel sums.

    Projected on the image that classes have in common, the sum of a class's features is its number
    of records times their brightness. This has a quarter to a half of the noise of the counts. But
    brightness varies between classes, with a relative standard deviation t, so the counts still
    help. A share s thus has two estimates, with variances v + (s t)^2 and w, and they are weighted
    by their precisions.

    t is estimated from the difference of the two, whose variance is v + (s t)^2 + w (empirical
    Bayes). Its prior is proportional to how much records differ from the common image, one minus
    the mean cosine between the two: a bright background makes all images alike, and then classes
    are equally bright.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)

    Returns:
        float64 (c,), positive, of sum 1.
    """
    by_counts, schema = shrunk_shares(release), release.schema
    weight, noise = release.guarantee.count_weight, release.noise_per_coordinate
    pixels = isinstance(release.feature_map, PixelFeatures) and isinstance(schema, ImageSchema)
    if not (pixels and weight and noise) or len(by_counts) == 1:
        return by_counts
    common = _common_image(replace(release, class_weights=by_counts))
    seen = common @ release.embedding[:-1]
    cosine = float(seen.sum())
    if cosine <= noise:
        return by_counts
    of_seen, of_counts = (noise / cosine) ** 2, (noise / weight) ** 2
    seen /= cosine
    usual = _USUAL_SPREAD * max(1 - cosine, _LEAST)

    def negative_log_posterior(spread: float) -> float:
        variances = of_seen + (spread * by_counts) ** 2 + of_counts
        differences = (seen - release.class_weights) ** 2 / variances + np.log(variances)
        return float(differences.sum() + (np.log(spread / usual) / _SPREAD_DEVIATION) ** 2) / 2

    of_pixels = of_seen + (min(_SPREADS, key=negative_log_posterior) * by_counts) ** 2
    both = (of_counts * seen + of_pixels * release.class_weights) / (of_counts + of_pixels)
    likely = _shrunk(both, of_counts * of_pixels / (of_counts + of_pixels))
    likely = likely.clip(release.class_weights.min() / 2)
    shares: Floats = likely / likely.sum()
    return shares


def shrunk_shares(release: Release) -> Floats:
    """The released shares, shrunk towards equal ones as far as noise explains their spread.

    With 1,000 records at epsilon 1 a count of 100 is off by 22, and a mean feature that is divided
    by it gets the same relative error.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)

    Returns:
        float64 (c,), positive, of sum 1; the released ones if they have no noise.
    """
    shares, weight = release.class_weights, release.guarantee.count_weight
    if not weight or not release.noise_per_coordinate:
        return shares
    return _shrunk(shares, np.full(len(shares), (release.noise_per_coordinate / weight) ** 2))


def _shrunk(shares: Floats, noise: Floats) -> Floats:
    """Shrink noisy shares, given the variances of their noise, to their posterior means.

    Shares have a normal prior of mean 1 / c and variance t, and noise of variance v, so the
    posterior mean keeps t / (t + v) of a deviation from 1 / c. The variance t is estimated as that
    of the noisy deviations minus v (Efron and Morris 1973, "Stein's Estimation Rule and Its
    Competitors").
    """
    differences = shares - 1 / len(shares)
    true = max(0.0, float(np.mean(differences**2 - noise)))
    return 1 / len(shares) + true / (true + noise) * differences


def _common_image(release: Release) -> Floats:
    """The image that classes have in common, scaled to length 1, float64 (channels * side^2,)."""
    schema = release.schema
    assert isinstance(schema, ImageSchema)
    basis = spectral_basis(schema.side, schema.channels)
    prior = TemplatePrior.fit(noisy_means(release), len(schema.classes), basis)
    return prior.common / max(float(np.linalg.norm(prior.common)), 1e-9)
