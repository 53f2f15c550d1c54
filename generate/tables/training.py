"""Train a generator of table rows from a release and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from ...common.errors import GeneratorError
from ...common.runtime.device import AUTO, choose_device
from ...common.schema.table import TableSchema
from ...release.file.model import Release
from ..fit.descent import Loss, Training, descend, untrained
from ..fit.settings import TableSettings, TrainingSettings
from ..kernels.mean_embedding import pooled_mean
from .generators.knots import TableGenerator, TableGeneratorSpec
from .generators.registry import RowGenerator
from .objective import TableDistance

G = TypeVar("G", bound=RowGenerator)


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
    generator = untrained(lambda: TableGenerator(TableGeneratorSpec(), schema), settings.seed)
    return minimise_distance(
        generator.to(place),
        lambda records: Loss(*objective(records)),
        lambda: objective.noise_floor,
        settings,
        place,
    )


def minimise_distance(
    generator: G,
    distance: Callable[[Tensor], Loss],
    noise_floor: Callable[[], float],
    settings: TrainingSettings,
    device: torch.device,
) -> Training[G]:
    """Minimise a generator's distance to a release, with balanced classes in each batch.

    Args:
        generator: on the device.
        distance: of a batch (c, b, record size).
        noise_floor: expected contribution of the release's noise to the distance.
        settings: how to train.
        device: where.

    Raises:
        GeneratorError: the training diverged.
    """
    classes = len(generator.schema.classes)
    shape = (classes, max(2, settings.batch // classes), generator.spec.code)
    every_class = torch.arange(classes, device=device)
    random = torch.Generator(device=device).manual_seed(settings.seed)

    def loss_at(_: int) -> Loss:
        code = torch.randn(shape, generator=random, device=device)
        return distance(generator(code, every_class, random))

    return descend(generator, loss_at, noise_floor, settings)
