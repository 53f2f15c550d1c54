"""Stage three with a generator and an objective chosen by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from ...common.errors import GeneratorError
from ...common.features.torchscript import module_for
from ...common.runtime.device import AUTO, choose_device
from ...common.schema.image import ImageSchema
from ...release.file.model import Release
from ..fit.descent import Training, untrained
from ..fit.recipe import PEARL, PLAIN, RUNNING, TEMPLATES, WHITENED, ComposedSettings
from ..kernels.plain_mmd import PlainMMD
from ..kernels.reweighted_mmd import ReweightedDistance
from .distances.base import ImageDistance
from .distances.running import RunningDistance
from .distances.whitening import WhitenedDistance
from .generators.registry import ImageGenerator, new_generator
from .training import minimise_distance, train

_DISTANCES: Final[dict[str, Callable[..., ImageDistance]]] = {
    WHITENED: WhitenedDistance,
    PLAIN: PlainMMD,
    PEARL: ReweightedDistance,
    RUNNING: RunningDistance,
}


def train_composed(
    release: Release,
    settings: ComposedSettings,
    *,
    module: Path | None = None,
    device: str = AUTO,
) -> Training[ImageGenerator]:
    """Train the chosen generator with the chosen objective.

    With "cnn" and "mmd" this is Algorithm 1 of Yang et al., arXiv 2303.01687: each step takes a
    fresh batch, with equally many records of each class, and the gradient of equation 6.

    Guarantee:
        Post-processing: reads the release alone, so the result is as private as the release.
        (docs/privacy/proofs.md, statement 10.)

    Args:
        release: an opened release of images.
        settings: the parts, and how to train.
        module: for "perceptual" features: the file that they were made with.
        device: "auto", "cpu" or "cuda".

    Raises:
        ModuleError: the module is missing, is another one, or failed.
        GeneratorError: the training diverged, the release is of a table, or the objective does not
            support its features.
        DeviceError: there is no such device here.
    """
    if not isinstance(release.schema, ImageSchema):
        raise GeneratorError("the release is of a table, not of images")
    schema = release.schema
    distance_to = _DISTANCES[settings.objective]
    if settings.generator == TEMPLATES:
        if settings.objective not in (WHITENED, RUNNING):  # the prior is in their units
            distance_to = partial(distance_to, scale=float(len(schema.classes)))
        return train(release, settings, module=module, device=device, distance_to=distance_to)
    place = choose_device(device)
    release = replace(release, class_weights=release.shrunk_shares)
    computed_by = module_for(release.feature_map, module)
    objective = distance_to(release, place, computed_by)
    generator = untrained(
        lambda: new_generator(settings.generator, schema, settings.code), settings.seed
    )
    return minimise_distance(
        generator.to(place),
        objective,
        settings,
        place,
        stop_at_noise=settings.objective == RUNNING,
    )
