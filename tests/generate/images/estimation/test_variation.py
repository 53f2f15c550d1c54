"""How unlike images of a class are: as a release of mean images says that records are."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.features.pixels import PixelFeatures
from dpntk.generate.images.estimation.variation import (
    posterior_cosine,
    released_cosine,
    with_mean_of,
    with_variation,
)
from dpntk.generate.images.generators.conditional import ConditionalGenerator, GeneratorSpec
from dpntk.generate.images.sampling import sample
from dpntk.generate.images.training import train
from dpntk.release import Release
from tests.generate.images.estimation.test_prior import DIGITS, digits

PIXELS: Final = PixelFeatures(64, 255)


def mean_cosine(images: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Of the features of two records of a class, pair by pair, a record with itself left out.

    Args:
        images: values 0..1, float64 (n, 64).
        labels: int64 (n,).
    """
    features = np.column_stack([images, np.full(len(images), PIXELS.constant / PIXELS.levels)])
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    alike = labels[:, None] == labels
    np.fill_diagonal(alike, val=False)
    return float((features @ features.T)[alike].mean())


def of_records() -> float:
    """The same of scikit-learn's digits."""
    return mean_cosine(DIGITS.data / 16, DIGITS.target)


def drawn(release: Release) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """2,000 images of a generator that was trained on a release, 0..1, and their labels."""
    made = train(release).generator
    images, labels = sample(made, 2_000, release.class_weights, seed=1)
    return images.reshape(len(images), -1) / 255, labels


@pytest.mark.parametrize("epsilon", [0.5, 10.0])
def test_a_release_says_how_alike_records_of_a_class_are(epsilon: float) -> None:
    made = [digits(epsilon, PIXELS, seed) for seed in range(20)]
    found = np.mean([released_cosine(each)[0] for each in made])
    assert found == pytest.approx(of_records(), abs=0.05)
    if epsilon < 1:  # a mutant that leaves the noise in
        as_if_exact = [replace(each, guarantee=replace(each.guarantee, sigma=0.0)) for each in made]
        assert np.mean([released_cosine(each)[0] for each in as_if_exact]) > found + 0.15


def test_its_noise_is_as_large_as_it_is_said_to_be() -> None:
    found = np.array([released_cosine(digits(0.2, PIXELS, seed)) for seed in range(60)])
    # Shares, whose noise is not in it, are the true ones of `digits` within some hundredths.
    assert found[:, 0].std() == pytest.approx(found[:, 1].mean(), rel=0.35)


def test_noise_alone_asks_for_no_variation() -> None:
    assert posterior_cosine(-3.0, 1e9, without=0.8) == pytest.approx(0.8)
    assert posterior_cosine(0.7, 0.0, without=0.8) == 0.7
    assert posterior_cosine(0.6, 0.24, without=0.8) == pytest.approx(0.7)  # half of it is believed


def without_variation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generators with what templates may be, and nothing further."""
    monkeypatch.setattr(
        "dpntk.generate.images.training.with_variation",
        lambda generator, release, posterior_deviations, *rest, **named: generator.with_factors(
            posterior_deviations
        ),
    )


def test_what_is_negative_by_noise_does_not_make_images_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are hardly less alike than what is in doubt makes them."""
    release = digits(0.05, PIXELS)
    minus = replace(release, embedding=np.zeros_like(release.embedding))
    assert released_cosine(minus)[0] < -1
    found = mean_cosine(*drawn(minus))
    without_variation(monkeypatch)
    assert found == pytest.approx(mean_cosine(*drawn(minus)), abs=0.03)


@pytest.mark.parametrize("seed", range(3))
def test_generated_images_are_as_unlike_as_the_release_says(seed: int) -> None:
    release = digits(1.0, PIXELS, seed)
    found = mean_cosine(*drawn(release))
    assert found == pytest.approx(released_cosine(release)[0], abs=0.03)


def test_without_variation_they_would_be_too_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    without_variation(monkeypatch)
    release = digits(1.0, PIXELS)
    assert mean_cosine(*drawn(release)) > released_cosine(release)[0] + 0.06


@pytest.mark.parametrize(("cosine", "known"), [(1.0, 0.1), (0.0, 0.0)])
def test_doubts_alone_move_no_template(
    cosine: float, known: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where records are not known to vary by more, or classes to differ, nothing is added."""
    monkeypatch.setattr(
        "dpntk.generate.images.estimation.variation.released_cosine", lambda release: (cosine, 0.0)
    )
    generator = ConditionalGenerator(GeneratorSpec(8, 10, factors=2, flows=1))
    random = torch.Generator().manual_seed(0)
    posterior_deviations, record_deviations = 0.2 * torch.randn((2, 10, 9, 64), generator=random)
    made = with_variation(
        generator, digits(1.0, PIXELS), posterior_deviations, record_deviations, known=known, seed=0
    )
    assert torch.equal(made.template, generator.template)
    assert torch.equal(made.factors, generator.with_factors(posterior_deviations).factors)


def test_what_drowns_what_is_known_of_classes_is_not_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pixel's standard deviation is eight times what classes are known to differ by, at most."""
    monkeypatch.setattr(
        "dpntk.generate.images.estimation.variation.released_cosine", lambda release: (0.0, 0.0)
    )
    generator = ConditionalGenerator(GeneratorSpec(8, 10, factors=2, flows=1))
    random = torch.Generator().manual_seed(0)
    record_deviations = torch.randn((10, 9, 64), generator=random)
    nothing = torch.zeros_like(record_deviations)
    for known in (0.01, 0.05):
        made = with_variation(
            generator, digits(1.0, PIXELS), nothing, record_deviations, known=known, seed=0
        )
        added = made.factors[:, -9:].detach()
        torch.testing.assert_close(added, 8 * known * record_deviations, rtol=0.01, atol=0)


@torch.no_grad()
def test_mean_images_stay_as_they_are_where_pixels_are_cut() -> None:
    generator = ConditionalGenerator(GeneratorSpec(8, 2, factors=1, flows=1))
    generator.template.copy_(torch.linspace(0.01, 0.99, 128).view(2, 1, 64))
    generator.factors.zero_()
    generator.flows.zero_()
    random = torch.Generator().manual_seed(0)
    more = 0.2 * torch.randn((2, 9, 64), generator=random)

    def mean(wider: ConditionalGenerator) -> torch.Tensor:
        code = torch.randn((2, 40_000, wider.spec.code), generator=random)
        found: torch.Tensor = wider(code, torch.arange(2)).mean(dim=1).flatten()
        return found

    asked = generator.template.flatten()
    wider = generator.with_factors(more)
    kept, mutant = mean(with_mean_of(generator, wider)), mean(wider)
    assert (kept - asked).abs().max() < 0.015
    assert (mutant - asked).abs().max() > 0.1
