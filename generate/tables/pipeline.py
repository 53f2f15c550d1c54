"""From a release of a table to a generator of rows, with its corrections."""

from __future__ import annotations

import torch

from ...common.runtime.device import AUTO, choose_device
from ...common.schema.table import TableSchema
from ...release.file.model import OpenedRelease, Release
from ..fit.descent import Training
from ..fit.recipe import KNOTS, PERCEPTRON, WEIGHTED, ComposedSettings
from ..fit.settings import TableSettings
from ..kernels.mean_embedding import pooled_mean
from ..output.provenance import origin_of
from .columns.estimation import estimate_columns
from .export import SavedTableGenerator
from .generators.registry import RowGenerator
from .marginals.released import marginals_of, with_levels
from .refinement import refinement_of
from .reweighting import reweighting_of
from .sampling import RowModel, corrected_rows
from .training import train_table


def fit_table(
    opened: OpenedRelease, settings: TableSettings | ComposedSettings, *, device: str = AUTO
) -> tuple[Training[RowGenerator] | None, SavedTableGenerator]:
    """Fit a generator of rows to a release.

    Args:
        opened: the release, of a table.
        settings: how to train.
        device: "auto", "cpu" or "cuda".

    Returns:
        The training of the network, None if none was needed; and the generator with everything that
        sampling needs.

    Raises:
        GeneratorError: the training diverged.
        DeviceError: there is no such device here.
    """
    release = opened.release
    schema = release.schema
    assert isinstance(schema, TableSchema)
    choose_device(device)  # refuse a missing device even if it is not needed
    parts = KNOTS, WEIGHTED
    if isinstance(settings, ComposedSettings):
        parts = settings.generator, settings.objective
    usual = parts == (KNOTS, WEIGHTED)
    if usual and (known := model_of_columns(release, settings.seed)) is not None:
        return None, SavedTableGenerator(known, release.class_weights, origin_of(opened, settings))
    training = train_table(release, settings, device=device)
    network = training.generator
    if PERCEPTRON in parts:
        model = RowModel(schema, network)  # its rows are not corrected
    else:
        marginals = marginals_of(pooled_mean(release), release.feature_map, schema)
        random = torch.Generator().manual_seed(settings.seed)
        reweighting = reweighting_of(release, corrected_rows(network, marginals, random))
        model = RowModel(schema, network, marginals, reweighting)
    origin = origin_of(opened, settings, training, network.spec)
    return training, SavedTableGenerator(model, release.class_weights, origin)


def model_of_columns(release: Release, seed: int) -> RowModel | None:
    """Build the row model directly, if a release holds marginals and their dependence.

    A network would not influence any row.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)

    Args:
        release: of a table.
        seed: of the random rows used to estimate columns.

    Returns:
        The model; None if the release has features of another kind.
    """
    refinement = refinement_of(release)
    if refinement is None:
        return None
    columns = with_levels(estimate_columns(release, seed), release)
    return RowModel(refinement.schema, marginals=columns, refinement=refinement)
