"""Images of little contrast, by a release of their pixels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dpntk.common.sources import SourceOptions
from dpntk.embed import PixelOptions, embed
from dpntk.generate.images.estimation.class_means import NoisyMeans
from dpntk.generate.images.estimation.template_prior import TemplatePrior
from dpntk.generate.images.generators.conditional import ConditionalGenerator, GeneratorSpec
from dpntk.generate.images.sampling import sample
from dpntk.generate.images.spectral_basis import spectral_basis
from dpntk.generate.images.training import train
from dpntk.release import PrivacyParameters
from dpntk.release.publishing.pipeline import unrecorded_release


def test_grey_images_look_like_grey_images() -> None:
    """They have no patterns but those of their mean, however well that is known."""
    random = np.random.default_rng(0)
    images = np.full((2_000, 16, 16), 130) + random.integers(-6, 7, (2_000, 16, 16))
    images[:, 5:11, 5:11] -= 50
    labels = (np.arange(2_000) < 100).astype(np.int64)
    source = SourceOptions(classes=2)
    embedding = embed((images.astype(np.uint8), labels), PixelOptions(), source)
    release = unrecorded_release(embedding, PrivacyParameters(epsilon=2.0))
    made, _ = sample(train(release).generator, 400, np.array([0.999, 0.001]), 0)
    ground = np.concatenate([made[:, :2], made[:, -2:]], axis=1).astype(float)
    assert abs(ground.mean() - 130) < 10
    assert ground.std() < 20


def test_factors_are_as_large_as_contrast_allows() -> None:
    torch.manual_seed(0)
    generator = ConditionalGenerator(GeneratorSpec(side=16, classes=2))
    generator.requires_grad_(requires_grad=False)
    generator.share()
    before = generator.factors.clone()
    generator.limit_factors(0.5)
    assert torch.equal(generator.factors, before)
    generator.limit_factors(0.1)
    weights = torch.randn((2_000, generator.spec.factors))
    change = (weights @ generator.factors[0]).std(dim=0).square().mean().sqrt()
    assert float(change) == pytest.approx(0.1, rel=0.03)
    shares = generator.factors / before
    assert torch.allclose(shares, shares.mean(), rtol=1e-3)


def test_contrast_is_what_classes_differ_by() -> None:
    bright = np.zeros((3, 64))
    bright[0, :32], bright[1, 32:], bright[2] = 0.6, 0.6, 0.3
    basis = spectral_basis(8)
    unlike = TemplatePrior.fit(NoisyMeans(bright, np.full(3, 1e-6)), 3, basis).contrast
    assert unlike == pytest.approx(0.3 * (2 / 3) ** 0.5, rel=0.02)
    alike = NoisyMeans(np.tile(bright[:1], (3, 1)), np.full(3, 1e-6))
    assert TemplatePrior.fit(alike, 3, basis).contrast < 0.01
    single = NoisyMeans(bright[:1], np.full(1, 1e-6))
    assert TemplatePrior.fit(single, 1, basis).contrast == pytest.approx(0.3, rel=0.02)
