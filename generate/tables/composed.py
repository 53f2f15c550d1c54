"""Stage three for tables with a generator and an objective chosen by name."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ...common.arguments import argument
from ...common.errors import GeneratorError
from ...common.features.joint import parts_of
from ...common.runtime.device import AUTO, choose_device
from ...common.schema.table import TableSchema
from ...release.file.model import Release
from ..fit.descent import Loss, Training, untrained
from ..fit.recipe import PEARL, PERCEPTRON, PLAIN, ComposedSettings
from ..kernels.mean_embedding import pooled_mean
from ..kernels.plain_mmd import PlainMMD
from ..kernels.reweighted_mmd import ReweightedDistance
from .generators.knots import TableGenerator, TableGeneratorSpec
from .generators.perceptron import PerceptronGenerator, PerceptronSpec
from .generators.registry import RowGenerator
from .objective import TableDistance
from .training import minimise_distance


def train_composed(
    release: Release, settings: ComposedSettings, *, device: str = AUTO
) -> Training[RowGenerator]:
    """Train the chosen generator with the chosen objective.

    With "mlp" and "mmd" this is Algorithm 1 of Yang et al., arXiv 2303.01687: each step takes a
    fresh batch, with equally many records of each class, and the gradient of equation 6.

    Guarantee:
        Post-processing: reads the release alone, so the result is as private as the release.
        (docs/privacy/proofs.md, statement 10.)

    Args:
        release: an opened release of a table.
        settings: the parts, and how to train.
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
    return minimise_distance(generator, distance, lambda: noise_floor, settings, place)


def _chosen(schema: TableSchema, settings: ComposedSettings) -> RowGenerator:
    if settings.generator == PERCEPTRON:
        return PerceptronGenerator(PerceptronSpec.of(schema, settings.code), schema)
    return TableGenerator(TableGeneratorSpec(), schema)


def _distance(
    release: Release, schema: TableSchema, settings: ComposedSettings, place: torch.device
) -> tuple[Callable[[Tensor], Loss], float]:
    """The objective, and the expected contribution of the release's noise to it."""
    if settings.objective in (PLAIN, PEARL):
        if settings.objective == PLAIN and parts_of(release.feature_map).marginals is not None:
            raise GeneratorError(
                f"{argument('objective', PLAIN)}: the release has "
                f"{release.feature_map.describe(schema)}, and the plain loss knows the network's "
                f"alone: embed with {argument('marginals', 0)}"
            )
        plain = (PlainMMD if settings.objective == PLAIN else ReweightedDistance)(release, place)

        def by_itself(records: Tensor) -> Loss:
            found = plain(records)
            return Loss(found, found)

        return by_itself, plain.noise_floor
    weighted = TableDistance(pooled_mean(release), release.feature_map, schema, place)
    return lambda records: Loss(*weighted(records)), weighted.noise_floor
