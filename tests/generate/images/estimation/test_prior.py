"""What a generator takes for signal: no noise where there is much, and all where there is none."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from dpntk.common.features.base import FeatureMap
from dpntk.common.features.joint_image import JointImageFeatures
from dpntk.common.features.ntk.architectures import fc_1l
from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.features.ntk.scattering import Pixels
from dpntk.common.features.pixels import PixelFeatures
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.embed import Embedding
from dpntk.embed.exact.grid import Grid
from dpntk.embed.sums.accumulate import ClassSums
from dpntk.generate import TrainingSettings
from dpntk.generate.images.cosine_transform import cosines
from dpntk.generate.images.estimation.class_means import NoisyMeans, noisy_means
from dpntk.generate.images.estimation.prior import GeneratorPrior
from dpntk.generate.images.estimation.spectrum import (
    Spectrum,
    negative_log_restricted_likelihood,
)
from dpntk.generate.images.estimation.template_prior import TemplatePrior
from dpntk.generate.images.generators.conditional import ConditionalGenerator, GeneratorSpec
from dpntk.generate.images.spectral_basis import spectral_basis
from dpntk.generate.images.training import first_generator, train, usual_settings
from dpntk.release import PrivacyParameters, Release
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.helpers.releases import class_means

TANGENT = TangentFeatures.draw(Pixels(64), fc_1l(60), outputs=10, levels=255, seed=0)
JOINT = JointImageFeatures(TANGENT, 0.9)
BASIS = spectral_basis(8)
DIGITS = load_digits()
MEANS = np.stack([DIGITS.data[DIGITS.target == label].mean(axis=0) / 16 for label in range(10)])


def digits(epsilon: float, feature_map: FeatureMap = JOINT, seed: int = 0) -> Release:
    """A release of scikit-learn's digits; its noise has a seed here, so that tests do not vary."""
    grid = Grid.for_capacity(255, 2**20)
    sums = ClassSums(feature_map, 10, grid)
    pixels = np.rint(DIGITS.data / 16 * 255).astype(np.uint8)
    for start in range(0, len(pixels), sums.chunk_size):
        some = slice(start, start + sums.chunk_size)
        sums.add(pixels[some], DIGITS.target[some])
    schema = ImageSchema(8, tuple("0123456789"), Origin.FORMAT, Origin.DECLARED)
    embedding = Embedding(sums.sums, sums.counts, schema, feature_map, grid)
    made = unrecorded_release(embedding, PrivacyParameters(epsilon))
    random = np.random.default_rng(seed)
    noise = random.standard_normal(sums.sums.shape) * made.noise_per_coordinate
    counts = random.standard_normal(10) * made.noise_per_coordinate / made.guarantee.count_weight
    shares = (sums.counts / len(DIGITS.data) + counts).clip(0.01)
    return replace(
        made,
        embedding=(sums.sums * (grid.unit / len(DIGITS.data)) + noise).astype(np.float32),
        class_weights=shares / shares.sum(),
    )


def prior_of(release: Release, *, use_envelope: bool = True) -> TemplatePrior:
    return TemplatePrior.fit(noisy_means(release), 10, BASIS, use_envelope=use_envelope)


def error(means: NDArray[np.float32]) -> float:
    return float(np.sqrt(np.mean((means - MEANS) ** 2)))


@pytest.mark.parametrize("feature_map", [TANGENT, JOINT], ids=["tangent", "joint"])
def test_class_means_are_read_off_a_release(feature_map: FeatureMap) -> None:
    assert error(class_means(digits(100.0, feature_map))) < 0.05


def test_means_are_known_as_well_as_they_say() -> None:
    """The noise that is claimed is that of the difference between two releases."""
    several = [noisy_means(digits(2.0, seed=seed)) for seed in range(12)]
    values = np.stack([means.values for means in several if means is not None])
    claimed = np.mean([means.noise for means in several if means is not None])
    assert values.std(axis=0, ddof=1).mean() == pytest.approx(claimed, rel=0.15)


def test_no_image_is_taken_to_be_brighter_than_white_or_darker_than_black() -> None:
    """Whatever noise makes of the constant, which says how long images are."""
    pixels = PixelFeatures(64, 255)
    record = np.append(np.full(64, 255.0), pixels.constant)
    white = record / np.linalg.norm(record)
    assert pixels.constant_of_white == pytest.approx(white[-1])
    plain = digits(1000.0, pixels)
    for constant, brightness in (
        (white[-1], 1.0),
        (-0.2, 1.0),
        (0.5, white[-1] / 0.5),
        (1.0, white[-1]),
        (1.7, white[-1]),
    ):
        embedding = np.outer(np.append(white[:-1], constant), plain.class_weights)
        means = noisy_means(replace(plain, embedding=embedding.astype(np.float32)))
        assert means is not None
        assert np.allclose(means.values, brightness, rtol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_much_noise_is_taken_for_noise(seed: int) -> None:
    release = digits(0.3, seed=seed)
    start = prior_of(release).start
    assert error(start) < 0.7 * error(class_means(release))


def test_next_to_no_noise_leaves_the_means_as_they_are() -> None:
    release = digits(1000.0)
    assert np.abs(prior_of(release).start - class_means(release)).max() < 0.01


@pytest.mark.parametrize("classes", [1, 10])
def test_means_without_noise_and_of_one_class_are_where_templates_begin(classes: int) -> None:
    means = NoisyMeans(MEANS[:classes], np.zeros(classes))
    start = TemplatePrior.fit(means, classes, BASIS).start
    assert np.abs(start - MEANS[:classes]).max() < 1e-6


@pytest.mark.parametrize("label", [0, 3, 7])
def test_noise_on_a_single_class_is_taken_for_noise(label: int) -> None:
    """Draws of what its template may be are about as far from it as the true mean is."""
    true = np.kron(MEANS[label].reshape(8, 8), np.ones((3, 3))).reshape(1, -1)
    noisy = true + 0.25 * np.random.default_rng(label).standard_normal(true.shape)
    prior = TemplatePrior.fit(NoisyMeans(noisy, np.full(1, 0.25)), 1, spectral_basis(24))
    off = math.sqrt(np.mean((prior.start - true) ** 2))
    assert off < 0.7 * math.sqrt(np.mean((noisy.clip(0, 1) - true) ** 2))
    drawn = float(prior.posterior_deviations(1000, seed=0).square().mean().sqrt())
    assert 0.5 * off < drawn < 1.5 * off
    assert 0.5 * off < prior.posterior_std < 1.5 * off


def test_of_colours_each_is_an_image_by_itself() -> None:
    """Three equal channels have the templates of one, but that more is known of the spectra."""
    colours = NoisyMeans(np.tile(MEANS, (1, 3)), np.full(10, 0.02))
    prior = TemplatePrior.fit(colours, 10, spectral_basis(8, channels=3))
    assert np.abs(prior.start - np.tile(prior.start[:, :64], (1, 3))).max() < 1e-6
    assert np.abs(prior.start - colours.values).max() < 0.1
    generator = ConditionalGenerator(GeneratorSpec(side=8, classes=10, channels=3))
    generator.share()
    generator.start_from(torch.from_numpy(prior.start))
    whole = GeneratorPrior(prior, torch.full((10,), 1e-4))
    assert torch.isfinite(whole.energy(generator).detach())


@pytest.mark.parametrize("seed", range(2))
def test_a_generator_does_not_learn_the_noise(seed: int) -> None:
    release = digits(0.3, seed=seed)
    training = train(release, TrainingSettings(steps=60, batch=100))
    code = torch.randn(10, 200, training.generator.spec.code)
    with torch.inference_mode():
        made = training.generator(code, torch.arange(10)).mean(dim=1)
    assert error(made.numpy()) < 0.7 * error(class_means(release))
    # The floor is a mean over classes of so many squares of variance s^2.
    variance = float(np.mean((release.noise_per_coordinate / release.shrunk_shares) ** 2))
    chance = math.sqrt(2 * training.noise_floor * variance / 10)
    assert training.losses[-1].loss > training.noise_floor - 4 * chance


@pytest.mark.parametrize(("epsilon", "steps"), [(1000.0, 1500), (1.0, 132), (0.01, 30)])
def test_much_noise_is_followed_for_fewer_steps(epsilon: float, steps: int) -> None:
    """At epsilon 1 the blur is .0303."""
    assert usual_settings(digits(epsilon)).steps == pytest.approx(steps, abs=3)


def test_colour_images_are_trained_for_fewer_steps() -> None:
    grey = digits(1000.0)
    assert isinstance(grey.schema, ImageSchema)
    colour = replace(grey, schema=replace(grey.schema, channels=3))
    assert usual_settings(colour).steps < usual_settings(grey).steps


def test_shares_that_noise_explains_are_equal_and_others_stay() -> None:
    release = digits(0.3, seed=1)
    assert np.abs(release.class_weights - 0.1).max() > 0.04
    assert np.abs(release.shrunk_shares - 0.1).max() < 0.02
    rare = np.array([0.91, *[0.01] * 9])
    plain = replace(digits(10.0), class_weights=rare)
    assert np.allclose(plain.shrunk_shares, rare, rtol=0.02)
    declared = replace(release, guarantee=replace(release.guarantee, count_weight=0.0))
    assert (declared.shrunk_shares == release.class_weights).all()


def test_waves_are_orthonormal_and_their_variance_falls() -> None:
    waves = cosines(9)
    assert np.allclose(waves @ waves.T, np.eye(9))
    with pytest.raises(ValueError, match="read-only"):
        waves *= 2
    variances = Spectrum(2.0, 3.0).variances(9).reshape(9, 9)
    assert variances[0, 0] == 2
    assert variances[0, 3] == variances[3, 0] == 1
    assert (np.diff(variances, axis=0) < 0).all()


def test_the_prior_is_that_of_the_spectra() -> None:
    """Its energy is the sum of squares over variances, times the noise's variance over classes."""
    means = TemplatePrior.fit(None, 2, BASIS)
    prior = GeneratorPrior(means, torch.tensor([0.1, 0.3]))
    torch.manual_seed(0)
    generator = ConditionalGenerator(GeneratorSpec(side=8, classes=2, factors=1, flows=1))
    generator.share()
    generator.factors.data.zero_()
    generator.requires_grad_(requires_grad=False)
    assert float(prior.energy(generator)) == pytest.approx(0, abs=1e-6)
    wave = torch.from_numpy(np.outer(cosines(8)[1], cosines(8)[1]).flatten()).float()
    generator.template[0, 0] += 0.5 * wave
    generator.template[1, 0] -= 0.5 * wave
    frequency = math.hypot(1, 1)
    variance = 2 * means.own.amplitude / (1 + (frequency / means.own.cutoff) ** 2)
    wanted = (0.1 + 0.3) * 0.25 / variance / 2
    assert float(prior.energy(generator)) == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize(("noise", "sharp"), [(1e-6, 1.0), (1e4, 0.0)])
def test_templates_are_sharper_than_means_where_means_are_told_from_noise(
    noise: float, sharp: float
) -> None:
    means = TemplatePrior.fit(NoisyMeans(MEANS, np.full(10, noise)), 10, BASIS)
    prior = GeneratorPrior(means, torch.full((10,), 0.1))
    generator = ConditionalGenerator(GeneratorSpec(side=8, classes=10, factors=1, flows=1))
    generator.share()
    generator.factors.data.zero_()
    generator.requires_grad_(requires_grad=False)
    wave = torch.from_numpy(np.outer(cosines(8)[4], cosines(8)[3]).flatten()).float()
    generator.template[0, 0] += wave
    generator.template[1, 0] -= wave
    fallen = math.hypot(4, 3) / means.own.cutoff
    of_means = means.own.amplitude / (1 + fallen**4)
    of_sharp = 2 * means.own.amplitude / (1 + fallen**2)
    wanted = 2 * 0.1 / (of_means + sharp * (of_sharp - of_means)) / 10
    assert float(prior.energy(generator)) == pytest.approx(wanted, rel=1e-3)


def test_factors_begin_the_smaller_the_more_noise_there_is() -> None:
    known = NoisyMeans(MEANS, np.ones(10))
    clear, noisy, unknown = (
        first_generator(digits(epsilon), means, 0).factors
        for epsilon, means in ((1000.0, known), (1.0, known), (1.0, None))
    )
    assert torch.equal(unknown, clear)
    share = float((noisy / clear).mean().detach())
    assert share == pytest.approx(0.006 / 0.0303, rel=0.01)
    assert torch.allclose(noisy, share * clear)


def test_the_prior_gives_way_where_there_is_little_noise() -> None:
    """In units of the noise's variance, in which it would count as much everywhere."""
    torch.manual_seed(0)
    generator = ConditionalGenerator(GeneratorSpec(side=8, classes=2, factors=2, flows=1))
    generator.requires_grad_(requires_grad=False)
    means = TemplatePrior.fit(None, 2, BASIS)
    much, some, little = (
        float(GeneratorPrior(means, torch.full((2,), variance)).energy(generator)) / variance
        for variance in (1e-2, 9e-6, 1e-8)
    )
    assert some == pytest.approx(much / 2, rel=1e-2)
    assert little < much / 500


def covariance(prior: TemplatePrior) -> NDArray[np.float64]:
    """Of a class mean's deviation, written out, (64, 64)."""
    waves = np.kron(cosines(8), cosines(8))
    inside = waves.T @ (prior.own.variances(8)[:, None] * waves)
    within: NDArray[np.float64] = prior.envelope[:, None] * inside * prior.envelope
    return within


def test_classes_differ_least_where_all_together_are_black_or_white() -> None:
    envelope = prior_of(digits(2.0)).envelope
    assert float(np.mean(envelope**2)) == pytest.approx(1)
    grey = MEANS.mean(axis=0)
    assert np.corrcoef(envelope, np.sqrt(grey * (1 - grey)))[0, 1] > 0.9
    assert envelope[grey < 0.01].mean() < 0.4
    exact, inverted = (NoisyMeans(means, np.zeros(10)) for means in (MEANS, 1 - MEANS))
    one, other = (TemplatePrior.fit(means, 10, BASIS).envelope for means in (exact, inverted))
    assert np.allclose(one, other, atol=1e-6)


SIDE, PLANTED = 16, Spectrum(0.12, 4.0)
RARE: Final = np.array([0.002, 0.05, 0.1, 0.15, 0.2])
"""Noise on the means of a class that is nearly all records, and of others."""


def planted(seed: int, noise: NDArray[np.float64]) -> tuple[NDArray[np.float64], NoisyMeans]:
    """Means of classes that deviate from what they have in common by a known spectrum."""
    random = np.random.default_rng(seed)
    waves = np.kron(cosines(SIDE), cosines(SIDE))
    spreads = np.sqrt([Spectrum(0.5, 2.0).variances(SIDE), *[PLANTED.variances(SIDE)] * len(noise)])
    spreads[0, 0] = 0.0
    common, *own = (random.standard_normal(spreads.shape) * spreads) @ waves
    true = 0.5 + common + np.stack(own)
    return true, NoisyMeans(true + noise[:, None] * random.standard_normal(true.shape), noise)


def prior_of_planted(means: NoisyMeans, channels: int = 1) -> TemplatePrior:
    basis = spectral_basis(SIDE, channels)
    return TemplatePrior.fit(means, len(means.noise), basis, use_envelope=False)


@pytest.mark.parametrize("noise", [RARE, np.full(5, 0.05)], ids=["rare classes", "equal"])
def test_how_much_classes_deviate_is_learnt_whatever_noise_they_have(
    noise: NDArray[np.float64],
) -> None:
    """Otherwise a frequent class would be what all have in common, and deviate from nothing."""
    learnt = [prior_of_planted(planted(seed, noise)[1]).own for seed in range(4)]
    amplitudes = np.array([spectrum.amplitude for spectrum in learnt])
    assert float(np.exp(np.log(amplitudes).mean())) == pytest.approx(PLANTED.amplitude, rel=0.3)
    assert all(3 <= spectrum.cutoff <= 6 for spectrum in learnt)


@pytest.mark.parametrize("seed", range(3))
def test_rare_classes_begin_where_the_known_spectrum_would_have_them(seed: int) -> None:
    """The most probable means, given all noisy ones, by the normal equations of each frequency."""
    true, means = planted(seed, RARE)
    waves = np.kron(cosines(SIDE), cosines(SIDE))
    seen, expected = means.values @ waves.T, np.zeros_like(true)
    classes = len(RARE)
    for place, variance in enumerate(PLANTED.variances(SIDE)):
        # Unknown are the means of classes and what they have in common.
        rows = np.zeros((2 * classes, classes + 1))
        rows[:classes, :classes] = np.diag(1 / RARE)
        rows[classes:, :classes] = np.eye(classes) / math.sqrt(variance)
        rows[classes:, -1] = -1 / math.sqrt(variance)
        wanted = np.append(seen[:, place] / RARE, np.zeros(classes))
        expected[:, place] = np.linalg.lstsq(rows, wanted)[0][:classes]
    start = prior_of_planted(means).start
    best = np.sqrt(np.mean((expected @ waves - true) ** 2, axis=1))
    off = np.sqrt(np.mean((start - true) ** 2, axis=1))
    assert (off < 1.1 * best).all()
    assert (off[2:] < 0.75 * RARE[2:]).all()


@pytest.mark.parametrize("of_colours", [0.02, 1.0])
def test_colour_differences_have_an_amplitude_of_their_own(of_colours: float) -> None:
    """Classes that are told apart by brightness do not take noise for their colours."""
    random, planted_in = np.random.default_rng(0), replace(PLANTED, of_colours=of_colours)
    waves = np.kron(cosines(SIDE), cosines(SIDE))
    spreads = np.sqrt(planted_in.variances(SIDE, 3))
    deviations = (random.standard_normal((5, len(spreads))) * spreads).reshape(5, 3, -1) @ waves
    opponents = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])
    true = 0.5 + np.einsum("dc,kdp->kcp", opponents, deviations).reshape(5, -1)
    noise = np.full(5, 0.1)
    means = NoisyMeans(true + 0.1 * random.standard_normal(true.shape), noise)
    prior = prior_of_planted(means, channels=3)
    assert 0.4 * of_colours < prior.own.of_colours < 2.5 * of_colours
    assert prior.own.amplitude == pytest.approx(PLANTED.amplitude, rel=0.5)
    off = (prior.start - true).reshape(5, 3, -1)
    grey, *colours = np.sqrt((np.einsum("dc,kcp->kdp", opponents, off) ** 2).mean(axis=(0, 2)))
    lost, most = (0.1, 0.6) if of_colours < 1 else (0.7, 1.4)
    assert all(lost * grey < colour < most * grey for colour in colours)


def test_deviations_are_as_probable_as_differences_between_classes_are() -> None:
    """Of what classes have in common nothing is known: its variance is as good as infinite."""
    random = np.random.default_rng(0)
    seen, noise = random.standard_normal((4, 1)), np.array([0.001, 0.1, 1.0, 3.0])[:, None]

    def dense(variances: NDArray[np.float64]) -> float:
        covariance = np.diag(variances[:, 0]) + 1e6
        exponent = float(seen[:, 0] @ np.linalg.solve(covariance, seen[:, 0]))
        return (exponent + float(np.linalg.slogdet(covariance)[1])) / 2

    few, many = 0.1 + noise, 2.0 + noise
    found = negative_log_restricted_likelihood(seen, many) - negative_log_restricted_likelihood(
        seen, few
    )
    assert found == pytest.approx(dense(many) - dense(few), abs=1e-4)


def test_templates_begin_at_what_is_expected_of_noisy_means() -> None:
    release = digits(2.0)
    prior, means = prior_of(release), noisy_means(release)
    assert means is not None
    within, seen = covariance(prior), means.values - means.values.mean(axis=0)
    for start, apart, noise in zip(prior.start, seen, means.noise, strict=True):
        expected = within @ np.linalg.solve(within + noise**2 * np.eye(64), apart)
        # The mean of all, which is known best, is shrunk by itself; it is the same for all classes.
        every = prior.start.mean(axis=0)
        inside = (start > 0.02) & (start < 0.98)
        assert np.abs(start - every - expected)[inside].mean() < 0.02


def test_templates_are_as_doubtful_as_their_noise_leaves_them() -> None:
    """Draws have the covariance of what is expected, which is K - K (K + v)^-1 K."""
    for epsilon in (0.5, 5.0):
        release = digits(epsilon)
        prior, means = prior_of(release), noisy_means(release)
        assert means is not None
        within = covariance(prior)
        # 10,000 of each class, of which few at a time fit into a processor's cache
        parts = [prior.posterior_deviations(500, seed) for seed in range(20)]
        drawn = torch.cat(parts, dim=1).double().numpy()
        for some, noise in zip(drawn, means.noise, strict=True):
            known = np.linalg.solve(within + noise**2 * np.eye(64), within)
            left = within - within @ known
            spread = np.cov(some.T)
            assert np.linalg.norm(spread - left) < 0.1 * np.linalg.norm(left)
            assert np.allclose(np.diag(spread) / np.diag(left), 1, atol=0.1)
            assert np.abs(some.mean(axis=0)).max() < 6 * math.sqrt(np.diag(left).max() / 10_000)
        assert (
            0
            < prior.posterior_std
            < min(means.noise.max(), math.sqrt(prior.own.variances(8).mean()))
        )
    assert prior_of(digits(4e5)).posterior_std < 1e-3


def test_records_are_drawn_as_if_templates_were_what_they_may_be() -> None:
    few_steps = TrainingSettings(steps=2)
    certain = train(digits(4e5), few_steps).generator
    doubtful = train(digits(0.5), few_steps).generator
    assert certain.spec.factors == 16 < doubtful.spec.factors
    prior = prior_of(digits(0.5), use_envelope=False)
    wanted = float(prior.posterior_deviations(500, seed=1).square().sum(dim=(0, 2)).mean())
    further = doubtful.factors[:, 16:].detach().double().square().sum()
    assert float(further) == pytest.approx(wanted, rel=0.2)


def test_further_factors_change_nothing_where_their_code_is_zero() -> None:
    generator = ConditionalGenerator(GeneratorSpec(8, 3)).eval()
    wider = generator.with_factors(torch.randn(3, 5, 64))
    code = torch.randn(3, 7, generator.spec.code)
    factors = generator.spec.factors
    longer = torch.cat([code[..., :factors], torch.zeros(3, 7, 5), code[..., factors:]], dim=-1)
    every = torch.arange(3)
    assert torch.equal(generator(code, every), wider(longer, every))
    longer[..., factors] = 1.0
    assert not torch.allclose(generator(code, every), wider(longer, every))
