"""Train a generator of table rows from a release, and from nothing else."""

from __future__ import annotations

from typing import Final

import torch

from ...common.errors import GeneratorError
from ...common.runtime.device import AUTO, choose_device
from ...common.schema.table import TableSchema
from ...release.file.model import Release
from ..fit.descent import Loss, Training, descend
from ..fit.settings import TableSettings
from ..kernels.mean_embedding import pooled_mean
from .generator import TableGenerator, TableGeneratorSpec
from .moves.relu_features import has_shallow_tangents
from .objective import TableDistance

_ARRANGED_STEPS: Final = 50
"""At the most, where rows are put together from columns and none are the generator's."""


def train_table(
    release: Release, settings: TableSettings | None = None, *, device: str = AUTO
) -> Training[TableGenerator]:
    """Train a generator so that its mean embedding comes close to the released one.

    Guarantee:
        Post-processing: reads the release alone, so the result is as private as the release.
        (docs/privacy/proofs.md, statement 10.)

    Args:
        release: an opened release of a table.
        settings: how to train.
        device: "auto", "cpu" or "cuda".

    Raises:
        GeneratorError: the training diverged, or the release is not of a table.
        DeviceError: there is no such device here.
    """
    settings = settings or TableSettings()
    schema = release.schema
    if not isinstance(schema, TableSchema):
        raise GeneratorError("the release is of images, not of a table")
    place = choose_device(device)
    objective = TableDistance(
        pooled_mean(release), release.feature_map, schema, place, settings.marginals_loss
    )
    classes = len(schema.classes)
    size = max(2, settings.batch // classes)
    every_class = torch.arange(classes, device=place)
    random = torch.Generator(device=place).manual_seed(settings.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        generator = TableGenerator(TableGeneratorSpec(), schema).to(place)

    def loss_at(step: int) -> Loss:
        shape = (classes, size, generator.spec.code)
        code = torch.randn(shape, generator=random, device=place)
        distance, features = objective(generator(code, every_class, random))
        return Loss(distance, features)

    arranged = has_shallow_tangents(release.feature_map)
    return descend(
        generator,
        loss_at,
        lambda: objective.noise_floor,
        steps=min(settings.steps, _ARRANGED_STEPS) if arranged else settings.steps,
        learning_rate=settings.learning_rate,
    )
