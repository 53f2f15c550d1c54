"""Deformations that all classes share: what they are, and that a release says how large."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.embed import SourceOptions, TangentOptions, embed
from dpntk.embed.feature_options.kinds import options_for
from dpntk.generate.fit.descent import untrained
from dpntk.generate.fit.settings import TrainingSettings
from dpntk.generate.images.distances.whitening import WhitenedDistance
from dpntk.generate.images.generators.conditional import ConditionalGenerator, GeneratorSpec
from dpntk.generate.images.generators.deformations import DeformedGenerator
from dpntk.generate.images.training import minimise_distance, train
from dpntk.release import PrivacyParameters, Release
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.helpers.threads import torch_threads

SIDE = 16
SPEC = GeneratorSpec(SIDE, 2, factors=2, flows=3)


def deformed(size: float = 1.0) -> DeformedGenerator:
    return untrained(lambda: DeformedGenerator(ConditionalGenerator(SPEC), size), 0)


def test_whole_makes_the_same_images_and_holds_them_as_flows() -> None:
    found = deformed()
    with torch.no_grad():
        found.generator.template.uniform_(0.1, 0.9)
        found.sizes.normal_()
    code, every = torch.randn(2, 7, found.spec.code), torch.arange(2)
    whole = found.whole()
    assert whole.spec == found.spec
    assert whole.spec.flows > SPEC.flows
    with torch.no_grad():
        assert torch.equal(found(code, every), whole(code, every))
        code[..., SPEC.factors + SPEC.flows :] = 0
        alone = found.generator(code[..., : SPEC.code], every)
        assert torch.allclose(found(code, every), alone, atol=1e-6)


def test_the_first_is_a_turn_and_the_second_an_enlargement() -> None:
    """Where a pixel is fetched from, relative to itself, is at right angles, or in line, to it."""
    along = torch.linspace(-1, 1, 5)
    y, x = torch.meshgrid(along, along, indexing="ij")
    turn, enlargement = deformed(0.5).shared().detach()[:2]
    assert torch.allclose(turn[0] * x + turn[1] * y, torch.zeros_like(x), atol=1e-6)
    assert torch.allclose(turn.square().sum(0), 0.05**2 * (x**2 + y**2), atol=1e-6)
    assert torch.allclose(enlargement, 0.035 * torch.stack([x, y]), atol=1e-6)


def test_bends_move_control_points_one_by_one_and_are_of_one_size() -> None:
    found = deformed()
    with torch.no_grad():
        found.sizes[-1] = 1.0
    bends = found.shared().detach()[8:].flatten(1)
    assert torch.allclose(bends, torch.e * 0.035 * torch.eye(50), atol=1e-6)


def of_crosses(
    shift: int, epsilon: float = 1000.0, weight: float | None = None, kind: str = "ntk"
) -> Release:
    """A release of a cross and a bar, moved along x by up to so many pixels."""
    random = np.random.default_rng(0)
    images = np.zeros((400, SIDE, SIDE), dtype=np.uint8)
    labels = np.arange(400) % 2
    for image, label in zip(images, labels, strict=True):
        image[4:12, 7:9] = 200
        image[7:9, 4:12] = 200 * label
        image[:] = np.roll(image, random.integers(-shift, shift + 1), axis=1)
    options = (
        TangentOptions(width=60, front="pixels", pixels=weight or 0)
        if kind == "ntk"
        else options_for(kind)
    )
    embedding = embed((images, labels), options, SourceOptions(classes=2))
    return unrecorded_release(
        embedding, PrivacyParameters(epsilon, not_private=epsilon == math.inf)
    )


@pytest.fixture(scope="module")
def sizes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What is learnt of images that stand still, and of such as are moved along x."""
    learnt = []
    for shift in (0, 3):
        release = of_crosses(shift)
        found = deformed()
        found.generator.flows.data.zero_()
        found.generator.flows.requires_grad = False  # which could learn it as well
        distance = WhitenedDistance(release, torch.device("cpu"))
        settings = TrainingSettings(steps=200, batch=60, learning_rate=0.03)
        minimise_distance(found, distance, settings, torch.device("cpu"))
        learnt.append(found.sizes.detach().exp().double().numpy())
    return learnt[0], learnt[1]


def test_images_that_stand_still_are_deformed_less(
    sizes: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> None:
    still, _ = sizes
    assert (still < 0.6).all()


def test_it_goes_the_same_way_with_any_number_of_threads() -> None:
    """As far as rounding lets it: each thread takes some classes, here one or none."""
    release = of_crosses(3)

    def losses(threads: int) -> list[float]:
        with torch_threads(threads):
            distance = WhitenedDistance(release, torch.device("cpu"))
            settings = TrainingSettings(steps=10, batch=60)
            found = minimise_distance(deformed(), distance, settings, torch.device("cpu"))
        return [point.loss for point in found.losses]

    alone = losses(1)
    assert len(alone) == 10
    assert losses(2) == pytest.approx(alone, rel=1e-3)
    assert losses(3) == losses(2)


def test_a_shift_that_records_have_is_learnt(
    sizes: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> None:
    """Three pixels of 16 are .375 of half a width; along y there is none."""
    still, moved = sizes
    along_x, along_y = 6, 7
    assert moved[along_x] > 2 * still[along_x]
    assert moved[along_x] > 2 * moved[along_y]


@pytest.mark.parametrize("pixels", [None, 0.9])
def test_they_begin_the_smaller_the_more_noise_there_is_beside_pixels(pixels: float | None) -> None:
    """As factors do; and what is trained is a plain generator, to which they are flows."""
    release = of_crosses(0, 1.0, pixels)
    generator = train(release, TrainingSettings(steps=1)).generator
    assert type(generator) is ConditionalGenerator
    turn = generator.flows[:, 8].detach()
    assert torch.equal(turn[0], turn[1])
    noise = release.noise_per_coordinate * 2
    assert noise > 0.012
    size = 1.0 if pixels is None else 0.006 / noise
    assert float(turn.abs().max()) == pytest.approx(0.1 * size, rel=0.05)


def test_beside_mean_images_they_stay_what_is_known_of_all_images() -> None:
    """Of which a release says nothing else."""
    generator = train(of_crosses(0, 1.0, kind="pixels")).generator
    turn = generator.flows[:, 8].detach()
    assert torch.equal(turn[0], turn[1])
    assert float(turn.abs().max()) == pytest.approx(0.1 * 0.8, rel=1e-6)


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_mean_images_are_met_as_nearly_as_noise_lets_them_be_known(epsilon: float) -> None:
    """And not nearer: there are as many templates' values as means'."""
    trained = train(of_crosses(3, epsilon, kind="pixels"))
    losses = [point.loss for point in trained.losses]
    assert trained.noise_floor < min(losses[:-1])
    assert losses[-1] <= trained.noise_floor or len(losses) == 60
