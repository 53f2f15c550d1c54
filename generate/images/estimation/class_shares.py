"""Estimates of the class shares, from noisy counts and pixel sums."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from ....common.features.pixels import PixelFeatures
from ....common.numerics.shrinkage import shrunk_to_equal
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
    by_counts, schema = release.shrunk_shares, release.schema
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
    likely = shrunk_to_equal(both, of_counts * of_pixels / (of_counts + of_pixels))
    likely = likely.clip(release.class_weights.min() / 2)
    shares: Floats = likely / likely.sum()
    return shares


def _common_image(release: Release) -> Floats:
    """The image that classes have in common, scaled to length 1, float64 (channels * side^2,)."""
    schema = release.schema
    assert isinstance(schema, ImageSchema)
    basis = spectral_basis(schema.side, schema.channels)
    prior = TemplatePrior.fit(noisy_means(release), len(schema.classes), basis)
    return prior.common / max(float(np.linalg.norm(prior.common)), 1e-9)
