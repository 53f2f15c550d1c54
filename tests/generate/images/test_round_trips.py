"""A step of training gives a card its work, and asks it for nothing.

Numbers are read where losses are noted, and where directions are chosen anew; nothing is sent.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

from dpntk.common.schema.image import ImageSchema
from dpntk.embed import (
    FeatureOptions,
    FourierOptions,
    PixelOptions,
    SourceOptions,
    TangentOptions,
    embed,
)
from dpntk.generate.fit.descent import AT_ONCE
from dpntk.generate.fit.recipe import CONVOLUTIONAL, GALLERY, RESIDUAL, TEMPLATES
from dpntk.generate.fit.settings import TrainingSettings
from dpntk.generate.images import training
from dpntk.generate.images.distances import whitening
from dpntk.generate.images.distances.base import ImageDistance
from dpntk.generate.images.distances.running import RunningDistance
from dpntk.generate.images.distances.whitening import WhitenedDistance
from dpntk.generate.images.estimation.class_means import noisy_means
from dpntk.generate.images.estimation.prior import GeneratorPrior
from dpntk.generate.images.estimation.template_prior import TemplatePrior
from dpntk.generate.images.generators.deformations import DeformedGenerator
from dpntk.generate.images.generators.registry import new_generator
from dpntk.generate.images.spectral_basis import spectral_basis
from dpntk.generate.kernels.base import FeatureMatrix
from dpntk.generate.kernels.plain_mmd import PlainMMD
from dpntk.generate.kernels.reweighted_mmd import ReweightedDistance
from dpntk.generate.kernels.rff import FourierKernel
from dpntk.release import PrivacyParameters, Release
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.conftest import CLASSES, SIDE, draw_records
from tests.helpers.traffic import CARD, Seeded, Traffic, on_the_card

TANGENT = TangentOptions(width=7)
OBJECTIVES: dict[str, tuple[Callable[[Release, torch.device], ImageDistance], FeatureOptions]] = {
    "whitened": (WhitenedDistance, TANGENT),
    "whitened, of pixels too": (WhitenedDistance, TangentOptions(width=7, pixels=0.5)),
    "whitened, convolutions": (WhitenedDistance, TangentOptions(arch="cnn_2l", width="3_8")),
    "whitened, of pixels": (WhitenedDistance, PixelOptions()),
    "plain": (PlainMMD, TANGENT),
    "running": (RunningDistance, FourierOptions(frequencies=9)),
    "pearl": (ReweightedDistance, FourierOptions(frequencies=9)),
}
SENT = {GALLERY: 8 * (2 * SIDE**2 + 1)}
"""Bytes that may be sent in all, over all steps: the matrices of a gallery's transform."""
LONG = TrainingSettings(steps=500, batch=12)


def released(options: FeatureOptions) -> Release:
    records, labels = draw_records(30)
    images = records.reshape(-1, SIDE, SIDE)
    embedding = embed((images, labels), options, SourceOptions(classes=CLASSES))
    return unrecorded_release(embedding, PrivacyParameters(10.0, 1e-3))


@contextmanager
def no_look_and_no_seed(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Directions are chosen once in many steps, and may wait; "meta" draws no numbers itself."""
    with patch.context() as within:
        within.setattr(whitening, "require_finite", lambda values, otherwise: None)
        within.setattr(torch, "Generator", Seeded)
        yield


def steps_taken(
    patch: pytest.MonkeyPatch, objective: str, generator: str = TEMPLATES, *, stops: bool = False
) -> int:
    """How many steps a card is given before it is asked for anything; it is sent nothing."""
    distance_to, options = OBJECTIVES[objective]
    release = released(options)
    distance = on_the_card(distance_to(release, torch.device("cpu")))
    penalty = None
    if generator == TEMPLATES:
        means = noisy_means(release)
        template = training.first_generator(release, means, seed=0)
        made: Any = DeformedGenerator(template).to(CARD)
        templates = TemplatePrior.fit(means, CLASSES, spectral_basis(SIDE))
        prior = on_the_card(GeneratorPrior(templates, torch.ones(CLASSES)))
        penalty = lambda: prior.energy(template)  # noqa: E731
    else:
        assert isinstance(release.schema, ImageSchema)
        made = new_generator(generator, release.schema, 10).to(CARD)
    taken = itertools.count()

    class Counted:
        noise_variance = distance.noise_variance
        in_pairs = distance.in_pairs
        noise_floor = 0.0
        update_weights = distance.update_weights

        def __call__(self, records: Tensor) -> Tensor:
            found: Tensor = distance(records)
            next(taken)
            return found

    with (
        no_look_and_no_seed(patch),
        Traffic() as traffic,
        pytest.raises((NotImplementedError, RuntimeError), match="meta"),
    ):
        training.minimise_distance(
            made, Counted(), LONG, CARD, penalty=penalty, stop_at_noise=stops
        )
    assert sum(traffic.sent) <= SENT.get(generator, 0)
    return next(taken)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_card_is_first_asked_where_a_loss_is_noted(
    monkeypatch: pytest.MonkeyPatch, objective: str
) -> None:
    assert steps_taken(monkeypatch, objective) == AT_ONCE


@pytest.mark.parametrize("generator", [CONVOLUTIONAL, RESIDUAL, GALLERY])
def test_so_it_is_whatever_makes_images(monkeypatch: pytest.MonkeyPatch, generator: str) -> None:
    assert steps_taken(monkeypatch, "plain", generator) == AT_ONCE


def test_so_it_is_if_training_may_stop_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    assert steps_taken(monkeypatch, "whitened, of pixels", stops=True) == AT_ONCE


@pytest.mark.parametrize(
    "look",
    [
        lambda values: values.cpu(),
        lambda values: values.sum().item(),
        lambda values: bool(values.isfinite().all()),
        lambda values: values[values > 0],
        lambda values: values + torch.zeros(values.shape[-1]).to(CARD),
    ],
    ids=["cpu", "item", "bool", "nonzero", "sent"],
)
def test_a_look_at_what_a_card_computes_is_noticed(
    monkeypatch: pytest.MonkeyPatch, look: Callable[[Tensor], object]
) -> None:
    right = FourierKernel.features

    def looks(self: FourierKernel, records: Tensor) -> FeatureMatrix:
        made = right(self, records)
        look(made.values.detach())
        return made

    monkeypatch.setattr(FourierKernel, "features", looks)
    with pytest.raises(AssertionError):
        assert steps_taken(monkeypatch, "running") == AT_ONCE
