"""From a release of a table, or a generator trained earlier, to a folder with a synthetic table."""

from __future__ import annotations

from pathlib import Path

import torch

from ...common.runtime.device import AUTO
from ...common.schema.table import TableSchema
from ...release.file.model import OpenedRelease
from ..fit.settings import TableSettings
from ..kernels.mean_embedding import pooled_mean
from ..output.folder import require_replaceable
from ..output.provenance import origin_of, warn_unless_private
from .export import SavedTableGenerator, write_table
from .marginals import marginals_of
from .refinement import refinement_of
from .reweighting import reweighting_of
from .sampling import corrected_rows, sample_rows
from .training import TableTraining, train_table

MOST_ROWS_BY_DEFAULT = 1_000_000


def generate_table(
    opened: OpenedRelease,
    folder: Path,
    *,
    count: int | None = None,
    settings: TableSettings | None = None,
    safe_csv: bool = False,
    device: str = AUTO,
) -> TableTraining:
    """Train on a release of a table and write synthetic rows.

    Args:
        opened: the release.
        folder: where to write `table.csv`, `table.parquet`, `generator.safetensors` and
            `provenance.json`.
        count: how many rows; as many as the release was made from if None, at most 1,000,000.
        settings: how to train.
        safe_csv: whether a spreadsheet is to compute nothing in `table.csv`: see `write_csv`.
        device: "auto", "cpu" or "cuda".

    Raises:
        GeneratorError: the training diverged, or the release is not of a table.
        DeviceError: there is no such device here.
        OutputError: the folder cannot be written.
    """
    settings = settings or TableSettings()
    require_replaceable(folder)
    release = opened.release
    training = train_table(release, settings, device=device)
    assert isinstance(release.schema, TableSchema)  # or it would not have been trained on
    marginals = marginals_of(pooled_mean(release), release.feature_map, release.schema)
    random = torch.Generator().manual_seed(settings.seed)
    candidates = corrected_rows(training.generator, marginals, random)
    saved = SavedTableGenerator(
        generator=training.generator,
        class_weights=release.class_weights,
        marginals=marginals,
        reweighting=reweighting_of(release, candidates),
        refinement=refinement_of(release),
        origin=origin_of(
            opened,
            settings,
            training.generator.spec.to_json(),
            training.losses,
            training.noise_floor,
        ),
    )
    rows = min(release.guarantee.records, MOST_ROWS_BY_DEFAULT) if count is None else count
    sample_table_to(folder, saved, count=rows, seed=settings.seed, safe_csv=safe_csv)
    return training


def sample_table_to(
    folder: Path, saved: SavedTableGenerator, *, count: int, seed: int, safe_csv: bool = False
) -> None:
    """Draw rows from a generator and write the folder of results; see `generate_table`.

    Raises:
        OutputError: the folder cannot be written.
    """
    warn_unless_private(saved.origin, folder)
    table = sample_rows(
        saved.generator,
        count,
        saved.class_weights,
        seed,
        saved.marginals,
        saved.reweighting,
        saved.refinement,
    )
    write_table(folder, saved, table, {"records": count, "seed": seed}, safe_csv=safe_csv)
