"""Train a generator of table rows from a release and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ...common.errors import GeneratorError
from ...common.runtime.device import AUTO, choose_device
from ...common.schema.table import TableSchema
from ...release.file.model import Release
from ..fit.descent import Loss, Training, descend, untrained
from ..fit.recipe import PEARL, PERCEPTRON, PLAIN, ComposedSettings
from ..fit.settings import MARGINALS_LOSS, TableSettings, TrainingSettings
from ..kernels.mean_embedding import pooled_mean
from ..kernels.plain_mmd import PlainMMD
from ..kernels.reweighted_mmd import ReweightedDistance
from .generators.knots import TableGenerator, TableGeneratorSpec
from .generators.perceptron import PerceptronGenerator, PerceptronSpec
from .generators.registry import RowGenerator
from .objective import TableDistance


def train_table(
    release: Release, settings: TableSettings | ComposedSettings, *, device: str = AUTO
) -> Training[RowGenerator]:
    """Train a generator so that its mean embedding comes close to the released one.

    `ComposedSettings` choose a generator and an objective by name. With "mlp" and "mmd" this is
    Algorithm 1 of Yang et al., arXiv 2303.01687: each step takes a fresh batch, with equally many
    records of each class, and the gradient of equation 6.

    Guarantee:
        Post-processing: reads the release alone, so the result is as private as the release.
        (docs/privacy/proofs.md, statement 10.)

    Args:
        release: an opened release of a table.
        settings: how to train, and, if composed, the parts.
        device: "auto", "cpu" or "cuda".

    Raises:
        GeneratorError: the training diverged, the release is not of a table, or it holds marginals,
            which the plain loss does not support.
        DeviceError: there is no such device here.
    """
    schema = release.schema
    if not isinstance(schema, TableSchema):
        raise GeneratorError("the release is of images, not of a table")
    place = choose_device(device)
    distance, noise_floor = _distance(release, schema, settings, place)
    generator = untrained(lambda: _chosen(schema, settings), settings.seed).to(place)
    return minimise_distance(generator, distance, noise_floor, settings, place)


def _chosen(schema: TableSchema, settings: TrainingSettings) -> RowGenerator:
    if isinstance(settings, ComposedSettings) and settings.generator == PERCEPTRON:
        return PerceptronGenerator(PerceptronSpec.of(schema, settings.code), schema)
    return TableGenerator(TableGeneratorSpec(), schema)


def _distance(
    release: Release,
    schema: TableSchema,
    settings: TableSettings | ComposedSettings,
    place: torch.device,
) -> tuple[Callable[[Tensor], Loss], float]:
    """The objective, and the expected contribution of the release's noise to it."""
    if isinstance(settings, ComposedSettings) and settings.objective in (PLAIN, PEARL):
        plain = (PlainMMD if settings.objective == PLAIN else ReweightedDistance)(release, place)

        def by_itself(records: Tensor) -> Loss:
            found = plain(records)
            return Loss(found, found)

        return by_itself, plain.noise_floor
    weight = settings.marginals_loss if isinstance(settings, TableSettings) else MARGINALS_LOSS
    weighted = TableDistance(pooled_mean(release), release.feature_map, schema, place, weight)
    return weighted, weighted.noise_floor


def minimise_distance(
    generator: RowGenerator,
    distance: Callable[[Tensor], Loss],
    noise_floor: float,
    settings: TrainingSettings,
    device: torch.device,
) -> Training[RowGenerator]:
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

    return descend(generator, loss_at, lambda: noise_floor, settings)
