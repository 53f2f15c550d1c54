"""From a release of any kind to a folder of synthetic records."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..common.arguments import Location, argument, path_from, require_kind, whole_number
from ..common.errors import GeneratorError, OutputError
from ..common.features.base import FeatureMap
from ..common.runtime.device import AUTO
from ..common.schema import Schema
from ..common.schema.table import TableSchema
from ..release.file.distilled import AnyOpened, OpenedDistilled, holds_points
from ..release.file.model import Opened, OpenedRelease, Release
from ..release.file.reader import open_any
from .defaults import MOST_IMAGES, option, usual_rows
from .distilled import export_points
from .fit.descent import Training
from .fit.objectives import require_parts
from .fit.recipe import Choices, ComposedSettings, settings_from, settings_of
from .fit.settings import TableSettings, TrainingSettings
from .images.inducing_points import PointSettings
from .images.pipeline import fit_images
from .images.sampling import require_no_condition
from .images.training import usual_settings
from .output.folder import require_replaceable
from .output.provenance import warn_of_noise
from .synthetic import (
    SavedGenerator,
    Synthetic,
    no_points_of_tables,
    points_to,
    require_csv,
    require_points,
    sample_to,
)
from .tables.pipeline import fit_table
from .tables.rows.conditional import require_condition


def generate(
    release: AnyOpened | Location,
    folder: Location,
    *,
    count: int | None = None,
    settings: TrainingSettings | Choices | None = None,
    points: PointSettings | None = None,
    module: Location | None = None,
    where: str = "",
    safe_csv: bool = False,
    device: str = AUTO,
) -> Synthetic:
    """Train a generator on a release and write synthetic records.

    A distilled set is written as it is: there is nothing to train.

    Example::

        synthetic = generate("release.h5", "synthetic", count=1000)
        rows = synthetic.records()

    Guarantee:
        Post-processing: reads the release alone, so the result is as private as the release.
        (docs/privacy/proofs.md, statement 10.)

    Args:
        release: a release of images, of a table or of a distilled set: opened, or the path of its
            file, whose signer has to be trusted.
        folder: where to write; an earlier result there is replaced. For images `images.npz` and
            `preview.png`, for a table `table.csv` and `table.parquet`; beside them
            `generator.safetensors` and `provenance.json`.
        count: how many records; if None, as many as the release was made from, at most 60,000
            images or 1,000,000 rows.
        settings: how to train: single choices, such as {"seed": 1}, beside the defaults for this
            release (see `Choices`); or all of them: `TrainingSettings` for images, `TableSettings`
            for a table, and for either `ComposedSettings`, which names generator and objective.
        points: for images: if given, points for kernel regression are written in place of records.
        module: for "perceptual" features: the file that they were made with.
        where: for a table: a condition that all rows fulfil; empty for none.
        safe_csv: for a table: whether to keep out of `table.csv` whatever a spreadsheet would
            compute.
        device: "auto", "cpu" or "cuda".

    Returns:
        The folder: its `records`, and the generator that makes more of them.

    Raises:
        ReleaseError: the file is no release, or its signer is not trusted.
        ModuleError: the module is missing, is another one, or failed.
        GeneratorError: this kind of release does not offer what was asked for, or the training
            diverged.
        DeviceError: there is no such device here.
        OutputError: the folder cannot be written.
    """
    folder = path_from("folder", folder, refusal=OutputError)
    if count is not None and points is not None:
        raise GeneratorError("give either a count of records or points, not both")
    count = None if count is None else whole_number("count", count, least=1, refusal=GeneratorError)
    module = None if module is None else path_from("module", module, refusal=GeneratorError)
    opened = _opened(release)
    if holds_points(opened):
        wanted = {"settings": settings, "count": count, "points": points, "module": module}
        require_nothing_to_train(wanted)
        return _as_it_is(opened, folder, where=where, safe_csv=safe_csv)
    _require_fitting(opened, points, module, where, safe_csv=safe_csv)
    chosen = _checked(settings, opened)
    require_replaceable(folder)
    if points is not None:
        require_points(points, len(opened.release.schema.classes))
    how_many = _usual_count(opened.release) if count is None else count
    training, generator = _fit(opened, chosen, module, device)
    if points is not None:
        made = points_to(folder, generator, points)
    else:
        made = sample_to(
            folder, generator, count=how_many, seed=chosen.seed, where=where, safe_csv=safe_csv
        )
    warn_of_noise(opened.release)
    if training is None:
        return made
    return replace(made, losses=training.losses, noise_floor=training.noise_floor)


def train(
    release: OpenedRelease | Location,
    *,
    settings: TrainingSettings | Choices | None = None,
    module: Location | None = None,
    device: str = AUTO,
) -> SavedGenerator:
    """Train a generator on a release, as `generate` does, and write nothing.

    Guarantee:
        Post-processing: reads the release alone, so the result is as private as the release.
        (docs/privacy/proofs.md, statement 10.)

    Args:
        release: see `generate`.
        settings: see `generate`.
        module: see `generate`.
        device: "auto", "cpu" or "cuda".

    Returns:
        What samples records.

    Raises:
        GeneratorError: the release is of a distilled set, or as for `generate`, like all others.
    """
    opened = open_for_training(release)
    module = None if module is None else path_from("module", module, refusal=GeneratorError)
    _require_fitting(opened, None, module, "", safe_csv=False)
    _, generator = _fit(opened, _checked(settings, opened), module, device)
    warn_of_noise(opened.release)
    return generator


def _usual_count(release: Release) -> int:
    """How many records are made by default."""
    records = release.guarantee.records
    if isinstance(release.schema, TableSchema):
        return usual_rows(release.schema, records)
    return min(records, MOST_IMAGES)


def _fit(
    opened: OpenedRelease, settings: TrainingSettings, module: Path | None, device: str
) -> tuple[Training[Any] | None, SavedGenerator]:
    """Train with settings for this kind of release; nothing may have to be trained."""
    if isinstance(opened.release.schema, TableSchema):
        assert isinstance(settings, TableSettings | ComposedSettings)
        return fit_table(opened, settings, device=device)
    return fit_images(opened, settings, module=module, device=device)


def _as_it_is(opened: OpenedDistilled, folder: Path, *, where: str, safe_csv: bool) -> Synthetic:
    """Write the records of a distilled set, for which nothing is trained."""
    schema = opened.release.schema
    table = schema if isinstance(schema, TableSchema) else None
    require_csv(safe_csv, is_table=table is not None)
    require_no_condition(where, distilled=True)
    require_replaceable(folder)
    export_points(opened, folder, safe_csv=safe_csv)
    return Synthetic(folder, schema=table)


def _require_fitting(
    opened: OpenedRelease,
    points: PointSettings | None,
    module: Path | None,
    where: str,
    *,
    safe_csv: bool,
) -> None:
    """Refuse arguments that do not apply to this kind of release."""
    schema = opened.release.schema
    require_csv(safe_csv, is_table=isinstance(schema, TableSchema))
    if not isinstance(schema, TableSchema):
        require_no_condition(where)
        return
    if module is not None:
        named = argument("module", module)
        raise GeneratorError(f"{named}: the release is of a table and needs none")
    if points is not None:
        raise no_points_of_tables()
    require_condition(where, schema)


def default_settings(opened: OpenedRelease) -> TrainingSettings:
    """The default training settings for a release: `TableSettings` if it is of a table."""
    return chosen_settings(opened, {})


def chosen_settings(opened: OpenedRelease, choices: Mapping[str, object]) -> TrainingSettings:
    """The settings for a release from single choices.

    Args:
        opened: the release.
        choices: any of `Choices`.

    Raises:
        GeneratorError: there is no such choice, or they do not fit each other or the release.
    """
    return settings_from(choices, _usual(opened), opened.release)


def require_settings(settings: object, schema: Schema, feature_map: FeatureMap) -> None:
    """Refuse settings that no release of such records takes, before one is made.

    Args:
        settings: single choices, all settings, or None for the default ones.
        schema: of the records.
        feature_map: of their embedding.

    Raises:
        GeneratorError: they are of another kind, there is no such choice, they do not fit each
            other or the features, or a number is out of range.
    """
    usual = TableSettings() if isinstance(schema, TableSchema) else TrainingSettings()
    if isinstance(settings, Mapping):
        settings = settings_of(settings, usual, schema, feature_map)
    _require_settings_for(usual if settings is None else settings, usual, schema, feature_map)


def require_nothing_to_train(wanted: Mapping[str, object]) -> None:
    """Refuse arguments that have no meaning for a distilled set, which needs no training.

    Args:
        wanted: maps each argument's name to the value given for it; None if it was not given.

    Raises:
        GeneratorError: one of them was given.
    """
    for name, value in wanted.items():
        if value is not None:
            said = option(name)
            raise GeneratorError(f"{said}: the release is of a distilled set: nothing to train")


def _opened(release: AnyOpened | Location) -> AnyOpened:
    if isinstance(release, Opened):
        return release
    wanted = "what open_release or open_any gives, or the path of a file"
    require_kind("release", release, (str, os.PathLike), wanted, refusal=GeneratorError)
    return open_any(Path(release))


def open_for_training(release: AnyOpened | Location) -> OpenedRelease:
    """Open a release on which a generator can be trained.

    Args:
        release: opened, or the path of its file, whose signer has to be trusted.

    Returns:
        The opened release, for `generate` or `train`.

    Raises:
        ReleaseError: the file is no release, or its signer is not trusted.
        GeneratorError: it is of a distilled set, which needs no generator.
    """
    opened = _opened(release)
    if holds_points(opened):
        raise GeneratorError(
            f"{opened.path}: of a distilled set: 'dpntk generate' writes its records"
        )
    return opened


def _checked(
    settings: TrainingSettings | Choices | None, opened: OpenedRelease
) -> TrainingSettings:
    """Return the settings, or refuse those meant for the other kind of release."""
    if settings is None:
        return default_settings(opened)
    chosen = chosen_settings(opened, settings) if isinstance(settings, Mapping) else settings
    release = opened.release
    _require_settings_for(chosen, _usual(opened), release.schema, release.feature_map)
    return chosen


def _require_settings_for(
    settings: object, usual: TrainingSettings, schema: Schema, feature_map: FeatureMap
) -> None:
    """Refuse settings for another kind of release than the usual ones."""
    if isinstance(settings, ComposedSettings):
        require_parts(settings, schema, feature_map)
    elif type(settings) is not type(usual):
        kind = "a table" if isinstance(usual, TableSettings) else "images"
        raise GeneratorError(
            f"settings: the release is of {kind}, which takes {type(usual).__name__}, not "
            f"{type(settings).__name__}"
        )


def _usual(opened: OpenedRelease) -> TrainingSettings:
    """The default settings of dpntk's own generator for this kind of records."""
    is_table = isinstance(opened.release.schema, TableSchema)
    return TableSettings() if is_table else usual_settings(opened.release)
