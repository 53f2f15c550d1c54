"""From a release of a table to a generator of rows, and all that makes its rows better."""

from __future__ import annotations

import torch

from ...common.runtime.device import AUTO
from ...common.schema.table import TableSchema
from ...release.file.model import OpenedRelease
from ..fit.descent import Training
from ..fit.recipe import PERCEPTRON, ComposedSettings
from ..fit.settings import TableSettings
from ..kernels.mean_embedding import pooled_mean
from ..output.provenance import origin_of
from .columns import likely_columns
from .composed import train_composed
from .export import SavedTableGenerator
from .generators import RowGenerator
from .marginals import marginals_of, with_levels
from .refinement import refinement_of
from .reweighting import Reweighting, reweighting_of
from .sampling import corrected_rows
from .training import train_table


def fit_table(
    opened: OpenedRelease, settings: TableSettings | ComposedSettings, *, device: str = AUTO
) -> tuple[Training[RowGenerator], SavedTableGenerator]:
    """Train on a release of a table.

    Args:
        opened: the release.
        settings: how to train.
        device: "auto", "cpu" or "cuda".

    Returns:
        How the training went, and the generator with all that sampling needs.

    Raises:
        GeneratorError: the training diverged, or the release is of images.
        DeviceError: there is no such device here.
    """
    release = opened.release
    training: Training[RowGenerator]
    if isinstance(settings, ComposedSettings):
        training = train_composed(release, settings, device=device)
    else:
        training = train_table(release, settings, device=device)
    assert isinstance(release.schema, TableSchema)  # or it would not have been trained on
    origin = origin_of(opened, settings, training, training.generator.spec)
    if isinstance(settings, ComposedSettings) and settings.generator == PERCEPTRON:
        # Its rows are taken as they come.
        as_it_is = SavedTableGenerator(training.generator, release.class_weights, (), origin)
        return training, as_it_is
    refinement = refinement_of(release)
    if refinement is not None:  # rows begin as independent columns, and none are chosen
        marginals = with_levels(likely_columns(release, settings.seed), release)
        reweighting = Reweighting.none(release.feature_map, len(release.class_weights))
    else:
        marginals = marginals_of(pooled_mean(release), release.feature_map, release.schema)
        random = torch.Generator().manual_seed(settings.seed)
        reweighting = reweighting_of(release, corrected_rows(training.generator, marginals, random))
    saved = SavedTableGenerator(
        generator=training.generator,
        class_weights=release.class_weights,
        marginals=marginals,
        reweighting=reweighting,
        refinement=refinement,
        origin=origin,
    )
    return training, saved
