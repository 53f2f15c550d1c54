"""How much records of a class differ from each other, where a release tells mean images alone.

Deformations and what is not known of a template leave the images of a class more alike than its
records are. How alike these are, mean images do say: features have length 1, so the square of a
mean feature's length is the mean cosine of two records of the class. Noise adds what is known to
that, and a thousand records are enough to know it to a few hundredths. So images get further
factors, of the spectrum that differences of images have, as large as that cosine asks for.
Classifiers that learn from images too much alike trust in detail that only noise tells apart.

Images are cut to 0..1, so that what varies more would be greyer in the mean. Templates make up for
that: where a mean pixel is nearly black, the template is far below it. They make up for what is
added alone: what a template may be was part of what a release was read with.
"""

from __future__ import annotations

import math
from typing import Final

import torch
from torch import Tensor

from ...release.file.model import Release
from ..kernels.base import FeatureMatrix
from ..kernels.registry import kernel_of
from .generator import ConditionalGenerator

_LOOKED_AT: Final = 100
"""Records of each class, whose cosines are measured."""
_LARGEST: Final = 8.0
"""Standard deviation of a pixel before it is cut, at most, over what classes are known to differ
by: what tells them apart would drown in more. With 3,000 of MNIST's records at epsilon 1 it is
about that; with 1,000, of which too much is in doubt, nothing is added."""
_SPREAD: Final = 1.2
"""How much less alike records may be, before a release is read: a standard deviation, over how far
the cosine of images is from 1. MNIST's records are farther by 1.2 of that."""
_HALVINGS: Final = 10
_FARTHEST: Final = 8.0
"""Templates are sought so many standard deviations beyond black and white."""
_TEMPLATE_HALVINGS: Final = 30
_DARKEST: Final = 0.002
"""Means of pixels are kept so far from black and white, where they say nothing of templates."""


def released_cosine(release: Release) -> tuple[float, float]:
    """The mean cosine of two records of a class, and the standard deviation of its noise.

    Pairs are as frequent as they are among records. Shares of classes are in the sum of squares
    alone, which their noise changes little.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)
    """
    sums, noise = release.embedding.astype(float), release.noise_per_coordinate**2
    squares = float((sums**2).sum()) - noise * sums.size
    variance = 4 * noise * max(squares, 0.0) + 2 * noise**2 * sums.size
    pairs = float((release.class_weights**2).sum())
    return squares / pairs, math.sqrt(variance) / pairs


def likely_cosine(seen: float, deviation: float, without: float) -> float:
    """What is expected of the mean cosine, given what a release shows of it.

    Args:
        seen: in the release, with its noise.
        deviation: of that noise.
        without: of images that vary by no further factors, which is believed beforehand: to vary
            what noise hides by a guess drowns what little is known of classes.
    """
    spread = _SPREAD * (1 - without)
    kept = spread**2 / (spread**2 + deviation**2) if deviation else 1.0
    return without + kept * (seen - without)


def varied(
    generator: ConditionalGenerator,
    release: Release,
    doubts: Tensor,
    variation: Tensor,
    *,
    known: float,
    seed: int,
) -> ConditionalGenerator:
    """A generator whose images are as unlike each other as a release says records are.

    Args:
        generator: as it was trained, on the CPU.
        release: of features of length 1, a matrix for each batch.
        doubts: further factors, (classes, k, pixels): of what a template may be.
        variation: those that are made as large as needed, and added to them; likewise. Mean images
            stay as they are without.
        known: by how much a pixel differs from class to class, beyond what is in doubt.
        seed: of the images by which that is found.
    """
    doubtful = generator.with_factors(doubts)
    if not known:
        return doubtful
    kernel = kernel_of(release.feature_map, torch.device("cpu"))
    shares = torch.as_tensor(release.class_weights).square()
    every_class = torch.arange(generator.spec.classes)

    def of_size(size: float) -> ConditionalGenerator:
        return with_mean_of(doubtful, generator.with_factors(doubts + size * variation))

    @torch.inference_mode()
    def cosine(made: ConditionalGenerator) -> float:
        random = torch.Generator().manual_seed(seed)  # the same codes for every size
        code = torch.randn((len(every_class), _LOOKED_AT, made.spec.code), generator=random)
        features = kernel.features(made(code, every_class))
        assert isinstance(features, FeatureMatrix)
        others = _LOOKED_AT * (_LOOKED_AT - 1)
        of_class = (features.values.sum(dim=1).square().sum(dim=1) - _LOOKED_AT) / others
        return float((shares * of_class).sum() / shares.sum())

    least, most = 0.0, _LARGEST * known
    without = cosine(doubtful)
    asked = likely_cosine(*released_cosine(release), without)
    if without <= asked:
        return doubtful
    for _ in range(_HALVINGS):
        size = (least + most) / 2
        least, most = (size, most) if cosine(of_size(size)) > asked else (least, size)
    return of_size(least)


@torch.no_grad()
def with_mean_of(
    narrower: ConditionalGenerator, wider: ConditionalGenerator
) -> ConditionalGenerator:
    """A generator whose pixels have the same mean as those of another one, once they are cut.

    Args:
        narrower: with the mean that is wanted.
        wider: with more, or larger, factors.
    """
    before, after = (
        each.factors.square().sum(dim=1, keepdim=True).sqrt() for each in (narrower, wider)
    )
    mean = _cut_mean(narrower.template, before).clamp(_DARKEST, 1 - _DARKEST)
    low, high = -_FARTHEST * after, 1 + _FARTHEST * after
    for _ in range(_TEMPLATE_HALVINGS):
        middle = (low + high) / 2
        darker = _cut_mean(middle, after) < mean
        low, high = torch.where(darker, middle, low), torch.where(darker, high, middle)
    return wider.with_template((low + high) / 2)


def _cut_mean(middle: Tensor, deviation: Tensor) -> Tensor:
    """The mean of normal variables that are cut to 0..1."""
    deviation = deviation.clamp(min=1e-6)
    below, above = -middle / deviation, (1 - middle) / deviation
    within = torch.special.ndtr(above) - torch.special.ndtr(below)
    density = torch.exp(-below.square() / 2) - torch.exp(-above.square() / 2)
    beyond = torch.special.ndtr(-above)
    mean: Tensor = middle * within + deviation * density / math.sqrt(2 * math.pi) + beyond
    return mean
