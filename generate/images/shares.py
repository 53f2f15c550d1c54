"""How frequent classes are, as far as the noise on their counts lets it be known."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import torch

from ...common.features.pixels import PixelFeatures
from ...common.schema.image import ImageSchema
from ...release.file.model import Release
from .denoising import Floats
from .initialisation import noisy_means
from .prior import GeneratorPrior

_APART: Final = 0.3
"""How much classes differ in brightness, over how much records differ from what all have in common:
.1 to .5 in sets of digits and clothes, dark and bright."""
_CREDENCE: Final = 1.0
"""Standard deviation of the logarithm of that around `_APART`, before it is learnt."""
_DIFFERENCES: Final = tuple(float(each) for each in np.geomspace(0.002, 0.5, 24))
"""Differences of the classes' brightness, relative to its mean, that are tried."""
_LEAST: Final = 0.01
"""Records differ at least so much from what all have in common."""


def likely_shares(release: Release) -> Floats:
    """By counts, and by pixels where a release is of them.

    The sum of the features of a class's records along the image that classes have in common is
    their number times how bright they are along it. It has a quarter to a half of the noise that
    counts have; but classes differ in brightness, by a standard deviation t of their mean, beside
    which counts are of use again. So of a share s there are two estimates, with variances v + (s
    t)^2 and w, and they are weighted by the reciprocals of these.

    What t is, the difference of the two says, of variance v + (s t)^2 + w, where the noise is not
    too much for that (empirical Bayes). Beforehand t is believed to be in proportion to how much
    records differ from the common image, one minus the mean cosine between the two: bright grounds
    make all images alike, and then classes are equally bright.

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
    usual = _APART * max(1 - cosine, _LEAST)

    def unlikely(apart: float) -> float:
        variances = of_seen + (apart * by_counts) ** 2 + of_counts
        differences = (seen - release.class_weights) ** 2 / variances + np.log(variances)
        return float(differences.sum() + (np.log(apart / usual) / _CREDENCE) ** 2) / 2

    of_pixels = of_seen + (min(_DIFFERENCES, key=unlikely) * by_counts) ** 2
    both = (of_counts * seen + of_pixels * release.class_weights) / (of_counts + of_pixels)
    likely = _shrunk(both, of_counts * of_pixels / (of_counts + of_pixels))
    likely = likely.clip(release.class_weights.min() / 2)
    shares: Floats = likely / likely.sum()
    return shares


def shrunk_shares(release: Release) -> Floats:
    """The released shares, drawn towards equal ones as far as noise explains their differences.

    With 1,000 records at epsilon 1 a count of 100 is off by 22; a mean feature that is divided by
    it is as wrong, as a whole.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)

    Returns:
        float64 (c,), positive, of sum 1; the released ones where there is no noise on them.
    """
    shares, weight = release.class_weights, release.guarantee.count_weight
    if not weight or not release.noise_per_coordinate:
        return shares
    return _shrunk(shares, np.full(len(shares), (release.noise_per_coordinate / weight) ** 2))


def _shrunk(shares: Floats, noise: Floats) -> Floats:
    """Shares with noise of such variances to what is expected of them.

    Shares differ from 1 / c by a normal variable of variance t, and noisy ones from these by the
    noise, of variance v: the expectation of the former keeps t / (t + v) of a difference. t is what
    the noisy differences leave when v is taken off (Efron and Morris 1973, "Stein's Estimation Rule
    and Its Competitors").
    """
    differences = shares - 1 / len(shares)
    true = max(0.0, float(np.mean(differences**2 - noise)))
    return 1 / len(shares) + true / (true + noise) * differences


def _common_image(release: Release) -> Floats:
    """What classes have in common, as an image of length 1, float64 (channels * side^2,)."""
    schema = release.schema
    assert isinstance(schema, ImageSchema)
    no_noise = torch.zeros(len(schema.classes))
    prior = GeneratorPrior(noisy_means(release), schema.side, no_noise, schema.channels)
    return prior.common / max(float(np.linalg.norm(prior.common)), 1e-9)
