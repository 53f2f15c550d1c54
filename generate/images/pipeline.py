"""From a release of images to a generator of images."""

from __future__ import annotations

from pathlib import Path

from ...common.runtime.device import AUTO
from ...common.schema.image import ImageSchema
from ...release.file.model import OpenedRelease
from ..fit.descent import Training
from ..fit.recipe import ComposedSettings
from ..fit.settings import TrainingSettings
from ..output.provenance import origin_of
from .composed import train_composed
from .estimation.class_shares import posterior_shares
from .export import SavedImageGenerator
from .generators.registry import ImageGenerator
from .training import train


def fit_images(
    opened: OpenedRelease,
    settings: TrainingSettings,
    *,
    module: Path | None = None,
    device: str = AUTO,
) -> tuple[Training[ImageGenerator], SavedImageGenerator]:
    """Train on a release of images.

    Args:
        opened: the release.
        settings: how to train.
        module: for "perceptual" features: the file that they were made with.
        device: "auto", "cpu" or "cuda".

    Returns:
        The training's course, and the generator with everything that sampling needs.

    Raises:
        ModuleError: the module is missing, is another one, or failed.
        GeneratorError: the training diverged, or the release is of a table.
        DeviceError: there is no such device here.
    """
    release = opened.release
    assert isinstance(release.schema, ImageSchema)
    training: Training[ImageGenerator]
    if isinstance(settings, ComposedSettings):
        training = train_composed(release, settings, module=module, device=device)
    else:
        training = train(release, settings, module=module, device=device)
    saved = SavedImageGenerator(
        generator=training.generator,
        classes=release.schema.classes,
        class_weights=posterior_shares(release),
        origin=origin_of(opened, settings, training, training.generator.spec),
        preparation=release.schema.preparation,
    )
    return training, saved
