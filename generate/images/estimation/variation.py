"""How much records of a class vary, where a release holds mean images alone.

Deformations and the posterior uncertainty of templates leave generated images of a class too
similar. Mean images do reveal how similar real records are: features have length 1, so the squared
length of a mean feature is the mean cosine of two records of the class. Noise adds a known amount,
and a thousand records determine the cosine to a few hundredths. So images get further factors, with
the spectrum of natural image differences, scaled to match that cosine. Classifiers trained on
images that are too similar rely on detail that is only noise.

Pixels are clipped to 0..1, so larger factors would turn the mean image greyer. Templates
compensate: where a mean pixel is nearly black, the template lies far below it. They compensate for
the added factors alone, since the uncertainty of templates was already part of reading the release.
"""

from __future__ import annotations

import math
from typing import Final

import torch
from torch import Tensor

from ....release.file.model import Release
from ...kernels.base import FeatureMatrix
from ...kernels.registry import kernel_of
from ..generators.conditional import ConditionalGenerator

_MEASURED_RECORDS: Final = 100
"""Generated records of each class whose cosines are measured."""
_LARGEST: Final = 8.0
"""Largest standard deviation of a pixel before clipping, relative to how much classes are known to
differ: more would hide what tells them apart. 3,000 MNIST records at epsilon 1 nearly reach it;
with 1,000, whose means are too uncertain, nothing is added."""
_COSINE_DEVIATION: Final = 1.2
"""Prior standard deviation of the records' cosine, relative to the distance of the images' cosine
from 1. For MNIST, records are farther from 1 by 1.2 times that distance."""
_HALVINGS: Final = 10
_FARTHEST: Final = 8.0
"""Templates are searched for up to this many standard deviations beyond black and white."""
_TEMPLATE_HALVINGS: Final = 30
_DARKEST: Final = 0.002
"""Pixel means are kept this far from black and white, where they do not determine the template."""


def released_cosine(release: Release) -> tuple[float, float]:
    """The mean cosine of two records of a class, and the standard deviation of its noise.

    Pairs of a class count by their frequency among records. Class shares enter through their sum of
    squares alone, which noise changes little.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)
    """
    sums, noise = release.embedding.astype(float), release.noise_per_coordinate**2
    squares = float((sums**2).sum()) - noise * sums.size
    variance = 4 * noise * max(squares, 0.0) + 2 * noise**2 * sums.size
    pairs = float((release.class_weights**2).sum())
    return squares / pairs, math.sqrt(variance) / pairs


def posterior_cosine(seen: float, deviation: float, without: float) -> float:
    """The posterior mean of the mean cosine.

    Args:
        seen: the cosine by the release, with its noise.
        deviation: standard deviation of that noise.
        without: the cosine of images without further factors, which is the prior mean: to add
            variation that noise hides would drown what little is known of classes.
    """
    spread = _COSINE_DEVIATION * (1 - without)
    kept = spread**2 / (spread**2 + deviation**2) if deviation else 1.0
    return without + kept * (seen - without)


def with_variation(
    generator: ConditionalGenerator,
    release: Release,
    posterior_deviations: Tensor,
    record_deviations: Tensor,
    *,
    known: float,
    seed: int,
) -> ConditionalGenerator:
    """A generator whose images vary as much as a release says records do.

    Args:
        generator: as it was trained, on the CPU.
        release: of features of length 1, given as a matrix for each batch.
        posterior_deviations: further factors for the uncertainty of templates, (classes, k,
            pixels).
        record_deviations: factors that are scaled to match the released cosine and added to the
            others, of the same shape. They leave mean images as they are.
        known: standard deviation of a pixel between classes, beyond the uncertainty.
        seed: of the images that the scale is found with.
    """
    with_posterior = generator.with_factors(posterior_deviations)
    if not known:
        return with_posterior
    kernel = kernel_of(release.feature_map, torch.device("cpu"))
    shares = torch.as_tensor(release.class_weights).square()
    every_class = torch.arange(generator.spec.classes)

    def with_size(size: float) -> ConditionalGenerator:
        return with_mean_of(
            with_posterior, generator.with_factors(posterior_deviations + size * record_deviations)
        )

    @torch.inference_mode()
    def cosine(made: ConditionalGenerator) -> float:
        random = torch.Generator().manual_seed(seed)  # the same codes for every size
        code = torch.randn((len(every_class), _MEASURED_RECORDS, made.spec.code), generator=random)
        features = kernel.features(made(code, every_class))
        assert isinstance(features, FeatureMatrix)
        others = _MEASURED_RECORDS * (_MEASURED_RECORDS - 1)
        of_class = (features.values.sum(dim=1).square().sum(dim=1) - _MEASURED_RECORDS) / others
        return float((shares * of_class).sum() / shares.sum())

    least, most = 0.0, _LARGEST * known
    without = cosine(with_posterior)
    wanted = posterior_cosine(*released_cosine(release), without)
    if without <= wanted:
        return with_posterior
    for _ in range(_HALVINGS):
        size = (least + most) / 2
        least, most = (size, most) if cosine(with_size(size)) > wanted else (least, size)
    return with_size(least)


@torch.no_grad()
def with_mean_of(
    narrower: ConditionalGenerator, wider: ConditionalGenerator
) -> ConditionalGenerator:
    """A generator with new templates, so that its clipped pixels have another one's means.

    Args:
        narrower: the generator with the wanted means.
        wider: the generator with more, or larger, factors.
    """
    before, after = (
        each.factors.square().sum(dim=1, keepdim=True).sqrt() for each in (narrower, wider)
    )
    mean = _clipped_mean(narrower.template, before).clamp(_DARKEST, 1 - _DARKEST)
    low, high = -_FARTHEST * after, 1 + _FARTHEST * after
    for _ in range(_TEMPLATE_HALVINGS):
        middle = (low + high) / 2
        darker = _clipped_mean(middle, after) < mean
        low, high = torch.where(darker, middle, low), torch.where(darker, high, middle)
    return wider.with_template((low + high) / 2)


def _clipped_mean(middle: Tensor, deviation: Tensor) -> Tensor:
    """The mean of normal variables that are clipped to 0..1."""
    deviation = deviation.clamp(min=1e-6)
    below, above = -middle / deviation, (1 - middle) / deviation
    within = torch.special.ndtr(above) - torch.special.ndtr(below)
    density = torch.exp(-below.square() / 2) - torch.exp(-above.square() / 2)
    beyond = torch.special.ndtr(-above)
    mean: Tensor = middle * within + deviation * density / math.sqrt(2 * math.pi) + beyond
    return mean
