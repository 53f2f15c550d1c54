"""Stage three for images: train a generator from a release and nothing else."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from ...common.errors import GeneratorError
from ...common.features.joint_image import JointImageFeatures
from ...common.features.pixels import PixelFeatures
from ...common.features.torchscript import module_for
from ...common.runtime.device import AUTO, choose_device
from ...common.runtime.threads import one_core_each
from ...common.schema.image import GREY, ImageSchema
from ...release.file.model import Release
from ..fit.descent import Loss, Training, descend, untrained
from ..fit.parts import sum_of
from ..fit.recorded import Recorded
from ..fit.settings import STEPS_IN_COLOUR, TrainingSettings
from .distances.base import ImageDistance
from .distances.whitening import WhitenedDistance
from .estimation.class_means import NoisyMeans, noisy_means
from .estimation.class_shares import posterior_shares
from .estimation.prior import GeneratorPrior
from .estimation.template_prior import TemplatePrior
from .estimation.variation import with_variation
from .generators.conditional import ConditionalGenerator, GeneratorSpec
from .generators.deformations import DeformedGenerator
from .generators.registry import ImageGenerator
from .spectral_basis import spectral_basis

G = TypeVar("G", bound=ImageGenerator | DeformedGenerator)
_UPDATE_EVERY: Final = 200
_UPDATE_RECORDS: Final = 100
"""Every `_UPDATE_EVERY` steps the objective weighs directions anew, by `_UPDATE_RECORDS` generated
records of each class. The interval is a multiple of `AT_ONCE`, because the noise floor may change
only then."""
_LITTLE_NOISE: Final = 0.006
"""With at most this much noise on a class's mean feature, in any one direction, no steps are left
out."""
_LEAST_STEPS: Final = 30
_STEPS_OF_PIXELS: Final = 60
"""Most steps where only mean images are released. Templates start at the means and are sharpened to
undo the blur of the deformations. Training stops at a distance that noise explains: templates have
as many values as the means, so they could fit all of it.
"""
_FIXED_DEFORMATIONS: Final = 0.8
"""Size of the deformations where only mean images are released."""
_LARGEST_FACTORS: Final = 2.5
"""Largest size of factors, relative to how much classes differ, where only mean images are
released. There the factors keep their random start, and larger ones hid what tells pale images
apart."""
_POSTERIOR_DIRECTIONS: Final = 200
"""Number of directions in which a template of 28x28 pixels is uncertain. Each record is drawn with
its own deviation along them: noise shared by all records of a class is what classifiers would
learn. Larger images get fewer directions, which keeps a generator's file small."""
_RECORD_DIRECTIONS: Final = 400
"""The same where only mean images are released: there, records also vary along these directions."""
_POSTERIOR_VARIANCE_FACTOR: Final = 1.75
"""Multiple of the templates' posterior variance that is subtracted from the variance between
classes. It exceeds 1 because the posterior variance is itself an estimate."""
_USUAL_PIXELS: Final = 28 * 28
_NEGLIGIBLE_STD: Final = 0.01
"""Below this posterior standard deviation per pixel, a template counts as known exactly."""


def usual_settings(release: Release) -> TrainingSettings:
    """The default settings: the more noise, the fewer steps, so that less of the noise is fitted.

    Args:
        release: of images.

    Raises:
        GeneratorError: it is of a table.
    """
    usual = TrainingSettings()
    if isinstance(release.feature_map, PixelFeatures):
        return replace(usual, steps=_STEPS_OF_PIXELS)
    most = usual.steps if _schema(release).channels == GREY else STEPS_IN_COLOUR
    return replace(usual, steps=max(_LEAST_STEPS, round(most * _noise_factor(release) ** 1.5)))


def _noise_factor(release: Release) -> float:
    """1 for noise up to `_LITTLE_NOISE`, and less beyond it."""
    return _LITTLE_NOISE / release.blur if release.blur > _LITTLE_NOISE else 1.0


def train(
    release: Release,
    settings: TrainingSettings | None = None,
    *,
    module: Path | None = None,
    device: str = AUTO,
    distance_to: Callable[..., ImageDistance] = WhitenedDistance,
) -> Training[ConditionalGenerator]:
    """Train a generator so that its mean embedding comes close to the released one.

    Guarantee:
        Post-processing: reads the release alone, so the result is as private as the release.
        (docs/privacy/proofs.md, statement 10.)

    Args:
        release: an opened release.
        settings: how to train; `usual_settings` if None.
        module: for "perceptual" features: the file that they were made with.
        device: "auto", "cpu" or "cuda".
        distance_to: makes the objective from a release, a device and a module.

    Raises:
        ModuleError: the module is missing, is another one, or failed.
        GeneratorError: the training diverged.
        DeviceError: there is no such device here.
    """
    settings = settings or usual_settings(release)
    place = choose_device(device)
    release = replace(release, class_weights=posterior_shares(release))
    objective = distance_to(release, place, module_for(release.feature_map, module))
    means = noisy_means(release)
    generator = first_generator(release, means, settings.seed)
    spec = generator.spec
    means_alone = isinstance(release.feature_map, PixelFeatures)
    templates = TemplatePrior.fit(
        means,
        spec.classes,
        spectral_basis(spec.side, spec.channels),
        use_envelope=means_alone,  # gains nothing where a network's features are released
    )
    prior = GeneratorPrior(templates, objective.noise_variance)
    generator.start_from(torch.from_numpy(templates.start))
    if means_alone:
        generator.limit_factors(_LARGEST_FACTORS * templates.contrast)
    deformed = _deformed(generator, release).to(place)
    found = minimise_distance(
        deformed,
        objective,
        settings,
        place,
        penalty=lambda: prior.energy(generator),
        stop_at_noise=means_alone,
    )
    made = Training(found.generator.whole().eval(), found.losses, found.noise_floor)
    if templates.posterior_std < _NEGLIGIBLE_STD and not means_alone:
        return made
    most, pixels = (
        _RECORD_DIRECTIONS if means_alone else _POSTERIOR_DIRECTIONS,
        generator.template.shape[-1],
    )
    count = min(most, max(spec.factors, most * _USUAL_PIXELS // pixels))
    posterior_deviations = templates.posterior_deviations(count, settings.seed) / math.sqrt(count)
    if not means_alone:
        return replace(made, generator=made.generator.with_factors(posterior_deviations))
    record_deviations = templates.record_deviations(count, settings.seed) / math.sqrt(count)
    uncertain = _POSTERIOR_VARIANCE_FACTOR * templates.posterior_std**2
    whole = with_variation(
        made.generator.cpu(),
        release,
        posterior_deviations,
        record_deviations,
        known=math.sqrt(max(templates.contrast**2 - uncertain, 0.0)),
        seed=settings.seed,
    )
    return replace(made, generator=whole.eval())


def _deformed(generator: ConditionalGenerator, release: Release) -> DeformedGenerator:
    """Add deformations, with learnt sizes or, if the release says too little, fixed ones."""
    match release.feature_map:
        case PixelFeatures():
            return DeformedGenerator(generator, _FIXED_DEFORMATIONS, learnt=False)
        case JointImageFeatures():  # noise hides how images of a class vary
            return DeformedGenerator(generator, _noise_factor(release))
    return DeformedGenerator(generator)


def minimise_distance(
    generator: G,
    objective: ImageDistance,
    settings: TrainingSettings,
    device: torch.device,
    *,
    penalty: Callable[[], Tensor] | None = None,
    stop_at_noise: bool = False,
) -> Training[G]:
    """Minimise a generator's distance to a release, with balanced classes in each batch.

    Args:
        generator: on the device.
        objective: the distance.
        settings: how to train.
        device: where.
        penalty: is added to the distance, a scalar.
        stop_at_noise: whether to stop at a distance that noise alone explains.

    Raises:
        GeneratorError: the training diverged.
    """
    spec = generator.spec
    size = max(2, settings.batch // spec.classes)
    if objective.in_pairs:
        size = max(4, size - size % 2)
    every_class = torch.arange(spec.classes, device=device)
    random = torch.Generator(device=device).manual_seed(settings.seed)

    def codes(count: int) -> Tensor:
        return torch.randn((spec.classes, count, spec.code), generator=random, device=device)

    with _in_threads(objective, generator, every_class) as distance_of:

        def loss_of(drawn: Tensor) -> Loss:
            distance = distance_of(
                torch.cat([drawn, -drawn], dim=1) if objective.in_pairs else drawn
            )
            return Loss(distance if penalty is None else distance + penalty(), distance)

        recorded = Recorded(loss_of, generator) if _recordable(objective, generator) else None

        def loss_at(step: int) -> Loss:
            if step % _UPDATE_EVERY == 1:
                objective.update_weights(generator(codes(_UPDATE_RECORDS), every_class).detach())
                if recorded is not None:
                    recorded.forget()
            drawn = codes(size // 2 if objective.in_pairs else size)
            return (recorded or loss_of)(drawn)

        return descend(
            generator,
            loss_at,
            lambda: objective.noise_floor,
            settings,
            stop_at_noise=stop_at_noise,
        )


def _recordable(objective: ImageDistance, generator: nn.Module) -> bool:
    """Whether a GPU can play the loss again: without foreign code and state kept between steps."""
    return (
        next(generator.parameters()).is_cuda
        and isinstance(generator, DeformedGenerator)
        and isinstance(objective, WhitenedDistance)
        and objective.threads_may_share
    )


@contextmanager
def _in_threads(
    objective: ImageDistance, generator: nn.Module, every_class: Tensor
) -> Iterator[Callable[[Tensor], Tensor]]:
    """The distance as a function of codes, with a thread for each core where that is faster.

    Layered networks are not split this way: torch's own threads within each layer are faster.
    """
    count = len(every_class)
    threads = min(torch.get_num_threads(), count) if every_class.device.type == "cpu" else 1
    may = isinstance(generator, DeformedGenerator) and threads > 1
    if not (may and isinstance(objective, WhitenedDistance) and objective.threads_may_share):
        yield lambda codes: objective(generator(codes, every_class))
        return
    distances = objective.of_classes
    edges = [count * part // threads for part in range(threads + 1)]
    parts = [slice(*ends) for ends in itertools.pairwise(edges)]
    parameters = [each for each in generator.parameters() if each.requires_grad]

    def term(codes: Tensor, part: slice) -> Tensor:
        images = generator(codes[part], every_class[part])
        return distances(images, part).sum() / count

    with one_core_each() as each:
        yield lambda codes: sum_of([partial(term, codes, part) for part in parts], parameters, each)


def first_generator(release: Release, means: NoisyMeans | None, seed: int) -> ConditionalGenerator:
    """An untrained generator.

    Its factors shrink with the noise if templates tell the classes apart.
    """
    schema = _schema(release)
    spec = GeneratorSpec(schema.side, len(schema.classes), channels=schema.channels)
    generator = untrained(lambda: ConditionalGenerator(spec), seed)
    known = means is not None and bool(np.isfinite(means.noise).any())
    generator.share(_noise_factor(release) if known else 1.0)
    return generator


def _schema(release: Release) -> ImageSchema:
    if not isinstance(release.schema, ImageSchema):
        raise GeneratorError("the release is of a table, not of images")
    return release.schema
