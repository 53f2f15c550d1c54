"""From a release, or a generator trained earlier, to a folder of synthetic records."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...common.runtime.device import AUTO
from ...release.file.model import OpenedRelease
from ..fit.settings import TrainingSettings
from ..output.folder import require_replaceable
from ..output.provenance import origin_of, warn_unless_private
from .export import SavedGenerator, write_found_points, write_synthetic
from .inducing_points import PointSettings, find_points
from .sampling import sample
from .training import Training, train

MOST_BY_DEFAULT: Final = 60_000


def generate(
    opened: OpenedRelease,
    folder: Path,
    *,
    count: int | None = None,
    settings: TrainingSettings | None = None,
    points: PointSettings | None = None,
    module: Path | None = None,
    device: str = AUTO,
) -> Training:
    """Train on a release and write synthetic records.

    Args:
        opened: the release.
        folder: where to write `images.npz`, `preview.png`, `generator.safetensors` and
            `provenance.json`.
        count: how many records; as many as the release was made from if None, at most 60,000.
        settings: how to train.
        points: if they are given, such points are written instead of records.
        module: of "perceptual" features: the file that they were made with.
        device: "auto", "cpu" or "cuda".

    Raises:
        ModuleError: the module is missing, is another one, or failed.
        GeneratorError: the training diverged, or there can be no such points.
        DeviceError: there is no such device here.
        OutputError: the folder cannot be written.
    """
    settings = settings or TrainingSettings()
    require_replaceable(folder)
    release = opened.release
    if points is not None:
        points.require_usable(len(release.schema.classes))
    training = train(release, settings, module=module, device=device)
    saved = SavedGenerator(
        generator=training.generator,
        classes=release.schema.classes,
        class_weights=release.class_weights,
        origin=origin_of(
            opened,
            settings,
            training.generator.spec.to_json(),
            training.losses,
            training.noise_floor,
        ),
    )
    if points is not None:
        points_to(folder, saved, points)
        return training
    records = min(release.guarantee.records, MOST_BY_DEFAULT) if count is None else count
    sample_to(folder, saved, count=records, seed=settings.seed)
    return training


def sample_to(folder: Path, saved: SavedGenerator, *, count: int, seed: int) -> None:
    """Draw records from a generator and write the folder of results.

    Raises:
        OutputError: the folder cannot be written.
    """
    warn_unless_private(saved.origin, folder)
    images, labels = sample(saved.generator, count, saved.class_weights, seed)
    write_synthetic(folder, saved, images, labels, {"records": count, "seed": seed})


def points_to(folder: Path, saved: SavedGenerator, settings: PointSettings) -> None:
    """Find the points that stand for a generator's records and write the folder of results.

    Raises:
        GeneratorError: there can be no such points.
        OutputError: the folder cannot be written.
    """
    warn_unless_private(saved.origin, folder)
    write_found_points(folder, saved, find_points(saved.generator, settings))
