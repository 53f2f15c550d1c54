"""From a release of a table to a generator of rows, and all that makes its rows better."""

from __future__ import annotations

import torch

from ...common.errors import GeneratorError
from ...common.runtime.device import AUTO, choose_device
from ...common.schema.table import TableSchema
from ...release.file.model import OpenedRelease
from ..fit.descent import Training
from ..fit.recipe import KNOTS, PERCEPTRON, WEIGHTED, ComposedSettings
from ..fit.settings import TableSettings
from ..kernels.mean_embedding import pooled_mean
from ..output.provenance import origin_of
from .columns import likely_columns
from .composed import train_composed
from .export import SavedTableGenerator
from .generators import RowGenerator
from .marginals import marginals_of, with_levels
from .refinement import refinement_of
from .reweighting import reweighting_of
from .sampling import RowModel, corrected_rows
from .training import train_table


def fit_table(
    opened: OpenedRelease, settings: TableSettings | ComposedSettings, *, device: str = AUTO
) -> tuple[Training[RowGenerator] | None, SavedTableGenerator]:
    """Find what the rows of a release are drawn from.

    Args:
        opened: the release.
        settings: how to train.
        device: "auto", "cpu" or "cuda".

    Returns:
        How the training of a network went, None where none is needed; and the generator with all
        that sampling needs.

    Raises:
        GeneratorError: the training diverged, or the release is of images.
        DeviceError: there is no such device here.
    """
    release = opened.release
    if not isinstance(release.schema, TableSchema):
        raise GeneratorError("the release is of images, not of a table")
    schema = release.schema
    choose_device(device)  # it has to be there, needed or not
    parts = KNOTS, WEIGHTED
    if isinstance(settings, ComposedSettings):
        parts = settings.generator, settings.objective
    refinement = refinement_of(release) if parts == (KNOTS, WEIGHTED) else None
    if refinement is not None:  # a network would have no say in any row
        columns = with_levels(likely_columns(release, settings.seed), release)
        model = RowModel(schema, marginals=columns, refinement=refinement)
        return None, SavedTableGenerator(model, release.class_weights, origin_of(opened, settings))
    training: Training[RowGenerator]
    if isinstance(settings, ComposedSettings):
        training = train_composed(release, settings, device=device)
    else:
        training = train_table(release, settings, device=device)
    network = training.generator
    if PERCEPTRON in parts:
        model = RowModel(schema, network)  # its rows are taken as they come
    else:
        marginals = marginals_of(pooled_mean(release), release.feature_map, schema)
        random = torch.Generator().manual_seed(settings.seed)
        reweighting = reweighting_of(release, corrected_rows(network, marginals, random))
        model = RowModel(schema, network, marginals, reweighting)
    origin = origin_of(opened, settings, training, network.spec)
    return training, SavedTableGenerator(model, release.class_weights, origin)
