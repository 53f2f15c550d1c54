"""Stage three: train a generator on a release, and draw synthetic records from it.

All of this is post-processing: it reads release files alone, and costs no privacy.

Example, after that of `dpntk.release`::

    from dpntk.generate import generate, load_generator, sample_to

    synthetic = generate("release.h5", "synthetic")
    print(synthetic.records())
    print(synthetic.sample(10, where="age >= 50"))

    sample_to("more", load_generator("synthetic"), count=100)

The public names, by what they are for:

- Train and write: `generate`, which gives back a `Synthetic` folder; `train` writes nothing;
  `open_for_training` refuses a distilled set, which needs no generator.
- Choose how to train: `Choices`, single ones; or `TrainingSettings` for images, `TableSettings`
  for tables, and `ComposedSettings` to name generator and objective for either;
  `require_settings` refuses them before there is a release, `require_replaceable` a folder.
- Draw more later: `load_generator` reads a `SavedGenerator`, and `sample_to` writes its records.
- Write points for kernel regression in place of images: `points_to`, with `PointSettings`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.lazy import attach

if TYPE_CHECKING:
    from .fit.recipe import Choices, ComposedSettings
    from .fit.settings import TableSettings, TrainingSettings
    from .images.inducing_points import PointSettings
    from .output.folder import require_replaceable
    from .pipeline import generate, open_for_training, require_settings, train
    from .synthetic import SavedGenerator, Synthetic, load_generator, points_to, sample_to

__all__ = [
    "Choices",
    "ComposedSettings",
    "PointSettings",
    "SavedGenerator",
    "Synthetic",
    "TableSettings",
    "TrainingSettings",
    "generate",
    "load_generator",
    "open_for_training",
    "points_to",
    "require_replaceable",
    "require_settings",
    "sample_to",
    "train",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Choices": ".fit.recipe",
        "ComposedSettings": ".fit.recipe",
        "PointSettings": ".images.inducing_points",
        "SavedGenerator": ".synthetic",
        "Synthetic": ".synthetic",
        "TableSettings": ".fit.settings",
        "TrainingSettings": ".fit.settings",
        "generate": ".pipeline",
        "load_generator": ".synthetic",
        "open_for_training": ".pipeline",
        "points_to": ".synthetic",
        "require_replaceable": ".output.folder",
        "require_settings": ".pipeline",
        "sample_to": ".synthetic",
        "train": ".pipeline",
    },
)
